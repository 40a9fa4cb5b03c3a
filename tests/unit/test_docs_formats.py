"""Pages of formats, importers, motions and options are held against the code; links and names of the site."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import h5py
import numpy as np
import pytest

from collidecli.cli.main import group
from collidecli.cli.options import variables_of, verbs_of
from collidecli.commands.audit import AuditRequest, write_mask
from collidecli.commands.audit import audit as run_audit
from collidecli.commands.clearance import ClearanceRequest, clearance
from collidecli.commands.label import LabelOptions, LabelRequest, label
from collidecli.commands.timing import TimingReport
from collidecli.scene.motion import Episodes
from collidecli.scene.shape_config import Material, Materials, PairMaterial, PairMaterials
from collidecli.scene.tables import GROUPS, OPTIONAL_COLUMNS, RIGID_COLUMNS
from collidecli.storage.contact_sets.schema import EngineRecord
from collidecli.storage.result_files import write_profile_h5
from collidecli.storage.trajectory_files import TrajectoryWriter
from tests.support import contact_sets as sets
from tests.unit.test_docs import ROOT, of_pages, page

TEXT = page("docs/reference/file-formats.md")
READ_ONLY = {"/particle_q"}
"""Written by other programs; tests/unit/storage/test_trajectories.py writes it."""
ONE = np.zeros(1, np.int64)
EPISODES = Episodes(("a",), ONE.astype(np.int32), ONE, ONE + 2)


def write_contacts(path: Path, rule: str, major: int = 1) -> None:
    model = sets.small_model(1, forced=True)
    count, none = len(model.shapes), np.zeros(0, np.int32)
    pairs = PairMaterials.of([PairMaterial(condim=3) if rule == "mujoco" else None, None])
    shapes = replace(model.shapes, material=Materials.of([Material(friction=1.0, contact_ke=2.0)] * count))
    model = replace(model, shapes=shapes, material_rule=rule, forced_material=pairs)
    block = sets.block_with_groups(model, 2, groups=GROUPS)
    for column in OPTIONAL_COLUMNS:
        shape = (block.contact_count, column.width)[: 1 + (column.width > 1)]
        block.columns[column.name] = np.zeros(shape, column.dtype)
    rules = (True, "both", "plain", True)
    engine = EngineRecord("e", "1", "{}", "3", "float32", *rules, ("exact",) * count, ("",) * count, none, none)
    options = {"columns": (*RIGID_COLUMNS, *OPTIONAL_COLUMNS), "episodes": EPISODES, "major": major}
    options |= {"timing": TimingReport().as_tables(), "engine": engine if major > 1 else None}
    sets.write_contact_set(path, model, block, **options)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Paths of all datasets that collide writes."""
    folder = tmp_path_factory.mktemp("formats")
    pose = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (2, 1, 1, 1))
    for major, rule in enumerate(("combine", "mujoco"), 1):
        write_contacts(folder / f"{rule}.h5", rule, major)
    sizes = {"coordinate_count": 3, "mocap_count": 1, "episodes": EPISODES}
    for name, coordinates in (("a", {"body_q": pose}), (None, {"joint_q": np.zeros((2, 1, 3)), "mocap_q": pose})):
        with TrajectoryWriter(folder / f"{name}.h5", world_count=1, body_names=name, **sizes) as writer:
            writer.append(np.arange(2.0), np.arange(2), **coordinates)
    times = {"repeats": [1.0]}
    counts = dict.fromkeys(("candidates", "touching_pairs", "contacts"), 1)
    phase = {"name": "nxn", "skipped": "", "compute_seconds": times, "wall_seconds": times, "contacts_sha256": "a"}
    phases = [phase | counts | {"stages": {"order": times}}]
    write_profile_h5(folder / "profile.h5", {"repeats": 1, "phases": phases}, False)
    balls = '<body><freejoint/><geom size="1"/></body>' * 2
    (folder / "balls.xml").write_text(f"<mujoco><worldbody>{balls}</worldbody></mujoco>")
    clearance(ClearanceRequest(scenes=[str(folder / "balls.xml")], output=str(folder / "clearance.h5")))
    slipping = str(folder / "combine.h5")
    label(LabelRequest(slipping, str(folder / "labels.h5"), LabelOptions(slip=True)))
    write_mask(str(folder / "mask.h5"), run_audit(AuditRequest(contacts=slipping)), False)
    found: set[str] = set()
    for path in folder.glob("*.h5"):
        with h5py.File(path) as file:
            file.visititems(lambda name, item: found.add(f"/{name}") if isinstance(item, h5py.Dataset) else None)
    return found


def documented() -> set[str]:
    """Every dataset of a table of the page: `/group/name`, with `name` after it of the group before."""
    found: set[str] = set()
    group = ""
    for line in TEXT.splitlines():
        head = re.match(r"\| (?:table of `(/[\w/]+)`|(column|path|dataset)) \|", line)
        if head:
            group = head[1] or {"column": "/rigid_contacts", "path": "", "dataset": ""}[head[2]]
        elif not line.startswith("|"):
            group = "-"
        elif group != "-":
            here = group
            for name in re.findall(r"`(/?\w[\w/]*)`", line.split("|")[1]):
                full = name if name.startswith("/") else f"{here}/{name}"
                here = full.rpartition("/")[0]
                found.add(full)
    return found


