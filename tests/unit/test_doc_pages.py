"""Pages of the documentation from top to bottom: each command has its files and writes new ones."""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest

from collidecli.cli import main as cli
from collidecli.cli.scene_inputs import default_output
from collidecli.errors import InputError
from collidecli.verbs.run.command import ENDING
from tests.support.doc_examples import FENCE, collide_lines, joined
from tests.support.doc_names import ROOT, pages

pytestmark = pytest.mark.rest

INDENTED = re.compile(r"^    (collide (?:.*\\\n)*.*)$", re.M)
MADE_UP = re.compile(r"[<>]\S*>|\.\.\.|\b(SCENE|FILE|DIR|VERB|OUT)\b")
"""Words of a pattern of commands, which nobody types."""

COMMENT = re.compile(r"\s#\s.*")
NO_FILE = re.compile(
    r"[Nn]o such|matches no file|cannot be read|no device"
    r"|near/: a file of distances|sensed/: a file of sensors"  # without the folder of recordings it is taken for a file
)
OUTPUTS = ("output", "csv", "plot", "mask", "export", "junit_xml", "html")
SLOW = {"check-your-engine", "compare-engines", "profile-broad-phases", "04_meshes"}
"""Pages that start other engines, repeat measurements or build signed distance fields."""

MAKES_A_FILE = re.compile(
    r'File\("\w+\.\w+", "w"\)|np\.save|write_text|Writer\(|open\("\w+\.\w+", "w"\)'
)
"""Blocks of Python that are run: those that make files which commands then read."""

OWN = {
    "audit-a-motion": {"out.h5", "demos/*.h5", "nightly", "motion.npz"},
    "batch": {"nightly"},
    "check-your-engine": {"my_adapter.py"},
    "compare-engines": {"old/bin/python"},
    "check-a-ros-recording": {"drive.mcap", "plan.mcap"},
    "ci": {"tests/test_contacts/fall.h5", "baseline/results/4a/4a….h5"},
    "cli": {
        *("demos/*.h5", "monday/", "scenes/*.usda", "out/", "robot.xml", "near/", "sensed/"),
        *("baselines/", "baseline.h5", "first.h5", "states.npy", "retargeted/"),
    },
    "compare-contact-sets": {"moved.xml", "baselines/", "baseline/scene.xml", "baseline/motion.h5"},
    "export-contacts": {"cloth.contacts.h5", "surfaces.contacts.h5", "drive.mcap"},
    "first-run-on-a-gpu": {"cuda"},
    "follow-contacts": {"motion.h5"},
    "label-contacts": {"demos/", "nightly", "g1_29dof_rev_1_0.urdf", "g1.toml", "h1.toml"},
    "list-touches": {"runs/*.h5"},
    "mjcf": {"motion.h5", "arm.xml"},
    "my-recording-is-not-recognised": {"log.h5"},
    "my-robot-does-not-load": {
        "arm.urdf",
        "drawn.urdf",
        "hand.urdf",
        "robot.urdf",
        "scene.usda",
        "kitchen.usd",
        "yard.usd",
        "hall.usd",
    },
    "recordings": {"g1.xml", "retargeted/", "episode_0.hdf5"},
    "reduce-contacts": {"scene.xml"},
    "report": {"out.h5", "now.h5", "runs/*.h5"},
    "scenes": {"kitchen.usd", "motion.npz", "robot.urdf"},
    "usd-environments": {"envs.usda"},
    "which-pairs-may-touch": {"motion.npz", "robot.urdf"},
}
"""Files of the reader that a page names and does not make, by the page's name."""


@dataclass
class Follower:
    """A reader who types the commands of a page; see `follow`.

    own: files of the reader that are not here.
    pending: outputs of commands that need such files.
    """

    own: set[str]
    pending: set[str] = field(default_factory=set)

    def follow(self, line: str, capsys: pytest.CaptureFixture[str]) -> None:
        """Runs a command; it may need a file of the reader, but never has its output made
        before."""
        typed, _, target = line.partition(" > ")
        words = shlex.split(COMMENT.sub("", typed))[1:]
        new = self.outputs(words) | {target.strip()} - {""}
        twice = {name for name in new & self.pending if not name.endswith("/")}
        assert "--force" in words or not twice, f"{line}: {twice} are written twice"
        opens_a_window = "rerun" in words and "--export" not in words
        if opens_a_window or words[0] == "batch":  # whose jobs and machines are the reader's
            self.pending |= new
            return
        code, out, err = run(words, capsys)
        if code == 2:
            missing = [name for name in self.own | self.pending if name.rstrip("/") in err]
            assert NO_FILE.search(err), f"{line}: {err}"
            assert missing, f"{line}: {err}"
            self.pending |= new
            return
        assert code in (0, 1), f"{line}: exit code {code}: {err}"
        if re.match(r"[\w.]+\s*$", target):
            Path(target.strip()).write_text(out, encoding="utf-8")

    def outputs(self, words: list[str]) -> set[str]:
        """Files that a command writes, as its options name them."""
        try:
            given = context_of(words)
        except InputError:  # without the reader's configuration
            return {words[words.index("-o") + 1]} if "-o" in words else set()
        if given is None:
            return set()
        found = {str(given.params[name]) for name in OUTPUTS if given.params.get(name)}
        if words[0] == "run" and not given.params.get("output"):
            scenes = given.params["scenes"]
            motions = given.params["trajectory"]
            motion = motions[0] if isinstance(motions, tuple) and motions else motions or None
            found.add(default_output(scenes, motion, ENDING))
        return found - {"True", "-"}


