"""Least versions of engines, which adapters state and check."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from collidecli.adapters import processes
from collidecli.errors import InputError


@pytest.mark.parametrize("name", processes.ADAPTERS)
def test_the_least_version_is_stated(name):
    least = re.search(r'least="([0-9.]+)"', Path(processes.adapter_of(name)).read_text())
    assert least is not None
    page = (Path(__file__).parents[3] / "docs" / "howto" / "check-your-engine.md").read_text()
    assert f"| `{processes.ADAPTERS[name]}` {least[1]} |" in page


def test_an_older_version_is_refused(tmp_path, monkeypatch):
    (tmp_path / "mujoco.py").write_text('__version__ = "3.2.0"\n')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(
        InputError, match=r"mujoco 3\.2\.0 is too old: the adapter needs at least 3\.2\.5"
    ) as refused:
        processes.run_adapter("mujoco", sys.executable, str(tmp_path / "problem.npz"), (1, 1, 1))
    assert "pip install 'mujoco>=3.2.5'" in refused.value.fix


def test_versions_are_compared_by_their_numbers():
    numbers = runpy.run_path(str(Path(processes.adapter_of("mujoco")).with_name("adapter.py")))[
        "numbers"
    ]
    versions = ["3.2", "3.2.5rc1", "3.2.5", "3.10.0", "4.0.0.dev1"]
    assert [numbers(version) for version in versions] == [
        (3, 2),
        (3, 2, 5),
        (3, 2, 5),
        (3, 10, 0),
        (4, 0, 0),
    ]
    assert numbers("unknown") == ()
