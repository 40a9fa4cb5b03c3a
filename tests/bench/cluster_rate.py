"""Shards without work through a Dask scheduler: rate, and the memory of scheduler and client.

python -m tests.bench.cluster_rate [SHARDS]
"""

import sys
import tempfile
import time
from pathlib import Path

import psutil

from collidecli.verbs.batch.dask import by_dask, connected
from collidecli.verbs.batch.episodes import Episode, EpisodeTable
from collidecli.verbs.batch.log import ShardReport
from collidecli.verbs.batch.plan import Plan
from collidecli.verbs.batch.store import Store
from tests.support.batches import Cluster

WORKERS = 2
THREADS = 4
MIB = 1 << 20


def no_work(folder: str, shard: int, timeout: float | None, version: str) -> ShardReport:
    """A shard that is done at once."""
    return ShardReport(shard, done=1)


def main(shards: int) -> None:
    """Prints rate and memory for this number of shards."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Plan(
            EpisodeTable.of(
                Episode(f"{n:064x}", "job", f"{n}.h5", "", 1, "", 90.0, n) for n in range(shards)
            )
        )
        cluster = Cluster(Path(folder), WORKERS, THREADS)
        scheduler = psutil.Process(cluster.scheduler.pid)
        client_process = psutil.Process()
        try:
            with connected(cluster.address, "", 0) as client:
                client.wait_for_workers(WORKERS, timeout=120)
                before = scheduler.memory_info().rss, client_process.memory_info().rss
                done = [0]
                start = time.perf_counter()

                def count(report: ShardReport) -> None:
                    done[0] += 1
                    if done[0] % 2_000 == 0:
                        row(done[0], time.perf_counter() - start, scheduler, client_process, before)

                by_dask(Store(folder), plan, range(plan.shard_count), client, count, task=no_work)
                row(done[0], time.perf_counter() - start, scheduler, client_process, before)
        finally:
            cluster.close()


def row(
    done: int,
    seconds: float,
    scheduler: psutil.Process,
    client: psutil.Process,
    before: tuple[int, int],
) -> None:
    """Prints a line of the table."""
    grown = [
        (process.memory_info().rss - held) / MIB
        for process, held in zip((scheduler, client), before, strict=True)
    ]
    print(
        f"{done} shards, {done / seconds:.0f} a second, scheduler {before[0] / MIB:.0f}"
        f" {grown[0]:+.0f} MiB, client {before[1] / MIB:.0f} {grown[1]:+.0f} MiB",
        flush=True,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
