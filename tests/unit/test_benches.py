"""Every benchmark that `make bench` names can be started, and every table of the documentation has
one."""

import inspect
import re
from pathlib import Path

import pytest

from tests.bench.__main__ import BENCHES, measure_of

TABLES = Path(__file__).parents[2] / "docs" / "explanation" / "measurements.md"


@pytest.mark.parametrize("name", BENCHES)
def test_a_benchmark_can_be_started(name):
    assert list(inspect.signature(measure_of(name)).parameters) == ["repeats", "clock"]


def test_every_table_has_a_benchmark():
    named = re.findall(r"<!-- bench: (\w+) -->", TABLES.read_text())
    assert named
    assert set(named) <= set(BENCHES)
    assert len(named) == len(set(named))
