"""MuJoCo's warnings, kept off the terminal and out of MUJOCO_LOG.TXT."""

# MuJoCo's names come from compiled modules, which pyright cannot see.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import mujoco


@contextmanager
def collected_messages() -> Iterator[list[str]]:
    """A list that takes every warning MuJoCo gives inside the block, each once, in order of first appearance.

    Those that its compiler gives as Python's warnings are among them.
    """
    messages: list[str] = []

    def collect(message: str) -> None:
        text = message.strip()
        if text not in messages:
            messages.append(text)

    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(collect)
    try:
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            yield messages
        for warning in given:
            if issubclass(warning.category, UserWarning):
                collect(str(warning.message))
            else:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    finally:
        mujoco.set_mju_user_warning(before)
