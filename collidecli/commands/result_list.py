"""Results of a verb that was called with several inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from collidecli.commands.result import Result

DONE, FAILED, SKIPPED, ONLY_A, ONLY_B = "done", "failed", "skipped", "only_a", "only_b"


@dataclass(frozen=True, kw_only=True)
class ListedInput:
    """Outcome of one input. input: its path. state: DONE, FAILED, SKIPPED (its output exists), ONLY_A or ONLY_B.

    output: path of its output, None if the verb has none. result: the object that the verb prints for this input
    alone, if it is done. error: what, where, fix, message and exit_code, as in collide.error/1, if it failed.
    """

    input: str
    state: str
    output: str | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ResultList(Result):
    """Outcomes of all inputs, in the order of their paths. counts: number of inputs by state."""

    counts: dict[str, int] = field(init=False)
    items: Sequence[ListedInput]

    STATES: ClassVar[tuple[str, ...]] = (DONE, FAILED)

    def __post_init__(self) -> None:
        counted = Counter(item.state for item in self.items)
        object.__setattr__(self, "counts", {state: counted[state] for state in self.STATES})

    @property
    def warnings(self) -> list[str]:
        """Every distinct warning of the inputs' results once, with the first input that has it."""
        inputs: dict[str, list[str]] = {}
        for item in self.items:
            for text in (item.result or {}).get("warnings") or ():
                inputs.setdefault(text, []).append(item.input)
        return [f"{of[0]}{f' and {len(of) - 1} more' if len(of) > 1 else ''}: {text}" for text, of in inputs.items()]


class RunList(ResultList):
    """Runs of several recordings or scenes."""

    SCHEMA: ClassVar[str] = "collide.run_list/1"
    STATES: ClassVar[tuple[str, ...]] = (DONE, FAILED, SKIPPED)


class CheckList(ResultList):
    """Checks of several files."""

    SCHEMA: ClassVar[str] = "collide.check_list/1"


class InspectList(ResultList):
    """Contents of several files."""

    SCHEMA: ClassVar[str] = "collide.inspect_list/1"


class ReportList(ResultList):
    """Pages about several contact sets."""

    SCHEMA: ClassVar[str] = "collide.report_list/1"
    STATES: ClassVar[tuple[str, ...]] = (DONE, FAILED, SKIPPED)


@dataclass(frozen=True, kw_only=True)
class EventsList(ResultList):
    """Touches in several contact sets. written: paths of the tables of all intervals, by format."""

    SCHEMA: ClassVar[str] = "collide.events_list/1"
    written: dict[str, str | None]


class DiffList(ResultList):
    """Comparisons of the contact sets of two folders, by relative path. Only the second folder has ONLY_B."""

    SCHEMA: ClassVar[str] = "collide.diff_list/1"
    STATES: ClassVar[tuple[str, ...]] = (DONE, FAILED, ONLY_A, ONLY_B)
