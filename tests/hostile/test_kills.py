"""Commands that write are killed at random moments; what they leave is checked, and they run again."""

from __future__ import annotations

import os

import pytest

from tests.hostile.kills import VICTIMS, Ground, kill_faults

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="the command forks")]
KILLS, GROUPS = 100, 4


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground(tmp_path_factory.mktemp("kills"))


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_killed_command_leaves_nothing_half_written(ground: Ground, group: int):
    found = [fault for number in range(group, KILLS, GROUPS) for fault in kill_faults(ground, number)]
    assert found == []


def test_every_command_is_killed_in_every_way():
    assert len({(number % len(VICTIMS), number // len(VICTIMS) % 3) for number in range(KILLS)}) == 3 * len(VICTIMS)
