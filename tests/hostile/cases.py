"""The hostile inputs by number: what was made on purpose first, then damage drawn from the number."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.hostile.asked import asked_groups, damaged_set
from tests.hostile.configured import configured_groups
from tests.hostile.crafted import crafted
from tests.hostile.mutators import damaged
from tests.hostile.seeds import Group

FIRST_ASKED = 2000
"""From this number on, contact sets for the verbs that ask something of them."""
FIRST_CONFIGURED, WHOLE = 2400, 3200
"""From the first on, files of the other kinds; the second is the number of all inputs."""


@dataclass(frozen=True)
class Case:
    """One input. files: what lies in its folder. may_open: names in the folder outside that the scene itself names."""

    name: str
    main: str
    files: dict[str, bytes]
    commands: tuple[tuple[str, ...], ...]
    may_open: frozenset[str] = field(default_factory=frozenset)


def case_of(number: int, groups: list[Group], outside: str) -> Case:
    """outside: a folder that no file may lead to without naming it."""
    made = crafted(groups, outside)
    if number < len(made):
        one = made[number]
        files = {name: data if isinstance(data, bytes) else data() for name, data in one.files.items()}
        return Case(f"{number} {one.name}", one.main, files, one.commands, frozenset(one.may_open))
    rng = random.Random(number)
    if number >= FIRST_CONFIGURED:
        groups = configured_groups()
    elif number >= FIRST_ASKED:
        asked = asked_groups()
        group = asked[number % len(asked)]
        files = {**group.files, group.main: damaged_set(group.files[group.main], rng)}
        return Case(f"{number} {group.name}", group.main, files, group.commands)
    group = groups[number % len(groups)]
    files = dict(group.files)
    name = rng.choice(group.damaged)
    files[name] = damaged(files[name], rng)
    return Case(f"{number} {group.name}: {name} damaged", group.main, files, group.commands)


def chosen(count: int, seed: int, whole: range) -> list[int]:
    """Numbers for a shorter run, drawn by `seed`."""
    return sorted(random.Random(seed).sample(whole, count))
