"""A campaign of 1,000 episodes by every executor, in which processes are killed and a store goes
away."""

import os
import random
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import psutil
import pytest

from collidecli.verbs.batch.plan import read_plan
from collidecli.verbs.batch.store import Store
from tests.cli.conftest import SCENE, write_motion
from tests.cli.test_batch_clusters import SCRIPTS, ended
from tests.cli.test_batch_clusters import slurm as slurm
from tests.cli.test_recordings import write_demos
from tests.support.batches import URL, compute, dataset, plan, start, two_mounts
from tests.support.batches import endpoint as endpoint
from tests.support.batches import proxy as proxy

pytestmark = pytest.mark.slow
SCENES = 5
MOTIONS = 200
SUFFIXES = (".h5", ".npz", ".npy", ".npz", ".hdf5")
"""Of the recordings of each scene: trajectories, coordinates, states of MuJoCo, and demonstrations
of robomimic."""
BROKEN = (
    "scene0/d003.h5",
    "scene1/d007.npz",
    "scene2/d011.npy",
    "scene3/d013.npz",
    "scene4/d017.hdf5",
)
COPIED = ("scene0/d005.h5", "scene1/d008.npz", "scene2/d015.npy")
KILLS = 25
KILLED = 4
RETRIED = 75
"""Of each executor; exit codes of a command whose process was killed, and of one that is to be
repeated later."""


def write_recording(path: Path, frames: int, number: int) -> None:
    """A motion of its own in the form of SUFFIXES."""
    if path.suffix == ".h5":
        write_motion(path, frames)
        with h5py.File(path, "a") as file:
            file["body_q"][..., 0] += 1e-4 * number
        return
    qpos = np.zeros((frames, 14))
    qpos[:, [3, 10]] = 1.0
    qpos[:, 7] = 9.0
    qpos[:, 2] = 0.905 - 0.01 * np.arange(frames)
    qpos[:, 0] = 1e-4 * number
    time = 0.01 * np.arange(frames)
    velocity = np.zeros((frames, 12))
    states = np.concatenate([time[:, None], qpos, velocity], axis=1)
    if path.suffix == ".npz":
        np.savez(path, qpos=qpos, time=time)
    elif path.suffix == ".npy":
        np.save(path, states)
    else:
        write_demos(path, {"demo_0": states}, {})


@pytest.fixture(scope="module")
def recordings(tmp_path_factory) -> Path:
    """Five scenes with 200 recordings each: five are broken, three are copies of their
    predecessors."""
    folder = tmp_path_factory.mktemp("campaign")
    jobs = []
    for scene in range(SCENES):
        name = f"scene{scene}"
        (folder / name).mkdir()
        (folder / f"{name}.xml").write_text(
            SCENE.replace("<worldbody>", f"<worldbody><!-- {scene} -->")
        )
        for number in range(MOTIONS):
            write_recording(
                folder / name / f"d{number:03}{SUFFIXES[scene]}", 3 + number % 5, number
            )
        jobs.append(f'[[job]]\nname = "{name}"\nscene = "{name}.xml"\nmotion = ["{name}/*"]\n')
        jobs.append('options = { gap = 0.02, device = "cpu" }\n')
    for text in COPIED:
        path = folder / text
        shutil.copy(path, path.with_stem(f"{path.stem[:-1]}{int(path.stem[-1]) + 1}"))
    for text in BROKEN:
        path = folder / text
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    (folder / "jobs.toml").write_text("".join(jobs))
    return folder


HASHES: list[str] = []


@pytest.fixture
def expected(recordings, tmp_path, monkeypatch, collide) -> str:
    """Hash of the data set that one process computes, once; the current folder has the
    recordings."""
    monkeypatch.chdir(tmp_path)
    for path in recordings.iterdir():
        os.symlink(path, tmp_path / path.name)
    if not HASHES:
        compute(collide, "one")
        HASHES.append(dataset(collide, "one"))
    return HASHES[0]