def context_of(words: list[str]) -> click.Context | None:
    """The options of a verb's command; None for a group's, and for `--version`."""
    root = click.Context(cli.group, info_name="collide")
    command = cli.group.get_command(root, words[0])
    if command is None or isinstance(command, click.Group):
        return None
    return command.make_context(words[0], list(words[1:]), parent=root)


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    capsys.readouterr()
    try:
        code = cli.main(words)
    except SystemExit as ended:
        code = ended.code
    except InputError as error:  # of a configuration, which the guard process reads
        return 2, "", str(error)
    out, err = capsys.readouterr()
    return int(code or 0), out, err


def steps(text: str) -> list[tuple[str, str, str]]:
    """File name, language and body of each block; indented commands are blocks without both."""
    found = [(match.start(), match.groups()) for match in FENCE.finditer(text)]
    outside = FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    found += [(match.start(), ("", "", match[1])) for match in INDENTED.finditer(outside)]
    return [(name or "", language, body) for _, (name, language, body) in sorted(found)]


def commands(body: str) -> list[str]:
    """Commands of collide of a block."""
    return [line for line in collide_lines(body) if not MADE_UP.search(line)]


def has_commands(path: Path) -> bool:
    return any(commands(body) for _, _, body in steps(path.read_text(encoding="utf-8")))


def is_slow(path: Path) -> bool:
    return bool(SLOW & {path.stem, path.parent.name})


FOLLOWED = [
    pytest.param(
        path,
        id=str(path.relative_to(ROOT)),
        marks=[pytest.mark.slow] if is_slow(path) else [],
    )
    for path in pages()
    if has_commands(path)
]


@pytest.mark.share(3, 3)
@pytest.mark.parametrize("path", FOLLOWED)
@pytest.mark.usefixtures("own_cache")
def test_the_commands_of_a_page_run_in_order(path, tmp_path, monkeypatch, capsys):
    """In an empty folder, but for the samples."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    found = steps(path.read_text(encoding="utf-8"))
    for name, _, body in reversed(found):
        if name:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(body, encoding="utf-8")
    reader = Follower(OWN.get(path.stem, set()))
    for name, language, body in found:
        if name:
            Path(name).write_text(body, encoding="utf-8")
        elif language == "python" and MAKES_A_FILE.search(body):
            exec(compile(body, "example", "exec"), {})
        elif language in ("", "sh", "bash"):
            for line in commands(body):
                reader.follow(line, capsys)


FIGURES = ("pairs tested", "without contact", "contacts ")
"""Rows of a profile that are equal on every machine."""


def words_of_rows(table: str) -> list[str]:
    """The head and the first words of each row of a table, without those of figures alone."""
    lines = [re.sub("─+", "─", line) for line in table.splitlines() if line.strip()]
    firsts = [re.split(r"  +", line.strip())[0] for line in lines]
    return [first for first in firsts if not re.match(r"\d", first)]


@pytest.mark.usefixtures("own_cache")
def test_the_page_of_profile_shows_a_real_table(tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs/howto/profile-broad-phases.md").read_text(encoding="utf-8")
    command, shown = (body for name, language, body in steps(page)[:2] if not name + language)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    words = shlex.split(joined(command))[1:]
    once = [*words[: words.index("--repeats")], "--repeats", "1", "--device", "cpu"]
    code, out, _ = run(once, capsys)
    assert code == 0
    real = out[out.index("  nxn ") : out.index("written")]
    assert words_of_rows(shown) == words_of_rows(real)
    assert shown.split("\n")[0].split() == real.split("\n")[0].split()
    for rows in FIGURES:
        of_shown, of_real = (re.findall(rf"^ ?{rows}.*$", text, re.M) for text in (shown, real))
        assert [line.split() for line in of_shown] == [line.split() for line in of_real] != []
