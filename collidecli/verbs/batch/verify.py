"""A sample of a batch's episodes computed again."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from typing import ClassVar

from collidecli.errors import InputError
from collidecli.results.result import Progress, Result
from collidecli.storage.files import local_copy
from collidecli.temporary_folders import TemporaryFolder
from collidecli.verbs.batch.episode_worker import request_of
from collidecli.verbs.batch.plan import Plan
from collidecli.verbs.batch.store import Store
from collidecli.verbs.run.run import run


@dataclass(frozen=True, kw_only=True)
class VerifyResult(Result):
    """Contact sets that were computed again, and the files whose contacts differ."""

    SCHEMA: ClassVar[str] = "collide.batch_verify/1"

    checked: int
    different: list[str]


def verify(
    store: Store, plan: Plan, share: float, seed: int = 0, progress: Progress = None
) -> VerifyResult:
    """Computes a share of the contact sets again, at least one. Raises InputError where there is
    none."""
    keys = set(store.results())
    done = [number for number, episode in enumerate(plan.episodes) if episode.key in keys]
    if not done:
        raise InputError(
            "has no contact set to verify", store.location, "work on it with collide batch run"
        )
    chosen = random.Random(seed).sample(done, max(1, round(share * len(done))))
    different = []
    for number, episode in enumerate((plan.episodes[row] for row in chosen), 1):
        with TemporaryFolder("verification") as folder, local_copy(episode.motion) as motion:
            again = run(request_of(plan, episode, motion, os.path.join(folder, "again.h5")))
        if store.content(episode.key) != again.content_sha256:
            different.append(store.result_location(episode.key))
        if progress:
            progress(number, len(chosen))
    return VerifyResult(checked=len(chosen), different=different)
