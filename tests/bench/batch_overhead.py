"""python -m tests.bench.batch_overhead: what a batch adds to the runs that it consists of, and
large plans.

python -m tests.bench.batch_overhead overhead EPISODES FRAMES   two workers against two processes
that only run python -m tests.bench.batch_overhead plan EPISODES              a plan of many
recordings: time and memory python -m tests.bench.batch_overhead gather EPISODES            status
and manifest of many made-up results
"""

import hashlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import h5py

from collidecli.engine.runtime.owned_process import owned_process
from collidecli.motions.scene_cache import SceneCache
from collidecli.scene.options import EngineOptions
from collidecli.verbs.batch.episodes import Episode, EpisodeTable
from collidecli.verbs.batch.gather import GatherRequest, gather
from collidecli.verbs.batch.jobs import Job
from collidecli.verbs.batch.log import counts_of
from collidecli.verbs.batch.plan import Plan, episodes_of, make_plan, read_plan, write_plan
from collidecli.verbs.batch.state import state_of
from collidecli.verbs.batch.store import Store
from collidecli.verbs.run.run import RunRequest, run
from tests.cli.conftest import SCENE, write_motion
from tests.support.batches import COLLIDE, environment

MIB = 2**20
EXECUTORS = {"processes": (), "LocalCluster": ("--executor", "dask")}
JOBS = (
    '[[job]]\nname = "balls"\nscene = "scene.xml"\nmotion = ["demos"]\noptions = { device ='
    ' "cpu" }\n'
)


def overhead(episodes: int, frames: int) -> None:
    """Prints time of a batch and of plain runs of the same recordings, in turn, and the size of a
    contact set."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("scene.xml").write_text(SCENE)
        Path("jobs.toml").write_text(JOBS)
        Path("demos").mkdir()
        for number in range(episodes):
            path = Path("demos", f"d{number:05}.h5")
            write_motion(path, frames)
            with h5py.File(path, "a") as file:  # recordings of equal content are computed once
                file["time"][...] += 1e-3 * number
        command((*COLLIDE, "batch", "plan", "jobs.toml", "-o", "P", "--shard-seconds", "2"))
        for turn in range(2):
            plain = command(
                *(
                    (sys.executable, "-m", "tests.bench.batch_overhead", "half", k, str(turn))
                    for k in "01"
                )
            )
            found = {"plain": plain}
            for name, options in EXECUTORS.items():
                found[name] = command((*COLLIDE, "batch", "run", "P", "--workers", "2", *options))
                sizes = [path.stat().st_size for path in Path("P/results").rglob("*.h5")]
                for part in ("results", "events"):
                    shutil.rmtree(f"P/{part}")
            for name, (wall, cpu) in found.items():
                each = (
                    f"{1000 * wall / episodes:.1f} ms wall, {1000 * cpu / episodes:.1f} ms of"
                    " processor time"
                )
                ratio = f"ratio {wall / plain[0]:.3f} and {cpu / plain[1]:.3f}"
                print(
                    f"{name}: {wall:.1f} s, {cpu:.1f} s of processor time; an episode {each};"
                    f" {ratio}",
                    flush=True,
                )
            print(f"{sum(sizes) / len(sizes):.0f} bytes a contact set", flush=True)


def command(*several: tuple[str, ...]) -> tuple[float, float]:
    """Wall and processor time of commands that run at once [s]."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    running = [
        subprocess.Popen(words, stdout=subprocess.DEVNULL, env=environment()) for words in several
    ]
    assert [process.wait() for process in running] == [0] * len(running)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def half(which: int, turn: str) -> None:
    """Every second recording, in one process with the scene loaded once."""
    request = RunRequest(
        scenes=("scene.xml",), output="", engine=EngineOptions(threads=1, device="cpu")
    )
    Path(f"plain{turn}").mkdir(exist_ok=True)
    cache = SceneCache()
    with owned_process():
        for path in sorted(Path("demos").iterdir())[which::2]:
            run(
                replace(request, trajectory=str(path), output=f"plain{turn}/{path.name}"),
                cache=cache,
            )


