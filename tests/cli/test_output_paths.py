"""Output paths that cannot be written: one message, and no file that was not there before."""

import os
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
import pytest

import collidecli
from collidecli.cli.main import group
from collidecli.cli.settings import VerbOption, verbs_of
from collidecli.errors import OutputError
from tests.cli.conftest import CommandLine
from tests.support.contact_sets import Touch, touching_set

COMMANDS = (
    "run scene.xml -t motion.h5 -o {}.h5",
    "run scene.xml -t motion.h5 -o ok.h5 --trace {}.json",
    "merge out.h5 later.h5 -o {}.h5",
    "label out.h5 -o {}.parquet",
    "label out.h5 -o {}.npz",
    "label out.h5 -o {}.h5",
    "label out.h5 -o ok.npz --chart {}.svg",
    "events out.h5 --csv {}.csv",
    "events out.h5 --parquet {}.parquet",
    "events out.h5 --dot {}.dot",
    "export out.h5 --to usd -o {}.usda",
    "export out.h5 --to usd -o {}.usdc",
    "export out.h5 --to mcap -o {}.mcap",
    "export out.h5 --to csv -o {}.csv",
    "export out.h5 --to parquet -o {}.parquet",
    "export out.h5 --to npz -o {}.npz",
    "export out.h5 --to newton -o {}.npz",
    "report out.h5 -o {}.html",
    "plot out.h5 -o {}.svg",
    "plot out.h5 -o {}.png",
    "view out.h5 --points-only --export {}.html",
    "audit out.h5 --mask {}.npz",
    "clearance scene.xml -t motion.h5 -o {}.parquet",
    "audit out.h5 --chart {}.svg",
    "audit out.h5 --html {}.html",
    "audit out.h5 --junit-xml {}.xml",
    "audit out.h5 --markdown {}.md",
    "clearance scene.xml -t motion.h5 -o {}.csv",
    "clearance scene.xml -t motion.h5 --plot {}.svg",
    "probe scene.xml -t motion.h5 --vertices-of ball -o {}.h5",
    "matrix robot.urdf --samples 5 -o {}.json",
    "engine pack scene.xml -t motion.h5 -o {}.npz",
    "run scene.xml -t motion.h5 --engine mujoco -o {}.h5",
    "fidelity scene.xml -t motion.h5 --engines mujoco -o {}.html",
    "fidelity scene.xml -t motion.h5 --engines mujoco --view {}.html",
    "fidelity scene.xml -t motion.h5 --engines mujoco --junit-xml {}.xml",
    "fidelity scene.xml -t motion.h5 --engines mujoco --markdown {}.md",
    "traj convert motion.h5 --scene scene.xml -o {}.h5",
    "record scene.xml --frames 3 -o {}.h5",
    "profile scene.xml -t motion.h5 -o {}.h5",
    "profile scene.xml -t motion.h5 -o ok.h5 --json-out {}.json",
    "profile scene.xml -t motion.h5 -o ok.h5 --trace {}.json",
    "diff out.h5 later.h5 --junit-xml {}.xml",
    "diff out.h5 later.h5 --markdown {}.md",
)
NOT_TESTED = {("export", "--scene"), ("export", "-t"), ("import", "-o")}
"""Inputs, and an output that `run --engine` writes too."""
LONG = "n" * 300
BALL = '<collision><geometry><sphere radius=".1"/></geometry></collision>'
ROBOT = f"""<robot name="r"><link name="a">{BALL}</link><link name="b">{BALL}</link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><origin xyz="1 0 0"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


def _there(make: Callable[[str], object]) -> Callable[[str], str]:
    """A path of which something is made."""

    def prepared(ending: str) -> str:
        make(f"odd{ending}")
        return "odd"

    return prepared


PATHS: dict[str, Callable[[str], str]] = {
    "a folder": _there(os.mkdir),
    "in a file": lambda ending: "out.h5/odd",
    "a full device": _there(lambda name: os.symlink("/dev/full", name)),
    "a terminal": _there(lambda name: os.symlink("/dev/tty", name)),
    "a pipe": _there(os.mkfifo),
    "a link to itself": _there(lambda name: os.symlink(name, name)),
    "below a file": lambda ending: "new/../out.h5/deep/odd",
    "a long name": lambda ending: LONG,
    "a long path": lambda ending: "/".join([LONG[:200]] * 30),
    "in a folder that takes none": lambda ending: "/proc/odd",
}


NAMES = ("two\nlines", "not UTF-8 \udcff", " spaces ", "\x1b[31mred")


@pytest.fixture
def inputs(here: Path, collide: CommandLine) -> CommandLine:
    """The command line in a folder with scene.xml, motion.h5, robot.urdf, out.h5 and later.h5."""
    Path("robot.urdf").write_text(ROBOT)
    rows = [Touch(frame, 0, 0, 1, -0.01) for frame in range(3)]
    for number, name in enumerate(("out.h5", "later.h5")):
        found = touching_set(rows, 3, 1, time=[3.0 * number + k for k in range(3)])
        replace(found, step=found.step + 3 * number).write(here / name)
    return collide


def words_of(command: str, name: str) -> list[str]:
    return [word.replace("{}", name) for word in shlex.split(command)]


def files() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


@pytest.mark.share(10)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_cannot_be_written(inputs, command, path):
    (ending,) = (word[2:] for word in shlex.split(command) if word.startswith("{}"))
    odd = PATHS[path](ending)
    before = {*Path().rglob("*")}
    for force in ([], ["--force"]):
        inputs.refused(*words_of(command, odd), *force, code=3)
    assert {*Path().rglob("*")} == before


def test_every_option_of_an_output_file_is_tested():
    context = click.Context(group, info_name="collide")
    known = set(NOT_TESTED)
    for command in COMMANDS:
        words = shlex.split(command)
        verb = " ".join(words[: 2 if words[0] in ("traj", "engine") else 1])
        known.add((verb, words[next(k for k, word in enumerate(words) if "{}" in word) - 1]))
    found = {
        (verb, name)
        for verb, command in verbs_of(context).items()
        for option in command.params
        if isinstance(option, VerbOption) and option.section == "Output"
        for name in option.opts[:1]
        if option.metavar and "FILE" in option.metavar
    }
    assert found == known


@pytest.mark.parametrize("command", COMMANDS)
def test_an_empty_path_is_refused(inputs, command):
    """As of a variable of a shell that is not set: not taken for an option that is not given."""
    words = ["" if "{}" in word else word for word in shlex.split(command)]
    before = files()
    inputs.refused(*words, told="the path is empty")
    assert files() == before


def test_an_empty_path_is_refused_in_python(inputs):
    for call in (
        lambda: collidecli.run("scene.xml", "motion.h5", output=""),
        lambda: collidecli.merge(["out.h5", "later.h5"], ""),
        lambda: collidecli.record("scene.xml", "", 3),
    ):
        with pytest.raises(OutputError, match="the output path is empty"):
            call()


@pytest.mark.parametrize("words", [("-t", ""), ("--pairs-file", ""), ("--cache-dir", "")])
def test_an_empty_path_of_an_input_is_refused(inputs, words):
    inputs.refused("run scene.xml -o new.h5", *words, told="the path is empty")


@pytest.mark.share(10)
@pytest.mark.parametrize("command", COMMANDS)
def test_missing_folders_are_made(inputs, command):
    answer = inputs(*words_of(command, "new/deep/ours"))
    assert answer.code in (0, 1), answer.err
    made = [path for path in Path("new").rglob("*") if path.is_file()]
    assert made
    assert all(path.name.startswith("ours") for path in made)


@pytest.mark.share(6)
# diff writes a report of a damaged input
@pytest.mark.parametrize("command", [one for one in COMMANDS if not one.startswith("diff")])
def test_folders_are_not_left_without_an_output(inputs, command):
    """Damaged inputs, which are read after the outputs have been checked."""
    for name in ("scene.xml", "motion.h5", "robot.urdf", "out.h5", "later.h5"):
        content = Path(name).read_bytes()
        Path(name).write_bytes(content[: len(content) // 2])
    before = {*Path().rglob("*")}
    inputs.refused(*words_of(command, "new/deep/ours"))
    assert {*Path().rglob("*")} == before


@pytest.mark.share(8)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", NAMES)
def test_an_odd_name_is_escaped_in_messages(inputs, command, name):
    words = words_of(command, name)
    answer = inputs(*words)
    assert answer.code in (0, 1), answer.err
    assert [path for path in files() if Path(path).name.startswith(name)]
    assert not [c for c in answer.out + answer.err if c in "\x1b\udcff"]
    again = inputs.refused(*words, code=3)
    assert not [c for c in again if c in "\x1b\udcff"]


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.endswith("{}.h5")])
def test_an_output_that_is_an_input(inputs, command):
    read = next(word for word in ("motion.h5", "scene.xml", "out.h5") if word in command)
    before = files()
    os.symlink(read, "link.h5")
    os.link(read, "twin.h5")
    for name in ("link", "twin", *[Path(read).stem] * read.endswith(".h5")):
        answer = inputs(*words_of(command, name), "--force")
        assert (answer.code, answer.out) == (3, ""), answer
        assert answer.err.count("error: ") == 1
        Path("link.h5").unlink(missing_ok=True)
    Path("twin.h5").unlink()
    assert files() == before
