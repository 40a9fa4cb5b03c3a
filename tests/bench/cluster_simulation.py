"""Simulation of a cluster of 1000 nodes that loses 1 % of them an hour, with the division into
shards of the plan.

Discrete events of shards and of lost nodes. Two ways of work: static slots (an array of Slurm, an
indexed Job of Kubernetes), each with every N-th shard, repeated after a loss; and a central
scheduler (Dask) that gives the next shard to a free slot and needs SCHEDULER_SECONDS for each. The
time of an episode is its estimate times a factor that was recorded on a machine. A lost shard keeps
the episodes that were done.

    python -m tests.bench.cluster_simulation
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collidecli.verbs.batch.episodes import Episode, EpisodeTable
from collidecli.verbs.batch.jobs import Job
from collidecli.verbs.batch.plan import make_plan

if TYPE_CHECKING:
    from collidecli.verbs.batch.plan import Plan

NODES = 1000
SLOTS_PER_NODE = 8
DONE, LOST, BACK = range(3)
"""Kinds of events: a shard is done, a node is lost, its slots work again."""
LOSS_PER_HOUR = 0.01
RETURN_SECONDS = 300.0
"""From the loss of a node until its slots, on another node, work again: the queue and the start of
a process."""
SCHEDULER_SECONDS = 2e-3
"""A shard in Dask's scheduler; its documentation has 1 ms for a task (`tests.bench.cluster_rate`
measures it)."""
EPISODE_SECONDS = 12.0
SHARDS_PER_SLOT = (1, 2, 4, 8, 16)
RECORDED = (
    0.66, 0.72, 0.77, 0.81, 0.83, 0.84, 0.86, 0.90, 0.93, 0.96,
    0.98, 1.01, 1.05, 1.09, 1.11, 1.16, 1.19, 1.24, 1.40, 1.56,
)  # fmt: skip
"""Measured over mean time of 62 equal recordings, quantiles: on a machine with ten times as many
busy threads as cores, so that they are wide."""


@dataclass(frozen=True)
class Outcome:
    """makespan, ideal [s]: of the batch, and of its work spread evenly over all slots without loss.

    losses: of nodes. repeated: seconds of work that was lost. rate: shards a second that the
    scheduler gave out.
    """

    makespan: float
    ideal: float
    losses: int
    repeated: float
    rate: float

    @property
    def overhead(self) -> float:
        return self.makespan / self.ideal


def shards_of(shards_per_slot: float, slots: int) -> Plan:
    """A plan of about this many shards for each slot, of episodes whose sizes differ by a factor of
    two and more."""
    random = np.random.default_rng(1)
    count = int(shards_per_slot * slots * 90.0 / EPISODE_SECONDS)
    sizes = random.lognormal(0.0, 0.5, count)
    sizes *= EPISODE_SECONDS / sizes.mean()
    episodes = [
        Episode(f"{n:016x}", "job", f"{n}.h5", "", bytes=round(1000 * size), motion_sha256="")
        for n, size in enumerate(sizes)
    ]
    return make_plan(
        [Job("job", (), None)], {"job": EpisodeTable.of(episodes)}, {"job": (0.0, 1e-3)}, 90.0
    )  # type: ignore[arg-type]


class _Cluster:
    """State of a simulated batch. static: slots with every N-th shard, else a scheduler that gives
    out the next one."""

    def __init__(self, plan: Plan, static: bool, nodes: int, random: np.random.Generator) -> None:
        slots = nodes * SLOTS_PER_NODE
        self.static = static
        self.episodes = [
            np.array([one.seconds for one in held]) * random.choice(RECORDED, len(held))
            for held in map(plan.shard, range(plan.shard_count))
        ]
        self.durations = [float(one.sum()) for one in self.episodes]
        self.work = list(self.durations)  # what is left of each shard [s]
        shards = range(plan.shard_count)
        self.queues = (
            [list(shards[slot::slots])[::-1] for slot in range(slots)]
            if static
            else [list(shards)[::-1]]
        )
        # slot: shard, start, number of the assignment
        self.busy: dict[int, tuple[int, float, int]] = {}
        self.waiting: set[int] = set()
        # time, kind, slot or node, number of the assignment
        self.events: list[tuple[float, int, int, int]] = []
        self.assigned = 0
        self.free_at = 0.0
        self.repeated = 0.0

    def begin(self, slot: int, now: float) -> None:
        """Gives a slot its next shard."""
        queue = self.queues[slot if self.static else 0]
        if not queue:
            self.waiting.add(slot)
            return
        shard = queue.pop()
        start = now
        if not self.static:
            start = self.free_at = max(now, self.free_at) + SCHEDULER_SECONDS
        self.assigned += 1
        self.busy[slot] = shard, start, self.assigned
        heapq.heappush(self.events, (start + self.work[shard], DONE, slot, self.assigned))

    def lose(self, slot: int, now: float) -> None:
        """Ends the work of a slot; complete episodes are kept."""
        self.waiting.discard(slot)
        if slot not in self.busy:
            return
        shard, start, _ = self.busy.pop(slot)
        worked = self.durations[shard] - self.work[shard] + max(0.0, now - start)
        kept = _kept(self.episodes[shard], worked)
        self.repeated += worked - kept
        self.work[shard] = self.durations[shard] - kept
        self.queues[slot if self.static else 0].append(shard)


def simulate(plan: Plan, static: bool, losses: bool, seed: int = 0, nodes: int = NODES) -> Outcome:
    """One batch on `nodes` nodes."""
    random = np.random.default_rng(seed)
    cluster = _Cluster(plan, static, nodes, random)
    lost = 0
    end = 0.0
    left = plan.shard_count
    mean = 3600.0 / LOSS_PER_HOUR
    for node in range(nodes if losses else 0):
        heapq.heappush(cluster.events, (random.exponential(mean), LOST, node, 0))
    for slot in range(nodes * SLOTS_PER_NODE):
        cluster.begin(slot, 0.0)
    while left:
        now, kind, what, number = heapq.heappop(cluster.events)
        slots = range(what * SLOTS_PER_NODE, (what + 1) * SLOTS_PER_NODE)
        if kind == DONE:
            if cluster.busy.get(what, (0, 0.0, -1))[2] == number:
                del cluster.busy[what]
                left = left - 1
                end = now
                cluster.begin(what, now)
        elif kind == LOST:
            lost += 1
            for slot in slots:
                cluster.lose(slot, now)
            heapq.heappush(cluster.events, (now + RETURN_SECONDS, BACK, what, 0))
            while not static and cluster.queues[0] and cluster.waiting:
                cluster.begin(cluster.waiting.pop(), now)
        else:
            heapq.heappush(cluster.events, (now + random.exponential(mean), LOST, what, 0))
            for slot in slots:
                cluster.begin(slot, now)
    ideal = sum(cluster.durations) / (nodes * SLOTS_PER_NODE)
    return Outcome(end, ideal, lost, cluster.repeated, cluster.assigned / end)


def _kept(episodes: np.ndarray, worked: float) -> float:
    """Seconds of the episodes that were complete after this much work on their shard."""
    ends = np.cumsum(episodes)
    done = int(np.searchsorted(ends, worked, side="right"))
    return float(ends[done - 1]) if done else 0.0


def results(
    shards_per_slot: Sequence[float] = SHARDS_PER_SLOT, nodes: int = NODES
) -> dict[tuple[bool, bool], list[Outcome]]:
    """Outcomes for each number of shards of a slot, by (static, losses)."""
    plans = [shards_of(count, nodes * SLOTS_PER_NODE) for count in shards_per_slot]
    return {
        (static, losses): [simulate(plan, static, losses, nodes=nodes) for plan in plans]
        for static in (True, False)
        for losses in (False, True)
    }


def main(show: Callable[[str], None] = print) -> None:
    """Prints a table of all outcomes."""
    for (static, losses), outcomes in results().items():
        show(
            f"{'static slots' if static else 'Dask'},"
            f" {'1 % of nodes lost an hour' if losses else 'no loss'}"
        )
        for count, one in zip(SHARDS_PER_SLOT, outcomes, strict=True):
            show(
                f"  {count:3} shards a slot: {one.makespan / 60:6.1f} min, {one.overhead:.3f} of"
                f" ideal, {one.losses} nodes lost, {one.repeated / 3600:.1f} h repeated,"
                f" {one.rate:.0f} shards/s"
            )


if __name__ == "__main__":
    main()
