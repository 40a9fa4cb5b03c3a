"""The hostile inputs by number: crafted ones, damaged sets and settings, and damage drawn from the
number."""

import io
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import h5py

from collidecli.scene.option_values import GROUP_NAMES
from tests.hostile import crafted_arrays, crafted_hdf5, crafted_mjcf, crafted_pickles, crafted_usd
from tests.hostile.crafted_hdf5 import ATTRIBUTES, DATASET_CHANGES, set_attribute
from tests.hostile.mutators import damaged
from tests.hostile.seeds import GOLDEN, ROBOT_XML, Group, body_poses, hdf5

# Damaged contact sets for the verbs that ask something of them, each beside a good one.

_ASKED: dict[str, tuple[tuple[str, ...], ...]] = {
    "compared": (
        ("diff", "{}", "good.h5"),
        ("diff", "good.h5", "{}", "--pairs-only"),
        ("textconv", "{}"),
    ),
    "when": (
        ("events", "{}", "--csv", "out.csv", "--parquet", "out.parquet", "--graph"),
        ("events", "{}", "--by", "bodies", "--merge-gap", "20ms", "--sort", "depth"),
        ("label", "{}", "-o", "out.npz", "--leave", "1mm", "--min-frames", "2"),
        ("label", "{}", "-o", "out.labels.parquet", "--by", "shapes"),
        ("audit", "{}", "--mask", "mask.npz"),
    ),
    "joined": (
        ("merge", "{}", "later.h5", "-o", "out.h5"),
        ("merge", "later.h5", "{}", "-o", "out.h5", "--force"),
    ),
    "written": (
        ("export", "{}", "--to", "csv", "-o", "out.csv"),
        ("export", "{}", "--to", "parquet", "-o", "out.parquet"),
        ("export", "{}", "--to", "npz", "-o", "out.npz"),
    ),
    "laid out": tuple(
        ("export", "{}", "--to", name, "-o", "out.npz")
        for name in ("newton", "genesis", "dart", "raisim")
    ),
    "drawn": (
        ("report", "{}", "-o", "out.html"),
        ("plot", "{}", "-o", "out.svg"),
        ("view", "{}", "--points-only", "--frames", "0:2", "--export", "out.html"),
    ),
}


NOT_KEPT = ("sweep", "soft_sweep", "self_sweep", "touches", "candidates")
"""Groups that no kept file has."""
_ASKED_OF_GROUPS: dict[str, tuple[tuple[str, ...], ...]] = {
    "when": (
        (
            "events",
            "{}",
            "--by",
            "particles",
            "--csv",
            "each.csv",
            "--parquet",
            "each.parquet",
            "--graph",
        ),
    ),
    "written": tuple(
        ("export", "{}", "--to", to, "--group", name, "-o", f"{name}.{to}")
        for name in GROUP_NAMES
        if name not in NOT_KEPT
        for to in ("csv", "npz")
    ),
    "drawn": tuple(
        ("plot", "{}", "--kind", kind, "-o", f"{kind}.svg") for kind in ("forces", "particles")
    ),
}
"""Commands besides, of sets with groups beside the rigid contacts."""


def asked_groups() -> list[Group]:
    """A group for each kind of question, of sets without and with groups beside the rigid
    contacts."""
    found = []
    for version, more in (("1_1", {}), ("1_3", _ASKED_OF_GROUPS)):
        good = GOLDEN.with_name(f"contacts_{version}.h5").read_bytes()
        files = {"contacts.h5": good, "good.h5": good, "later.h5": hdf5(_later, good)}
        for name, made in _ASKED.items():
            commands = (("check", "{}"), *made, *more.get(name, ()))
            found.append(
                Group(
                    f"asked of {version}, {name}", "contacts.h5", files, ("contacts.h5",), commands
                )
            )
    return found


def _later(file: h5py.File) -> None:
    """The same contacts in frames of their own, so that both can be joined."""
    for name, more in (("/time/step", 1000), ("/time/time", 100.0)):
        file[name][:] = file[name][()] + more  # pyright: ignore[reportIndexIssue]


