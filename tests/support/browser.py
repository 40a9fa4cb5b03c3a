"""Chromium without a screen, for tests that look at pages; what needs it is skipped where it is missing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: apt-get install chromium")


@contextmanager
def chromium(arguments: Sequence[str]) -> Iterator[Any]:
    """A browser of playwright's, closed at the end."""
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield running
        running.close()
