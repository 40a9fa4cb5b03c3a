"""The state of a batch: what it has computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from collidecli.results.result import Result
from collidecli.verbs.batch.log import History, whole_results
from collidecli.verbs.batch.plan import Plan
from collidecli.verbs.batch.store import Failure, Store

if TYPE_CHECKING:
    from collidecli.verbs.batch.log import HostThroughput, RunWarning


@dataclass(frozen=True, kw_only=True)
class BatchState(Result):
    """Counts of episodes, the seconds that the plan estimates for those that are left, failures,
    hosts and warnings.

    computed: number of contact sets that the command computed; None for a command that computes
    none.
    """

    SCHEMA: ClassVar[str] = "collide.batch/1"
    OPTIONAL: ClassVar[tuple[str, ...]] = ("computed",)

    folder: str
    episodes: int
    shards: int
    done: int
    failed: int
    left: int
    estimated_seconds_left: float
    failures: list[Failure]
    hosts: list[HostThroughput]
    run_warnings: list[RunWarning]
    computed: int | None = None


def state_of(
    store: Store, plan: Plan, computed: int | None = None, shards: Sequence[int] | None = None
) -> BatchState:
    """The state of a batch, from its folder alone. Episodes of one key count each.

    Args:
        computed: see `BatchState`. shards: whose logs are read, and contact sets checked; all
            without it.
    """
    planned = Counter(episode.key for episode in plan.episodes)
    checked = (
        planned
        if shards is None
        else {episode.key for episode in plan.episodes if episode.shard in shards}
    )
    history = History(store.logs(shards), planned)
    (results, _), failures = whole_results(store, history.sizes, checked), store.failures()
    left = 0
    seconds = 0.0
    for episode in plan.episodes:
        if episode.key not in results and episode.key not in failures:
            left += 1
            seconds += episode.seconds
    failed = [key for key in planned if key in failures and key not in results]
    failed_count = sum(planned[key] for key in failed)
    return BatchState(
        folder=store.location,
        episodes=len(plan.episodes),
        shards=plan.shard_count,
        done=len(plan.episodes) - left - failed_count,
        failed=failed_count,
        left=left,
        estimated_seconds_left=seconds,
        computed=computed,
        failures=[failures[key] for key in failed],
        hosts=history.hosts(),
        run_warnings=history.warnings(),
    )
