"""Results of a verb that was called with several inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from collidecli.results.result import Result, plain

DONE = "done"
FAILED = "failed"
SKIPPED = "skipped"
ONLY_A = "only_a"
ONLY_B = "only_b"
PLAIN = (DONE, FAILED)
"""States of the inputs of most verbs."""
WITH_SKIPPED = (DONE, FAILED, SKIPPED)
"""States of the inputs of a verb that keeps outputs."""


@dataclass(frozen=True, kw_only=True)
class ListedInput:
    """Outcome of one input. input: its path. state: DONE, FAILED, SKIPPED (its output exists),
    ONLY_A or ONLY_B.

    name: of the episodes of a batch that it has; "" without. output: path of its output, None if
    the verb has none. result: the object that the verb prints for this input alone, if it is done.
    error: what, where, fix, message and exit_code, as in collide.error/1, if it failed.
    """

    input: str
    state: str
    output: str | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class ResultList(Result):
    """Outcomes of all inputs of a verb, in the order of their paths: collide.<verb>_list/1, with
    the numbers of inputs by state.

    states: that an input of the verb may have. more: further entries of the object, by name;
    `written` of `events` are the paths of the tables of all intervals by format, of `label` the
    path of its table, or None.
    """

    verb: str
    items: Sequence[ListedInput]
    more: Mapping[str, Any] = field(default_factory=dict)
    states: Sequence[str] = PLAIN

    def as_dict(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        counted = Counter(item.state for item in self.items)
        counts = {state: counted[state] for state in self.states}
        items = plain(self.items)
        return {
            "schema": f"collide.{self.verb}_list/1",
            "counts": counts,
            "items": items,
            **plain(self.more),
        }

    @property
    def warnings(self) -> list[str]:
        """Every distinct warning of the inputs' results once, with the first input that has it."""
        inputs: dict[str, list[str]] = {}
        for item in self.items:
            for text in (item.result or {}).get("warnings") or ():
                inputs.setdefault(text, []).append(item.input)
        return [
            f"{of[0]}{f' and {len(of) - 1} more' if len(of) > 1 else ''}: {text}"
            for text, of in inputs.items()
        ]
