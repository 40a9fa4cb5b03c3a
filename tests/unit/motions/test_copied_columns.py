"""Columns of contacts that a device copies to the host for a reader."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from collidecli.analysis.summary import TOUCH_COLUMNS
from collidecli.motions.columns import copied_columns
from collidecli.scene.episodes import Episodes
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_switches import ShapeSwitches

PLAIN = ContactOptions()
EPISODES = Episodes(("a",), *np.array([[0], [0], [2]]))
SWITCHES = ShapeSwitches(("a",), np.array([0]), np.ones((2, 1), bool))


def copied(reads, contact=PLAIN, **motion):
    moved: Any = SimpleNamespace(episodes=None, world_count=1)
    vars(moved).update(motion)
    return copied_columns(reads, contact, moved, 1)


def test_what_is_read_is_copied():
    assert copied(("distance", "kind")) == {"distance", "kind"}
    assert copied(()) == frozenset()
    assert copied(None) is None


@pytest.mark.parametrize(
    "contact",
    [
        ContactOptions(contact_ids=True),
        ContactOptions(sticky_contacts=0.01),
        ContactOptions(reduce_contacts=True, reduce_by="bodies"),
    ],
    ids=["ids", "sticky", "bodies"],
)
def test_all_columns_where_the_host_follows_or_reduces_contacts(contact):
    assert copied(("distance",), contact) is None


@pytest.mark.parametrize("motion", [{"episodes": EPISODES}, {"switches": SWITCHES}], ids=str)
def test_what_the_host_selects_rows_by_is_copied(motion):
    assert copied((), **motion) == set(TOUCH_COLUMNS)
    assert copied(("kind",), **motion) == {"kind", *TOUCH_COLUMNS}


def test_pairs_where_the_host_merges_reduced_surfaces():
    assert copied(("kind",), ContactOptions(hydro_reduce=True)) == {"kind", *TOUCH_COLUMNS}
