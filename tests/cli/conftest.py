"""A scene of two spheres whose distance in every frame is known, and the command line in process."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pytest

from collidecli.batch.executors import WorkerProcess
from collidecli.cli.main import main
from tests.support.contact_sets import Edited

FRAMES = 20
SCENE = """<mujoco>
  <worldbody>
    <geom name="base" type="sphere" size="0.5"/>
    <body name="ball" pos="0 0 2"><freejoint/><geom name="ball" type="sphere" size="0.3"/></body>
    <body name="far" pos="9 0 0"><freejoint/><geom name="far" type="sphere" size="0.3"/></body>
  </worldbody>
</mujoco>
"""


def distances() -> np.ndarray:
    """Between base and ball in each frame [m]: 0.105 at first, 1 cm less each frame."""
    return 0.105 - 0.01 * np.arange(FRAMES)


def write_motion(path: Path, frames: int = FRAMES) -> None:
    """The ball sinks into the base; `far` is left out and so stays far."""
    poses = np.zeros((frames, 1, 1, 7))
    poses[..., 2] = (0.8 + 0.105 - 0.01 * np.arange(frames))[:, None, None]
    poses[..., 6] = 1.0
    with h5py.File(path, "w") as file:
        file.attrs["format"] = "collide-trajectory"
        file.attrs["format_version"] = np.array((1, 0), np.int32)
        file["time"] = np.arange(frames) / 100.0
        file["body_q"] = poses
        file.create_dataset("body_name", data=["ball"], dtype=h5py.string_dtype())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with scene.xml and motion.h5; no variable of ours is set."""
    for name in os.environ:
        if name.startswith("COLLIDE_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scene.xml").write_text(SCENE)
    write_motion(tmp_path / "motion.h5")
    return tmp_path


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


@pytest.fixture
def collide(capsys: pytest.CaptureFixture[str]):
    """The command line in process: collide("run", "scene.xml") gives exit code, stdout and stderr."""

    def call(*args: str) -> Answer:
        capsys.readouterr()
        code = main([str(arg) for arg in args])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


@pytest.fixture
def in_process(monkeypatch):
    """Shards of a batch are computed in this process, without the start of another one."""
    monkeypatch.setattr(WorkerProcess, "call", lambda self, function, *args: function(*args))


@pytest.fixture
def diff(here, collide):
    """diff(a, b, *options): the result; both are Edited. The exit code must agree with them."""

    def call(a: Edited, b: Edited, *options: str) -> dict:
        a.write(here / "a.h5")
        b.write(here / "b.h5")
        answer = collide("diff", "a.h5", "b.h5", "--json", *options)
        assert answer.code in (0, 1), answer.err
        result = json.loads(answer.out)
        assert answer.code == (0 if result["equal"] else 1)
        assert result["schema"] == "collide.diff/1"
        return result

    return call