def damaged_set(seed: bytes, rng: random.Random) -> bytes:
    """Bytes that were damaged, which most often no library reads, or a whole file that holds what
    it should not."""
    kind = rng.random()
    if kind < 0.3:
        return damaged(seed, rng)
    with h5py.File(io.BytesIO(seed)) as file:
        names: list[str] = []
        file.visititems(
            lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None
        )
        attributes = sorted(file.attrs)
    if kind < 0.4:
        name = rng.choice(attributes)
        value = ATTRIBUTES[rng.choice(sorted(ATTRIBUTES))]
        return hdf5(partial(set_attribute, name=name, value=value), seed)
    change = DATASET_CHANGES[rng.choice(sorted(DATASET_CHANGES))]
    return hdf5(lambda file: change(file, rng.choice(sorted(names))), seed)


# Damaged files of other kinds than scenes, recordings and contact sets: settings, jobs, plans,
# failures, profiles.

SETTINGS = """broad-phase = "sap"
gap = 0.01
threads = 1
max-contacts-per-pair = 4

[run]
frames = "0:2"
narrow-phase = "mpr"

[profile]
repeats = 2
"""
JOBS = """[[job]]
name = "robot"
scene = "robot.xml"
motion = ["body_q.h5"]
options = { gap = 0.01, device = "cpu", frames = "0:2" }
"""


@cache
def configured_groups() -> list[Group]:
    """A group for each kind of file."""
    robot = {"robot.xml": ROBOT_XML.replace('<include file="part.xml"/>', "").encode()}
    poses = {"body_q.h5": hdf5(body_poses)}
    read = (("inspect", "robot.xml"), ("run", "robot.xml"))
    files = {**robot, "collide.toml": SETTINGS.encode()}
    found = [Group("settings", "collide.toml", files, ("collide.toml",), read)]
    plan = (("batch", "plan", "jobs.toml", "-o", "B"),)
    found.append(
        Group(
            "jobs",
            "jobs.toml",
            {**robot, **poses, "jobs.toml": JOBS.encode()},
            ("jobs.toml",),
            plan,
        )
    )
    status = (("batch", "status", "B"), ("batch", "gather", "B", "-o", "out.parquet"))
    for name, main in (
        ("plan", "B/plan.parquet"),
        ("failure", "B/failed/x.json"),
        ("log", "B/events/000000/x.jsonl"),
    ):
        found.append(Group(name, main, _batch(), (main,), status))
    contacts = {"contacts.h5": GOLDEN.with_name("contacts_1_1.h5").read_bytes()}
    for name, data in _profiles().items():
        drawn = ("plot", "contacts.h5", "--profile", name, "--kind", "phases", "-o", "out.svg")
        page = ("report", "contacts.h5", "--profile", name, "-o", "out.html")
        found.append(Group("profile", name, {**contacts, name: data}, (name,), (page, drawn)))
    return found


def _batch() -> dict[str, bytes]:
    """A plan of one episode, which has failed."""
    from collidecli.verbs.batch.episodes import Episode, EpisodeTable
    from collidecli.verbs.batch.plan import Plan, write_plan
    from collidecli.verbs.batch.store import PLAN, Failure, Store
    from collidecli.verbs.run.run import RunRequest

    key = "0" * 64
    with TemporaryDirectory() as folder:
        episodes = (Episode(key, "robot", "a.h5", "", 9, "1" * 64),)
        requests = {"robot": RunRequest(scenes=("robot.xml",), output="")}
        write_plan(Plan(EpisodeTable.of(episodes), requests), Store(folder))
        plan = (Path(folder) / PLAN).read_bytes()
    failure = json.dumps(vars(Failure(key, "robot", "a.h5", "is damaged", 2, "here"))).encode()
    lines = (
        {"event": "begin", "host": "a"},
        {"event": "start", "key": key},
        {"event": "done", "key": key, "bytes": 9},
    )
    log = "\n".join(map(json.dumps, lines)).encode()
    return {"B/plan.parquet": plan, "B/failed/x.json": failure, "B/events/000000/x.jsonl": log}


def _profiles() -> dict[str, bytes]:
    from collidecli.storage.profile_files import write_json, write_profile_h5

    times = {"median": 1.0, "least": 1.0, "most": 1.0, "repeats": [1.0]}
    counts = {"candidates": 3, "touching_pairs": 2, "contacts": 2, "contacts_sha256": "a" * 64}
    phase = {"name": "nxn", "skipped": None, "stages": {"order": times}}
    phase |= dict.fromkeys(("compute_seconds", "wall_seconds"), times)
    profile = {
        "schema": "collide.profile/1",
        "scene": "a.xml",
        "scene_sha256": "5" * 64,
        "repeats": 1,
    }
    profile |= {
        "versions": {"numpy": "2"},
        "phases": [phase | counts, {"name": "sap", "skipped": "too many"}],
    }
    with TemporaryDirectory() as folder:
        for name, write in (("p.json", write_json), ("p.h5", write_profile_h5)):
            write(Path(folder) / name, profile, False)
        return {name: (Path(folder) / name).read_bytes() for name in ("p.json", "p.h5")}


