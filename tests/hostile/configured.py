"""Damaged files of other kinds than scenes, recordings and contact sets: settings, jobs, plans, failures, profiles."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.hostile.seeds import GOLDEN, ROBOT_XML, Group, body_poses, hdf5

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
    found.append(Group("jobs", "jobs.toml", {**robot, **poses, "jobs.toml": JOBS.encode()}, ("jobs.toml",), plan))
    status = (("batch", "status", "B"), ("batch", "gather", "B", "-o", "out.parquet"))
    for name, main in (("plan", "B/plan.parquet"), ("failure", "B/failed/x.json")):
        found.append(Group(name, main, _batch(), (main,), status))
    contacts = {"contacts.h5": GOLDEN.with_name("contacts_1_1.h5").read_bytes()}
    for name, data in _profiles().items():
        drawn = ("plot", "contacts.h5", "--profile", name, "--kind", "phases", "-o", "out.svg")
        page = ("report", "contacts.h5", "--profile", name, "-o", "out.html")
        found.append(Group("profile", name, {**contacts, name: data}, (name,), (page, drawn)))
    return found


def _batch() -> dict[str, bytes]:
    """A plan of one episode, which has failed."""
    from collidecli.batch.plan import Episode, EpisodeTable, Plan, write_plan
    from collidecli.batch.store import PLAN, Failure, Store
    from collidecli.commands.run import RunRequest

    key = "0" * 64
    with TemporaryDirectory() as folder:
        episodes = (Episode(key, "robot", "a.h5", "", 9, "1" * 64),)
        write_plan(
            Plan(EpisodeTable.of(episodes), {"robot": RunRequest(scenes=("robot.xml",), output="")}), Store(folder)
        )
        plan = (Path(folder) / PLAN).read_bytes()
    failure = json.dumps(vars(Failure(key, "robot", "a.h5", "is damaged", 2, "here"))).encode()
    return {"B/plan.parquet": plan, "B/failed/x.json": failure}


def _profiles() -> dict[str, bytes]:
    from collidecli.storage.result_files import write_json, write_profile_h5

    times = {"median": 1.0, "least": 1.0, "most": 1.0, "repeats": [1.0]}
    counts = {"candidates": 3, "touching_pairs": 2, "contacts": 2, "contacts_sha256": "a" * 64}
    phase = {
        "name": "nxn",
        "skipped": None,
        "compute_seconds": times,
        "wall_seconds": times,
        "stages": {"order": times},
    }
    profile = {"schema": "collide.profile/1", "scene": "a.xml", "scene_sha256": "5" * 64, "repeats": 1}
    profile |= {"versions": {"numpy": "2"}, "phases": [phase | counts, {"name": "sap", "skipped": "too many"}]}
    with TemporaryDirectory() as folder:
        for name, write in (("p.json", write_json), ("p.h5", write_profile_h5)):
            write(Path(folder) / name, profile, False)
        return {name: (Path(folder) / name).read_bytes() for name in ("p.json", "p.h5")}