def prose(group: str) -> set[str]:
    """Names in backticks of the paragraphs that begin with or mention a group or its datasets."""
    parts = [part for part in TEXT.split("\n\n") if f"`{group}" in part and not part.startswith("|")]
    return {f"{group}/{name}" for part in parts for name in re.findall(r"`([a-z]\w*)`", part)}


def test_every_dataset_of_the_page_is_written(written):
    tables = documented()
    assert len(tables) > 60
    assert tables - written == READ_ONLY
    paths = set(re.findall(r"`(/[a-z_]\w*(?:/\w+)*)`", TEXT))
    groups = {path.rpartition("/")[0] for path in written} | {"/model", "/engine"}
    assert paths - written - groups == READ_ONLY


def test_every_dataset_that_is_written_is_on_the_page(written):
    named = documented() | prose("/timing") | prose("/timing/chunk") | prose("/model/forced_pair")
    named |= set(re.findall(r"`(/(?:time|content_hash)/\w+)`", TEXT))
    stages = {path for path in written if path.startswith("/timing/chunk/") and path.endswith("_seconds")}
    assert "`<stage>_seconds`" in TEXT
    assert written - named - stages == set()


def test_the_root_attributes_are_on_the_page(tmp_path):
    write_contacts(tmp_path / "a.h5", "combine", 2)
    with h5py.File(tmp_path / "a.h5") as file:
        attributes = set(file.attrs) | set(file["model"].attrs) | set(file["engine"].attrs)
        assert json.loads(str(file.attrs["config"]))
    assert attributes <= set(re.findall(r"`(\w+)`", TEXT))


CONTEXT = click.Context(group, info_name="collide")
VERBS = verbs_of(CONTEXT)
OF_OTHERS = {
    *("--force-regen", "--regen-all", "--with-test-class-names", "--basetemp"),  # pytest and pytest-regressions
    *("--clock", "--into"),  # tests.bench and tests.matrix
    *("--no-deps", "--only-binary", "--python-version", "--platform"),  # pip
    *("--nthreads", "--cpus-per-task", "--mem-per-cpu", "--array"),  # dask worker and sbatch
}


def options(verb: click.Command) -> set[str]:
    return {name for option in verb.get_params(CONTEXT) for name in (*option.opts, *option.secondary_opts)}


def check_options(lines: list[str]) -> None:
    """Every option of a line `VERB ...` of collide is one of that verb."""
    for line in lines:
        for verb in [verb for verb in VERBS if line.startswith(f"{verb} ")]:
            given = set(re.findall(r"(?<!\S)--?[a-z][a-z0-9-]*(?=[ =]|$)", line.split("|")[0].split(" #")[0]))
            assert given <= options(VERBS[verb]), line


@of_pages
def test_options_and_variables_exist(path):
    text = path.read_text(encoding="utf-8")
    known = {name for verb in VERBS.values() for name in options(verb)} | {"--version", "--help"} | OF_OTHERS
    assert set(re.findall(r"(?<![-\w])--[a-z][a-z0-9-]+", text)) <= known
    variables = {name for words, verb in VERBS.items() for name in variables_of(verb, words)}
    assert set(re.findall(r"\bCOLLIDE_[A-Z_]*[A-Z]\b", text)) <= variables
    check_options(re.findall(r"^ *\$? ?collide (.+)$", text, re.M))


@pytest.mark.parametrize("words", VERBS)
def test_help_is_complete(words):
    verb = VERBS[words]
    assert verb.help
    assert f"collide {words}" in (verb.epilog or ""), "an example"
    for option in verb.params:
        if isinstance(option, click.Option):
            assert option.help, option.name
            assert not option.help.startswith("["), option.name
    check_options(re.findall(r"^collide (.+)$", verb.epilog or "", re.M))


FOLDER = ROOT / "docs"
KINDS = ("tutorial", "howto", "reference", "explanation")
SITE_PAGES = [path for kind in KINDS for path in sorted((FOLDER / kind).glob("*.md"))]
OPENING = {
    "tutorial": r"After (this|these) ",
    "howto": r"After this page |Each page solves",
    "reference": r"Look up here ",
    "explanation": r"After reading this page |Read here ",
}


@pytest.mark.parametrize("path", SITE_PAGES, ids=lambda p: str(p.relative_to(FOLDER)))
def test_page_begins_with_its_use(path):
    title, opening = path.read_text(encoding="utf-8").split("\n\n")[:2]
    assert re.fullmatch(r"# .*", title)
    assert re.match(OPENING[path.parent.name], opening), opening


def test_every_page_is_in_the_index_of_its_kind():
    for path in SITE_PAGES:
        listed = path.with_name("index.md").read_text(encoding="utf-8").splitlines()
        assert path.stem in ("index", *listed), path


def test_every_figure_is_used_and_the_readme_is_short():
    assert len(page("README.md").splitlines()) <= 120
    text = "".join(path.read_text(encoding="utf-8") for path in SITE_PAGES)
    script = "".join(path.read_text(encoding="utf-8") for path in (FOLDER / "figures").glob("make_*.py"))
    for figure in (FOLDER / "figures").glob("*.svg"):
        assert f"figures/{figure.name})" in text, figure.name
        assert f'"{figure.stem}")' in script, figure.name


def test_site_builds_without_warnings(tmp_path):
    for name in ("sphinx", "myst_parser", "pydata_sphinx_theme", "sphinx_click"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed: pip install '.[docs]'")
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", str(FOLDER), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "searchindex.js").exists()