# Inputs made on purpose: each a thing that somebody would try, or that a broken program writes.


@dataclass(frozen=True)
class Crafted:
    name: str
    main: str
    files: dict[str, bytes | Callable[[], bytes]]
    commands: tuple[tuple[str, ...], ...]
    may_open: tuple[str, ...] = ()


_made: dict[str, list[Crafted]] = {}
SHARE = 8
"""Of how many crafted pickles one is given to the commands; `test_pickles` reads all of them."""


def crafted(groups: list[Group], outside: str) -> list[Crafted]:
    """All of them, always in the same order. outside: a folder with `secret.*` that only some of
    them name."""
    if outside not in _made:
        _made[outside] = list(_crafted({group.name: group for group in groups}, outside))
    return _made[outside]


def _crafted(groups: dict[str, Group], outside: str) -> Iterator[Crafted]:
    def variants(name: str, made, keep: bool = True) -> Iterator[Crafted]:
        group = groups[name]
        for what, data in made:
            files = {**(group.files if keep else {}), group.main: data}
            yield Crafted(f"{name}: {what}", group.main, files, group.commands)

    def seed(name: str) -> bytes:
        return groups[name].files[groups[name].main]

    for name in ("body_q", "joint_q", "robosuite", "states", "isaac", "contacts", "particle_q"):
        yield from variants(name, crafted_hdf5.variants(seed(name), outside))
    yield from variants("states_npy", crafted_arrays.npy_files())
    yield from variants("states_npz", crafted_arrays.npz_files())
    yield from variants("pickle", list(crafted_pickles.files())[::SHARE])
    for name, module in (("usda", crafted_usd), ("mjcf", crafted_mjcf)):
        group = groups[name]
        for what, files, may_open in module.scenes(outside):
            yield Crafted(
                f"{name}: {what}", group.main, {**group.files, **files}, group.commands, may_open
            )
    yield from variants("usdz", crafted_usd.packages(seed("usdz"), outside), keep=False)


# The hostile inputs by number: what was made on purpose first, then damage drawn from the number.

FIRST_ASKED = 2000
"""From this number on, contact sets for the verbs that ask something of them."""
FIRST_CONFIGURED = 2400
"""From this number on, files of the other kinds."""
FIRST_EXCHANGED = 3200
FIRST_MIXED = 4200
WHOLE = 5200
"""From the first on, files that other programs hand over, see `exchanged`; from the second on,
files of every kind again. The last is the number of all inputs."""


@dataclass(frozen=True)
class Case:
    """One input. files: what lies in its folder. may_open: names in the folder outside that the
    scene itself names."""

    name: str
    main: str
    files: dict[str, bytes]
    commands: tuple[tuple[str, ...], ...]
    may_open: frozenset[str] = field(default_factory=frozenset)


def case_of(number: int, groups: list[Group], outside: str) -> Case:
    """outside: a folder that no file may lead to without naming it."""
    given = groups
    made = crafted(groups, outside)
    if number < len(made):
        one = made[number]
        files = {
            name: data if isinstance(data, bytes) else data() for name, data in one.files.items()
        }
        return Case(f"{number} {one.name}", one.main, files, one.commands, frozenset(one.may_open))
    rng = random.Random(number)
    if number >= FIRST_EXCHANGED:
        from tests.hostile.exchanged import exchanged_groups

        groups = exchanged_groups()
        if number >= FIRST_MIXED:
            groups = [*given, *configured_groups(), *groups]
    elif number >= FIRST_CONFIGURED:
        groups = configured_groups()
    elif number >= FIRST_ASKED:
        asked = asked_groups()
        group = asked[number % len(asked)]
        files = {**group.files, group.main: damaged_set(group.files[group.main], rng)}
        return Case(f"{number} {group.name}", group.main, files, group.commands)
    group = groups[number % len(groups)]
    files = dict(group.files)
    name = rng.choice(group.damaged)
    files[name] = damaged(files[name], rng)
    return Case(f"{number} {group.name}: {name} damaged", group.main, files, group.commands)


def chosen(count: int, seed: int, whole: range) -> list[int]:
    """Numbers for a shorter run, drawn by `seed`."""
    return sorted(random.Random(seed).sample(whole, count))
