"""Of pickles nothing is executed, imported or opened, whatever they are; time and memory stay in
bounds."""

import pickle
import random
import re
import resource
import sys
import tracemalloc
from pathlib import Path

import pytest

from collidecli.errors import InputError
from collidecli.importers.recordings.kinds import open_recording
from collidecli.importers.recordings.pickles import interpreter
from tests.hostile import crafted_pickles
from tests.hostile.crafted_pickles import SHOUT
from tests.hostile.mutators import damaged

MUTATIONS = 2000
MOST_BYTES = 600 << 20
"""Beyond what the process has before: an expanded file may have 256 MiB, and is copied once."""
_WATCHED = ("import", "exec", "compile", "os.", "subprocess.", "pickle.", "socket.", "ctypes.")
_seen: list[str] | None = None


def _audit(event: str, args: tuple) -> None:
    if _seen is None:
        return
    if event == "open" and not re.match(r"/(proc|sys)/|.*\.(pkl|npy)$", str(args[0])):
        _seen.append(f"open {args[0]}")
    elif event.startswith(_WATCHED):
        _seen.append(f"{event} {args[:1]}")


sys.addaudithook(_audit)


def opened(path: Path) -> tuple[str, list[str]]:
    """What a file is taken for, or its refusal, and what was executed, imported or opened besides.
    Any other error than InputError is one of the test."""
    global _seen
    _seen = []
    try:
        recording = open_recording(path)
        recording.describe()
        recording.close()
        return "", _seen
    except InputError as error:
        return str(error), _seen
    finally:
        _seen = None


@pytest.fixture(scope="module", autouse=True)
def warm(tmp_path_factory):
    """All modules are imported, so that none is by a pickle."""
    for codec in ("cp437", "utf-8-sig"):  # of names in archives, and of text in columns
        b"a".decode(codec)
    path = tmp_path_factory.mktemp("warm") / "a.pkl"
    protocols = [pickle.dumps(crafted_pickles.motion(), protocol) for protocol in range(6)]
    for data in (*protocols, crafted_pickles.motions(), b"\x80\x04N.", b"(dp0\nVx\np1\nF1\ns."):
        path.write_bytes(data)
        opened(path)


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_the_watch_sees_what_python_executes(tmp_path):
    """Python's unpickler, of which the reader must have nothing."""
    global _seen
    _seen = []
    try:
        pickle.loads(b"cos\ngetcwd\n(tR.")
    finally:
        seen = _seen
        _seen = None
    assert any("pickle.find_class" in event for event in seen)


CRAFTED = list(crafted_pickles.files())


def test_nothing_of_a_crafted_file_is_executed(tmp_path, capfd):
    path = tmp_path / "a.pkl"
    before = peak()
    accepted = []
    for name, data in CRAFTED:
        path.write_bytes(data)
        message, seen = opened(path)
        assert seen == [], name
        assert len(message.splitlines()) <= 2, name
        assert len(message) < 4000, name
        assert not message or "a.pkl" in message, name
        if not message:
            accepted.append(name)
    assert SHOUT not in "".join(capfd.readouterr())
    assert peak() - before < MOST_BYTES
    assert len(CRAFTED) > 300
    assert accepted == ["names with control characters"]


@pytest.mark.parametrize(
    "data", [data for name, data in crafted_pickles.calls() if "REDUCE" in name][:40]
)
def test_calls_are_refused_by_name(tmp_path, data):
    path = tmp_path / "a.pkl"
    path.write_bytes(data)
    message, _ = opened(path)
    assert "it needs " in message
    assert ", byte " in message


OPCODES = b"(.012FIJKLMNPQRSTUVXabcdeghijlopqrstu})]\x80\x81\x85\x86\x87\x88\x8a\x8b\x8e\x93\x94"
"""Codes that are inserted, of calls and of stack and memo."""


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Damage as of any file, opcodes that are inserted, or a call in the middle."""
    kind = rng.random()
    if kind < 0.5:
        return damaged(data, rng)
    at = rng.randrange(2, len(data))
    if kind < 0.8:
        codes = bytes(rng.choice(OPCODES) for _ in range(rng.choice((1, 2, 5, 20))))
        return data[:at] + codes + data[at + rng.choice((0, len(codes))) :]
    call = rng.choice(CALLS)
    return data[:at] + call + data[at:]


CALLS = [data[2:-1] for name, data in crafted_pickles.calls() if "REDUCE" in name]


@pytest.mark.share(4)
@pytest.mark.parametrize("seed", range(4))
def test_nothing_of_a_damaged_file_is_executed(tmp_path, capfd, seed):
    """A quarter of the mutations each; protocols 0 to 5, and files of joblib and torch."""
    files = Path(__file__).parents[1] / "unit" / "importers" / "recordings" / "pickle_files"
    sources = [pickle.dumps(crafted_pickles.motion(), protocol) for protocol in range(6)]
    sources += [crafted_pickles.motions(), *(path.read_bytes() for path in sorted(files.iterdir()))]
    assert len(sources) > 10
    rng = random.Random(seed)
    path = tmp_path / "a.pkl"
    before = peak()
    messages = []
    for number in range(MUTATIONS // 4):
        path.write_bytes(mutated(sources[number % len(sources)], rng))
        message, seen = opened(path)
        assert seen == [], (number, message)
        assert len(message.splitlines()) <= 2
        messages.append(message)
    assert SHOUT not in "".join(capfd.readouterr())
    assert peak() - before < MOST_BYTES
    assert messages.count("") > 10, "some damage is not seen"
    assert sum("it needs" in message for message in messages) > 10


def test_the_memory_of_an_opcode(tmp_path, monkeypatch):
    """The most that a file may make of a byte: an empty set of 216 bytes."""
    monkeypatch.setattr(interpreter, "MOST_OPCODES", 400_000)
    path = tmp_path / "a.pkl"
    path.write_bytes(b"\x80\x04(" + b"\x8f" * 400_010 + b"l.")
    tracemalloc.start()
    message, _ = opened(path)
    assert "more than 400000 opcodes" in message
    assert tracemalloc.get_traced_memory()[1] < 400_000 * 300
    tracemalloc.stop()
