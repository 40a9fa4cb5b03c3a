"""Waits of tests for what another thread or process does."""

import time
from collections.abc import Callable

PATIENCE = 600.0
"""Longest wait for an event [s]. A busy machine takes minutes for what an idle one does in a
moment; only what never happens takes all."""


def until(holds: Callable[[], object], every: float = 0.05) -> None:
    """Waits until `holds` returns something true; an assertion error after PATIENCE."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"not within {PATIENCE} s"
        time.sleep(every)
