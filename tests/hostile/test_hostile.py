"""A share of the hostile inputs, drawn by a seed, and that the judge and the watch would notice a
fault."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.hostile.cases import (
    FIRST_ASKED,
    FIRST_CONFIGURED,
    FIRST_EXCHANGED,
    FIRST_MIXED,
    WHOLE,
    asked_groups,
    case_of,
    chosen,
    configured_groups,
)
from tests.hostile.driver import faults, guard_faults, run_cases
from tests.hostile.seeds import groups

pytestmark = [
    pytest.mark.rest,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the worker forks"),
]
COUNT = 18
ASKED_COUNT = 4
CONFIGURED_COUNT = 5
EXCHANGED_COUNT = 6
SEED = 1


OWN_FORMATS = {
    "body_q",
    "joint_q",
    "particle_q",
    "contacts",
    *(group.name for group in asked_groups()),
}


def test_a_share_of_the_hostile_inputs():
    numbers = chosen(COUNT, SEED, range(FIRST_ASKED)) + chosen(
        ASKED_COUNT, SEED, range(FIRST_ASKED, FIRST_CONFIGURED)
    )
    numbers += chosen(CONFIGURED_COUNT, SEED, range(FIRST_CONFIGURED, FIRST_EXCHANGED))
    numbers += chosen(EXCHANGED_COUNT, SEED, range(FIRST_EXCHANGED, FIRST_MIXED))
    result = run_cases(numbers)  # in one worker: each takes seconds to start
    assert [*result.found, *guard_faults(result.crashed)] == []
    assert result.cases == len(numbers)
    assert set(result.codes) == {0, 1, 2}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_all_hostile_inputs(part: int):
    result = run_cases(range(part, WHOLE, 4))
    assert [*result.found, *guard_faults(result.crashed)] == []
    assert result.cases == WHOLE // 4


def test_the_inputs_are_always_the_same(tmp_path: Path):
    made = groups(tmp_path)
    for number in (3, 700, 1300, 1999, FIRST_ASKED, FIRST_MIXED - 1, WHOLE - 1):
        # HDF5 writes the second of a change into the file: of three pairs one at least is made
        # within a second.
        pairs = (
            (case_of(number, made, "/out"), case_of(number, groups(tmp_path), "/out"))
            for _ in range(3)
        )
        assert any(one.files == other.files for one, other in pairs), number
    assert chosen(10, SEED, range(WHOLE)) == chosen(10, SEED, range(WHOLE))


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2, 3))]
)
def test_seeds_are_good(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    """Damage to a file that was never read would show nothing."""
    from collidecli.cli.main import main

    for group in [*groups(tmp_path), *asked_groups(), *configured_groups()][part::4]:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        monkeypatch.chdir(folder)
        for name, data in group.files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(data)
        for command in group.commands:
            args = [group.main if word == "{}" else word for word in command]
            args += ["-o", "out.h5", "--device", "cpu", "--force"] if args[0] == "run" else []
            # Only our own formats are checked.
            wanted = 2 if args[0] == "check" and group.name not in OWN_FORMATS else 0
            for name in ("out.npz", "out.html", "out.h5"):
                Path(name).unlink(missing_ok=True)
            assert main(args) == wanted, (args, capsys.readouterr().err)


GOOD = {
    "code": 2,
    "out": "",
    "err": "error: a.xml: is broken\n  mend it\n",
    "args": ["run", "a.xml", "-o", "out.h5"],
}
GOOD |= {"seconds": 0.1, "peak": 0, "left": [], "opened": []}


@pytest.mark.parametrize(
    "fault",
    [
        {"code": 70, "err": "error: internal error: KeyError: 'a'\n"},
        {"code": -11},
        {"code": 3},
        {"code": 1},
        {"err": "Traceback (most recent call last):\n"},
        {"err": "error: is broken\n"},
        {"err": "error: a.xml: is broken\n" + "  more\n" * 5},
        {"err": "RuntimeWarning: divide by zero\nerror: a.xml: is broken\n"},
        {"err": "error: a.xml: \x1b[2J\n"},
        {"err": "error: a.xml: SECRET-7f3a\n"},
        {"seconds": 11.0},
        {"peak": 2 << 30},
        {"left": [".out.h5.partial"]},
        {"left": ["out.h5"]},
        {"opened": ["secret.h5"]},
        {"code": 0, "err": "", "left": ["out.h5"], "check": 1},
        {"code": 0, "err": "", "left": []},
        {"code": 0, "left": ["out.h5"]},
    ],
    ids=str,
)
def test_the_judge_finds_faults(fault):
    assert list(faults(GOOD)) == []
    assert list(faults({**GOOD, **fault}))


def test_what_is_opened_outside_is_noticed(tmp_path: Path):
    outside = tmp_path / "outside"
    inside = tmp_path / "inside"
    for folder in (outside, inside):
        folder.mkdir()
        (folder / "file.txt").write_text("x")
    code = f"""
import subprocess
from pathlib import Path
from tests.hostile.worker import Opened
opened = Opened(Path({str(outside)!r}), Path({str(inside)!r}))
for path in ({str(inside / "file.txt")!r}, {str(outside / "file.txt")!r}, "/etc/passwd"):
    opened.begin()
    open(path).close()
    print(sorted(opened.end()))
opened.begin()
subprocess.run(["cat", {str(outside / "file.txt")!r}], stdout=subprocess.DEVNULL)  # no Python opens it
print([name for name in opened.end() if not name.startswith("/")])
"""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    seen = done.stdout.splitlines()
    assert seen[:3] == ["[]", "['file.txt']", "['/etc/passwd']"]
    assert sys.platform != "linux" or seen[3] == "['file.txt']"
