"""The page on humanoid motions: its configuration files name the joints of the robots, and the G1 recipe runs."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from collidecli.cli.main import main
from tests.unit.test_docs_guides import run_page

ROOT = Path(__file__).parents[2]
PAGE = (
    (ROOT / "docs/howto/label-contacts.md")
    .read_text(encoding="utf-8")
    .split("\n## The motion of a humanoid")[1]
    .split("\n## ")[0]
)
CONFIGS = dict(re.findall(r"`(\w+\.toml)`, for.*?```toml\n(.*?)```", PAGE, re.S))
FRAMES = 4


@pytest.mark.parametrize(("name", "count"), [("g1.toml", 29), ("h1.toml", 19)])
def test_the_joints_are_as_many_as_the_title_says(name, count):
    names = re.findall(r"\w+_joint", CONFIGS[name])
    assert len(set(names)) == len(names) == count


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    page = re.sub(r"```(sh|toml)\n.*?```", "", PAGE, flags=re.S).replace("np.savez(", "print(0)  # 0\nnp.savez(")
    (tmp_path / "page.md").write_text(page, encoding="utf-8")
    run_page(str(tmp_path / "page.md"), capsys)


def test_the_recipe_of_g1_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("viser")
    data = _robots()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g1.toml").write_text(CONFIGS["g1.toml"])
    (tmp_path / "g1_29dof_rev_1_0.urdf").symlink_to(data / "g1_description/urdf/g1_29dof_rev_1_0.urdf")
    rows = np.zeros((FRAMES, 7 + 29))
    rows[:, 2] = 0.8 - 0.02 * np.arange(FRAMES)
    rows[:, 6] = 1.0
    np.savetxt("walk1_subject1.csv", rows, delimiter=",")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(data.parents[1]))
    recipe = PAGE.split("### Unitree H1")[0]
    commands = [
        shlex.split(line) for block in re.findall(r"```sh\n(.*?)```", recipe, re.S) for line in block.splitlines()
    ]
    assert main([*commands[0][1:], "--device", "cpu", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["frames"] == FRAMES
    assert result["contacts"] > 0
    for command in commands[1:]:
        assert main(command[1:]) == 0, command
    feet = Path("feet.csv").read_text()
    assert "left_ankle_roll" in feet
    assert "right_ankle_roll" in feet
    assert "#" not in feet, "a row per foot, not per shape of it"
    assert "ground" not in Path("self.csv").read_text()
    assert "37 shapes" in capsys.readouterr().out, "the page has the robot"


def _robots() -> Path:
    """Folder of the robots of example-robot-data, which only development environments have."""
    from importlib.metadata import PackageNotFoundError, files

    try:
        found = next(f for f in files("example-robot-data") or () if f.name == "g1_29dof_rev_1_0.urdf")
    except (PackageNotFoundError, StopIteration):
        pytest.skip("example-robot-data is not installed")
    return Path(str(found.locate())).resolve().parents[2]