def check(folder: str, expected: str, collide) -> None:
    """One contact set for each key that can be computed, none lost, doubled or half-written."""
    state = collide.result("batch status", folder)
    assert (state["done"], state["failed"], state["left"]) == (
        SCENES * MOTIONS - len(BROKEN),
        len(BROKEN),
        0,
    )
    assert {Path(one["motion"]).name for one in state["failures"]} == {
        Path(text).name for text in BROKEN
    }
    assert dataset(collide, folder) == expected
    store = Store(folder)
    keys = {episode.key for episode in read_plan(store).episodes}
    assert (
        len(store.results())
        == len(keys) - len(BROKEN)
        == SCENES * MOTIONS - len(COPIED) - len(BROKEN)
    )
    assert not any(map(store.is_damaged, store.results()))
    if "://" not in folder:
        assert not [path for path in Path(folder).rglob("*") if path.name.startswith(".")]


def repeated(command: Callable[[], subprocess.Popen[bytes]], kills: int) -> int:
    """Runs a command until it is done, and kills it or one of its processes at random times;
    returns how often."""
    chance = random.Random(0)
    killed = 0
    for _ in range(kills + 2):
        running = command()
        while running.poll() is None:
            time.sleep(chance.uniform(0.3, 1.5))
            with suppress(psutil.NoSuchProcess, IndexError):
                if killed < kills:
                    process = psutil.Process(running.pid)
                    chance.choice([process, *process.children(recursive=True) * 3]).kill()
                    killed += 1
        _, err = running.communicate()
        if running.returncode in (0, 1):  # 1: the broken recordings
            return killed
        assert running.returncode in (-9, KILLED, RETRIED), err.decode()
    raise AssertionError("the command does not end")


@pytest.mark.parametrize(
    "words", ["batch run B --workers 2", "batch run B --executor dask --workers 2"]
)
def test_a_batch_that_is_killed_again_is_completed(expected, collide, words):
    pytest.importorskip("distributed")
    plan(collide, "B", "--shard-seconds", "0.5")
    killed = repeated(lambda: start(*words.split()), KILLS)
    check("B", expected, collide)
    assert killed > KILLS // 2


def test_two_mounts(expected, tmp_path, collide):
    """Two slots, each with a mount of its own, as on two nodes with one file system."""
    with two_mounts(tmp_path) as (a, b):
        plan(collide, str(a / "B"), "--shard-seconds", "0.5")
        killed: list[int] = []

        def slot(folder: Path, number: int) -> None:
            words = "batch", "work", str(folder / "B"), "--slot", f"{number}/2"
            killed.append(repeated(lambda: start(*words), KILLS // 2))

        threads = [threading.Thread(target=slot, args=each) for each in ((a, 0), (b, 1))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check(str(b / "B"), expected, collide)
    assert sum(killed) > KILLS // 2


def test_slurm(expected, tmp_path, slurm, collide):
    """An array, of which two programs are killed and then worker processes; more follow until all
    is done."""
    plan(collide, "B", "--shard-seconds", "0.5")
    chance = random.Random(0)
    killed = 0
    while collide.result("batch status B")["left"]:
        job = slurm.run("sbatch", "--parsable", "--array=0-1", str(SCRIPTS / "work.sbatch"), "B")
        while not ended(slurm, job):
            # a task that is queued again starts after two minutes
            time.sleep(chance.uniform(2.0, 8.0))
            with suppress(psutil.NoSuchProcess, IndexError):
                held = [
                    each
                    for each in psutil.process_iter(["cmdline"])
                    if "--slot" in (each.info["cmdline"] or ())
                ]
                found = [
                    each
                    for each in held
                    if "python" in each.info["cmdline"][0] and each.cwd() == str(tmp_path)
                ]
                if killed < KILLS:
                    below = [child for each in found for child in each.children(recursive=True)]
                    workers = [
                        child for child in below if "spawn_main" in " ".join(child.cmdline())
                    ]
                    chance.choice(found if killed in (5, 15) else workers).kill()
                    killed += 1
    check("B", expected, collide)
    assert killed > KILLS // 2
    gather = slurm.run("sbatch", "--parsable", "--wait", str(SCRIPTS / "gather.sbatch"), "B")
    assert slurm.state(gather) == ["COMPLETED"], Path(f"slurm-{gather}.out").read_text()


def test_an_object_store_that_goes_away(expected, proxy, collide):
    plan(collide, URL, "--shard-seconds", "0.5")

    def outage() -> None:
        time.sleep(10.0)
        proxy.cut()
        time.sleep(20.0)
        proxy.restore()

    away = threading.Thread(target=outage)
    away.start()
    killed = repeated(lambda: start("batch", "run", URL, "--workers", "2"), KILLS)
    away.join()
    check(URL, expected, collide)
    assert killed > KILLS // 2
