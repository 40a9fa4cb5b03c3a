"""A scene of two spheres whose distance in every frame is known, and the command line in
process."""

import io
import json
import os
import shlex
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from collidecli.cli.main import main
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.model import Model
from collidecli.verbs.batch.episode_worker import work_shard
from collidecli.verbs.batch.executors import Slot
from tests.support.batches import JOBS
from tests.support.contact_sets import block_with_groups, small_model, write_contact_set

FRAMES = 20
SCENE = """<mujoco>
  <worldbody>
    <geom name="base" type="sphere" size="0.5"/>
    <body name="ball" pos="0 0 2"><freejoint/><geom name="ball" type="sphere" size="0.3"/></body>
    <body name="far" pos="9 0 0"><freejoint/><geom name="far" type="sphere" size="0.3"/></body>
  </worldbody>
</mujoco>
"""
RUN = ("run", "scene.xml", "-t", "motion.h5", "--device", "cpu")


def distances() -> np.ndarray:
    """Between base and ball in each frame [m]: 0.105 at first, 1 cm less each frame."""
    return 0.105 - 0.01 * np.arange(FRAMES)


def write_poses(
    path: str | Path, poses: np.ndarray, names: Sequence[str], seconds: float = 0.01
) -> None:
    """A recording of poses [frames, worlds, bodies, 7] of named bodies, in frames of `seconds`."""
    with h5py.File(path, "w") as file:
        file.attrs["format"] = "collide-trajectory"
        file.attrs["format_version"] = np.array((1, 0), np.int32)
        file["time"] = np.arange(len(poses)) * seconds
        file["body_q"] = poses
        file.create_dataset("body_name", data=list(names), dtype=h5py.string_dtype())


@cache
def _motion(frames: int) -> bytes:
    poses = np.zeros((frames, 1, 1, 7))
    poses[..., 2] = (0.8 + 0.105 - 0.01 * np.arange(frames))[:, None, None]
    poses[..., 6] = 1.0
    file = io.BytesIO()
    write_poses(file, poses, ["ball"])  # pyright: ignore[reportArgumentType]
    return file.getvalue()


def write_motion(path: Path, frames: int = FRAMES) -> None:
    """The ball sinks into the base; `far` is left out and so stays far."""
    path.write_bytes(_motion(frames))


def arrays(path: str | Path) -> dict[str, Any]:
    """Every dataset of an HDF5 file by its name; texts as str."""
    found: dict[str, Any] = {}

    def add(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = (item.asstr() if h5py.check_string_dtype(item.dtype) else item)[()]

    with h5py.File(path) as file:
        file.visititems(add)
    return found


def attributes(path: str | Path) -> dict[str, Any]:
    """Those of the root of an HDF5 file; `config` as an object."""
    with h5py.File(path) as file:
        found: dict[str, Any] = dict(file.attrs)
    return found | {"config": json.loads(found.get("config", "{}"))}


def sha(path: str | Path) -> str:
    """The hash of the contacts of a set."""
    return attributes(path)["content_sha256"]


def write_jobs(folder: Path, lengths: Sequence[int], text: str = JOBS) -> Path:
    """jobs.toml, and recordings d0.h5, d1.h5, ... of so many frames in the folder demos; returns
    the folder."""
    (folder / "demos").mkdir()
    for number, length in enumerate(lengths):
        write_motion(folder / "demos" / f"d{number}.h5", length)
    (folder / "jobs.toml").write_text(text)
    return folder


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


MOST_LINES = 4
"""Of an error message."""


class CommandLine:
    """The command line in process: collide("run scene.xml", "-o", name) gives exit code, stdout and
    stderr.

    The first text is divided into words as by a shell.
    """

    def __init__(self, capsys: pytest.CaptureFixture[str] | None = None) -> None:
        """capsys: None for fixtures of a module, which replace the streams themselves."""
        self._capsys = capsys

    def __call__(self, first: object = "", *more: object) -> Answer:
        words = [*shlex.split(str(first)), *map(str, more)]
        if self._capsys is None:
            out, err = (
                io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)
            )
            with redirect_stdout(out), redirect_stderr(err):
                code = main(words)
            return Answer(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))  # pyright: ignore
        self._capsys.readouterr()
        code = main(words)
        captured = self._capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    def ok(self, *words: object) -> Answer:
        """The answer of a command that must end with exit code 0."""
        answer = self(*words)
        assert answer.code == 0, (words, answer.err)
        return answer

    def result(self, *words: object, code: int = 0) -> dict[str, Any]:
        """The object that a command prints with --json; the command must end with `code`."""
        answer = self(*words, "--json")
        assert answer.code == code, (words, answer.err)
        return json.loads(answer.out)

    def verdict(self, *words: object) -> dict[str, Any]:
        """The object that a command prints with --json; its exit code is 0 if the object says so,
        and else 1."""
        answer = self(*words, "--json")
        assert answer.code in (0, 1), (words, answer.err)
        result = json.loads(answer.out)
        assert (answer.code == 0) == next(
            result[name] for name in ("equal", "passed", "good") if name in result
        )
        return result

    def found(self, *words: object, told: str | Sequence[str] = ()) -> str:
        """What a command prints that must end with exit code 1, as it finds something; all of
        `told` is in it."""
        answer = self(*words)
        assert answer.code == 1, (words, answer.err)
        for text in (told,) if isinstance(told, str) else told:
            assert text in answer.out, (text, answer.out)
        return answer.out

    def refused(self, *words: object, told: str | Sequence[str] = (), code: int = 2) -> str:
        """The message of a command that must end with `code`, with all of `told` in one short error
        message.

        Nothing is on stdout, and no file in the current folder is made or changed.
        """
        before = _files()
        answer = self(*words)
        assert (answer.code, answer.out) == (code, ""), (words, answer)
        assert _files() == before
        message = answer.err[answer.err.index("error: ") :]
        lines = message.splitlines()
        assert sum(line.startswith("error: ") for line in lines) == 1, message
        assert len(lines) <= MOST_LINES, message
        assert "Traceback" not in message
        for text in (told,) if isinstance(told, str) else told:
            assert text in answer.err, (text, answer.err)
        return answer.err


