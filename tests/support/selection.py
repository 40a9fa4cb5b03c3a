"""Selection of tests: shares of the cases of a test, and parts of all tests."""

from collections import Counter
from zlib import crc32

import pytest

GOLDEN_RATIO = 0.5 * (1.0 + 5.0**0.5)


def mark_shares(items: list[pytest.Item]) -> None:
    """Marks the cases of tests marked `share(quick, all)` that are not in `make test`.

    One case in `quick` is in `make test`, one in `all` in `make test-all`, the others are in
    `make test-slow`, chosen alike in every process. The first is in `make test`. Multiples of the
    golden ratio spread the others evenly over each parameter.
    """
    seen: Counter[str] = Counter()
    for item in items:
        marker = item.get_closest_marker("share")
        if marker is not None and item.get_closest_marker("slow") is None:
            name = item.nodeid.partition("[")[0]
            mark = mark_of_share(seen[name] * GOLDEN_RATIO % 1.0, *marker.args)
            if mark is not None:
                item.add_marker(mark)
            seen[name] += 1


def mark_of_share(number: float, quick: int, all: int = 1) -> str | None:
    """The marker of the case with a number in [0, 1); none of a case that is in `make test`."""
    if number >= 1.0 / all:
        return "slow"
    return "rest" if number >= 1.0 / quick else None


def part(text: str) -> tuple[int, int]:
    """The number of a part and the count of parts, from `K/N`."""
    number, _, count = text.partition("/")
    if not 0 <= int(number) < int(count):
        raise ValueError(f"{text}: K is from 0 to N - 1")
    return int(number), int(count)


def part_of(name: str, count: int) -> int:
    """The part of a test, by a hash of its name: it stays where it is when other tests come."""
    return crc32(name.encode()) % count


class OnePart:
    """Plugin of pytest that deselects all tests but those of one part, after `-m`."""

    def __init__(self, number: int, count: int) -> None:
        self.number = number
        self.count = count

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        inside: list[pytest.Item] = []
        outside: list[pytest.Item] = []
        for item in items:
            is_inside = part_of(item.nodeid, self.count) == self.number
            (inside if is_inside else outside).append(item)
        config.hook.pytest_deselected(items=outside)
        items[:] = inside
