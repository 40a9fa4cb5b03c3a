"""Paths that are not UTF-8, in files, folders and the current folder: every verb takes them, or
refuses them by name."""

import os
from pathlib import Path

import pytest

from collidecli.errors import InputError
from collidecli.escaping import unicode_text, utf8
from collidecli.storage.regular_files import require_text_path
from tests.cli.conftest import (
    SCENE,
    CommandLine,
    collide,
    here,
    in_process,
    ran,
    write_jobs,
    write_motion,
)
from tests.hostile.seeds import PART_USDA

__all__ = ["collide", "here", "in_process", "ran"]

BYTES = os.fsdecode(b"\xff\xfe")
SHOWN = unicode_text(BYTES)
PLACES = ["names", "folder", "current folder"]
WORKS = (
    "run scene.xml -t {m}.h5 -o {new}.h5 --device cpu --trace {new}.json",
    "run scene.xml -t {m}.h5 -o {new}.h5 --device cpu --json",
    "run scene.xml -t {demos} -o {new} --device cpu",
    "inspect {m}.h5",
    "inspect {a}.h5 --json",
    "inspect scene.xml --config {c}.toml",
    "check {a}.h5 --json",
    "check {m}.h5",
    "diff {a}.h5 {a}.h5 --markdown {new}.md --junit-xml {new}.xml",
    "diff {a}.h5 {a}.h5 --json",
    "events {a}.h5 --csv {new}.csv --parquet {new}.parquet --dot {new}.dot",
    "events {a}.h5 --json",
    "export {a}.h5 --to usd -o {new}.usda",
    "export {a}.h5 --to csv -o {new}.csv",
    "export {a}.h5 --to parquet -o {new}.parquet",
    "export {a}.h5 --to npz -o {new}.npz",
    "export {a}.h5 --to mcap -o {new}.mcap",
    "label {a}.h5 -o {new}.npz",
    "label {a}.h5 -o {new}.parquet",
    "label {a}.h5 -o {new}.h5 --json",
    "label {a}.h5 {m2}.h5 -o {new}.parquet",
    "report {a}.h5 -o {new}.html",
    "plot {a}.h5 -o {new}.svg",
    "view {a}.h5 --scene scene.xml -t {m}.h5 --export {new}.html",
    "view {a}.h5 --export {new}.html --json",
    "view {a}.h5 --export {new}.rrd --to rerun",
    "view {a}.h5 --no-browser",
    "textconv {a}.h5",
    "record scene.xml --frames 2 -o {new}.h5 --json",
    "profile scene.xml -t {m}.h5 --device cpu -o {new}.h5",
    "audit scene.xml -t {m}.h5 --device cpu --json",
    "fidelity scene.xml -t {m}.h5 --engines mujoco --json",
    "traj convert {m}.h5 --scene scene.xml -o {new}.h5",
)
REFUSED = (
    ("inspect {scene}.xml", "MuJoCo"),
    ("run {scene}.xml --device cpu", "MuJoCo"),
    ("record {scene}.xml --frames 2 -o {new}.h5", "MuJoCo"),
    ("fidelity {scene}.xml --engines mujoco", "MuJoCo"),
    ("inspect {scene}.usda", "OpenUSD"),
    ("run {scene}.usda -o {new}.h5 --device cpu", "OpenUSD"),
    ("run part.usda -t {scene}.usda -o {new}.h5 --device cpu", "OpenUSD"),
    ("inspect scene.xml --asset-map x={new}", "scene"),
    ("batch plan jobs.toml -o {new}", "the plan of a batch"),
)


def filled(top: Path, place: str) -> dict[str, str]:
    """Names of files without their endings, by place, in the current folder; the files of inputs
    are there."""
    folder = top / BYTES
    folder.mkdir()
    if place == "current folder":
        (folder / "scene.xml").write_text(SCENE)
        (folder / "part.usda").write_text(PART_USDA)
        os.chdir(folder)
    before = f"{BYTES}/" if place == "folder" else ""
    names = ("m", "m2", "a", "c", "demos", "new", "scene")
    return {name: f"{before}{name}{BYTES}" for name in names}


@pytest.fixture
def places(here: Path, ran, monkeypatch: pytest.MonkeyPatch):
    """places(place): as `filled`, with the inputs of all verbs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    (here / "part.usda").write_text(PART_USDA)
    contacts = Path(ran("out.h5")).read_bytes()

    def make(place: str) -> dict[str, str]:
        names = filled(here, place)
        write_motion(Path(f"{names['m']}.h5"))
        for name in ("a", "m2"):
            Path(f"{names[name]}.h5").write_bytes(contacts)
        Path(f"{names['c']}.toml").write_text("")
        Path(f"{names['scene']}.xml").write_text(SCENE)
        Path(f"{names['scene']}.usda").write_text(PART_USDA)
        Path(names["demos"]).mkdir()
        write_motion(Path(names["demos"]) / f"d{BYTES}.h5", 4)
        return names

    return make


@pytest.mark.share(30)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", WORKS)
def test_a_verb_takes_the_path(places, collide: CommandLine, command: str, place: str):
    names = places(place)
    collide.ok(*(word.format(**names) for word in command.split()))


@pytest.mark.share(4)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("command", "user"), REFUSED)
def test_the_path_is_refused_by_name(
    places, collide: CommandLine, command: str, user: str, place: str
):
    names = places(place)
    write_jobs(Path("."), [])
    write_motion(Path("demos") / f"d{BYTES}.h5", 4)
    words = [word.format(**names) for word in command.split()]
    message = collide.refused(*words, told=(SHOWN, "the path is not UTF-8"))
    assert user in message or place == "current folder"


@pytest.mark.rest
@pytest.mark.usefixtures("in_process")
def test_a_batch_in_such_a_folder(here: Path, collide: CommandLine):
    """A table of its files would have names that open none."""
    write_jobs(here, [4])
    collide.ok("batch run jobs.toml -o", BYTES)
    collide.ok("batch status", BYTES)
    told = (f"{SHOWN}: the path is not UTF-8", "the table of its files")
    collide.refused("batch gather", BYTES, "-o", "contacts.parquet", told=told)
    collide.ok("batch gather", BYTES, "-o", f"{BYTES}2", "--to", "lerobot")


def test_texts_of_such_paths():
    assert unicode_text("Größe") == "Größe"
    assert utf8(f"a{BYTES}") == rb"a\udcff\udcfe"
    require_text_path("Größe", "MuJoCo")
    with pytest.raises(InputError, match="the path is not UTF-8, which MuJoCo requires"):
        require_text_path(Path(BYTES), "MuJoCo")
