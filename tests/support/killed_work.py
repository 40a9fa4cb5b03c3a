"""A shard whose process is killed; apart from other support, as each worker process imports it anew."""

from __future__ import annotations

import os
import signal

from collidecli.batch.plan import read_plan
from collidecli.batch.store import Store
from collidecli.batch.work import work_shard


class KillsOn:
    """`work_shard` whose process is killed where the episode with this key is next."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __call__(self, folder: str, shard: int, only: list[str] | None = None, attempt: int = 0):
        keys = only or [episode.key for episode in read_plan(Store(folder)).shard(shard)]
        for key in keys:
            if key == self.key:
                os.kill(os.getpid(), signal.SIGKILL)
            report = work_shard(folder, shard, [key], attempt)
        return report
