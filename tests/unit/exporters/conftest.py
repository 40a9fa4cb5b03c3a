"""A made-up contact set of a few worlds, and its layouts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from collidecli.exporters.arrays import Layout
from collidecli.exporters.selection import SelectedContacts, chosen_worlds, kept_items
from collidecli.scene.tables import ContactBlock
from collidecli.storage.contact_sets.reader import ContactSet
from tests.support.contact_sets import made_up_block, small_model, write_contact_set

FRAMES, WORLDS = 7, 3


@pytest.fixture(scope="module")
def block() -> ContactBlock:
    return made_up_block(small_model(WORLDS, forced=True), FRAMES)


@pytest.fixture(scope="module")
def contacts(tmp_path_factory, block) -> Iterator[ContactSet]:
    path = tmp_path_factory.mktemp("exports") / "set.h5"
    write_contact_set(path, small_model(WORLDS, forced=True), block)
    with ContactSet.open(path) as found:
        yield found


@pytest.fixture(scope="module")
def select(contacts):
    """select(frames, worlds, include, exclude): some of the set."""

    def made(frames: range = range(FRAMES), worlds=(), include=(), exclude=()) -> SelectedContacts:
        kept = kept_items(contacts, include, exclude)
        return SelectedContacts(contacts, frames, chosen_worlds(worlds, contacts), kept)

    return made


@pytest.fixture(scope="module")
def made():
    """Every array of a layout, its pieces put together."""

    def together(layout: Layout) -> dict[str, np.ndarray]:
        found = {}
        for array in layout.arrays:
            values = np.concatenate([*array.pieces(), np.zeros((0, *array.shape[1:]), array.dtype)])
            assert values.shape == array.shape, array.name
            assert values.dtype == array.dtype, array.name
            found[array.name] = values
        return found

    return together