def refusals(command: str, *rows: tuple[Any, ...], needs: str = "here"):
    """A test that `command` with each row's words is refused: (words, told) or (words, told, exit
    code).

    needs: the fixture that makes the files. The words are divided as by a shell.
    """
    cases = [(words, told, code[0] if code else 2) for words, told, *code in rows]

    @pytest.mark.usefixtures(needs)
    @pytest.mark.parametrize(("words", "told", "code"), cases, ids=[words for words, *_ in cases])
    def test(collide: CommandLine, words: str, told: str | Sequence[str], code: int) -> None:
        collide.refused(f"{command} {words}", told=told, code=code)

    return test


def _files() -> dict[str, tuple[int, int]]:
    """Size and time of the last change of every file in the current folder."""
    found = {str(path): path.stat() for path in Path().rglob("*") if path.is_file()}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in found.items()}


@pytest.fixture
def collide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    """The command line in process, in an empty folder; no variable of ours is set."""
    for name in os.environ:
        if name.startswith("COLLIDE_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return CommandLine(capsys)


@pytest.fixture
def here(tmp_path: Path, collide: CommandLine) -> Path:
    """The current folder, with scene.xml and motion.h5."""
    (tmp_path / "scene.xml").write_text(SCENE)
    write_motion(tmp_path / "motion.h5")
    return tmp_path


MODEL = small_model()
GROUP_FRAMES = 6


@pytest.fixture
def block() -> ContactBlock:
    """Contacts of MODEL in every table of contacts in a frame, some of them none."""
    return block_with_groups(MODEL, GROUP_FRAMES)


@pytest.fixture
def made(tmp_path: Path, collide: CommandLine, block: ContactBlock) -> Path:
    """The current folder with a.h5, which has the contacts of `block`."""
    write_contact_set(tmp_path / "a.h5", MODEL, block)
    return tmp_path


@pytest.fixture
def differences(made: Path, collide: CommandLine):
    """differences(block, *options): exit code, result, result by group of diff of a.h5 and b.h5, a
    changed block."""

    def call(other: ContactBlock, *options: str, model: Model = MODEL) -> tuple[int, dict, dict]:
        write_contact_set(made / "b.h5", model, other, force=True)
        result = collide.verdict("diff a.h5 b.h5", *options)
        return 1 - result["equal"], result, {one["name"]: one for one in result["groups"]}

    return call


@pytest.fixture
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of reports have no charts: drawing takes a second, and some tests are of words only."""
    monkeypatch.setattr("collidecli.verbs.report.page.page_charts", lambda result, kinds: {})


_RUNS: dict[tuple[object, ...], bytes] = {}


@pytest.fixture
def ran(here: Path, collide: CommandLine):
    """ran("out.h5", *options): the contact set of scene.xml and motion.h5 as they are here;
    computed once a session."""

    def call(name: str, *options: object) -> str:
        if options not in _RUNS:
            collide.ok(*RUN, "-o", name, *options)
            _RUNS[options] = Path(name).read_bytes()
        Path(name).write_bytes(_RUNS[options])
        return name

    return call


@pytest.fixture
def in_process(monkeypatch):
    """Shards of a batch are computed in this process, without the start of another one."""
    monkeypatch.setattr(
        Slot,
        "_call",
        lambda self, shard, log: work_shard(self._location, shard, log, self._timeout),
    )


ROUNDING = 0.01
"""Times are float64 in microseconds since the first event [us]."""
STAGES = {"transforms", "broad phase", "narrow phase", "reduction", "order"}


def checked_trace(path: Path) -> list[dict[str, Any]]:
    """The events of a trace, whose complete events nest within each thread and whose threads and
    processes are named.

    Every stage of the engine is within a chunk of its thread.
    """
    trace = json.loads(path.read_text())
    events = trace["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X"}
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    processes = {event["pid"] for event in events if event["name"] == "process_name"}
    complete = [event for event in events if event["ph"] == "X"]
    assert {(event["pid"], event["tid"]) for event in complete} == named
    assert {event["pid"] for event in complete} == processes
    assert min(event["ts"] for event in complete) == 0.0
    for pid, tid in named:
        of_thread = [event for event in complete if (event["pid"], event["tid"]) == (pid, tid)]
        open_events: list[dict[str, Any]] = []
        for event in sorted(of_thread, key=lambda one: (one["ts"], -one["dur"])):
            assert event["dur"] >= 0.0
            while open_events and _end(open_events[-1]) <= event["ts"] + ROUNDING:
                open_events.pop()
            assert not open_events or _end(event) <= _end(open_events[-1]) + ROUNDING, (
                event,
                open_events[-1],
            )
            if event["name"] in STAGES:
                assert [one["name"] for one in open_events][-1:] == ["chunk"], event
            open_events.append(event)
    return events


def _end(event: dict[str, Any]) -> float:
    return event["ts"] + event["dur"]