def large_plan(episodes: int) -> None:
    """Prints time and memory to plan, read and summarise many recordings: links to a hundred small
    files."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("scene.xml").write_text(SCENE)
        for number in range(100):
            write_motion(Path(f"m{number}.h5"), 5 + number)
        for number in range(episodes):
            if number % 1000 == 0:
                Path(f"demos/{number // 1000:05}").mkdir(parents=True)
            os.link(f"m{number % 100}.h5", f"demos/{number // 1000:05}/d{number:07}.h5")
        start = time.perf_counter()
        motions = tuple(sorted(str(path) for path in Path("demos").rglob("*.h5")))
        step(f"{episodes} names", start)
        job = Job("balls", motions, RunRequest(scenes=("scene.xml",), output=""))
        start = time.perf_counter()
        inputs = {job.name: EpisodeTable.of(episodes_of(job))}
        step("hashes", start)
        start = time.perf_counter()
        write_plan(make_plan([job], inputs, {job.name: (0.06, 1e-9)}, 90.0), Store("B"))
        step(f"plan of {os.path.getsize('B/plan.parquet') / MIB:.0f} MiB", start)
        del inputs, motions, job
        start = time.perf_counter()
        plan = read_plan(Store("B"))
        step("read", start)
        start = time.perf_counter()
        state = state_of(Store("B"), plan)
        step(f"status: {state.left} left in {state.shards} shards", start)


def large_gather(episodes: int, shard_episodes: int = 1000) -> None:
    """Prints time and memory of status and manifest of a batch whose contact sets are links to one,
    with its logs."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("scene.xml").write_text(SCENE)
        write_motion(Path("m.h5"), 5)
        request = RunRequest(scenes=("scene.xml",), trajectory="m.h5", output="made.h5")
        found = run(request)
        store = Store("B")
        with h5py.File("made.h5") as file:
            counts = counts_of(file)
        size = os.path.getsize("made.h5")
        keys = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(episodes)]
        held = [
            Episode(
                key, "balls", f"/data/{number:07}.h5", "", size, "", 0.1, number // shard_episodes
            )
            for number, key in enumerate(keys)
        ]
        write_plan(Plan(EpisodeTable.of(held), {"balls": request}, 90.0, episodes), store)
        for number, key in enumerate(keys):
            path = Path("B", store.result_name(key))
            path.parent.mkdir(parents=True, exist_ok=True)
            if number % 30_000 == 0:  # file systems have a limit of links
                shutil.copy("made.h5", path)
                first = path
            else:
                os.link(first, path)
        line = {
            "event": "done",
            "time": 0.0,
            "seconds": 0.1,
            "content_sha256": found.content_sha256,
            "bytes": size,
        }
        for shard in range(0, episodes, shard_episodes):
            events = [
                line | {"key": key, "counts": counts}
                for key in keys[shard : shard + shard_episodes]
            ]
            store.log(store.new_log(shard // shard_episodes), *events)
        del held, keys
        start = time.perf_counter()
        plan = read_plan(store)
        step("read", start)
        start = time.perf_counter()
        step(f"status: {state_of(store, plan).done} done", start)
        start = time.perf_counter()
        result = gather(store, plan, GatherRequest("manifest", "all.parquet"))
        step(f"manifest: {result.episodes} rows", start)


def step(name: str, start: float) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    used = f"{time.process_time():.1f} s of processor time since the start"
    print(
        f"{name}: {time.perf_counter() - start:.1f} s, {used}, peak memory {peak:.0f} MiB",
        flush=True,
    )


if __name__ == "__main__":
    what, *numbers = sys.argv[1:]
    if what == "overhead":
        overhead(*map(int, numbers))
    elif what == "half":
        half(int(numbers[0]), numbers[1])
    elif what == "gather":
        large_gather(int(numbers[0]))
    else:
        large_plan(int(numbers[0]))
