"""Rows of a summary of contacts: what stands in place of a deepest contact."""

import pytest

from collidecli.pages.pair_tables import contact_rows

DEEPEST = {"distance": -0.002, "frame": 1, "world": 0, "episode": "", "shape0": "a", "shape1": "b"}


@pytest.mark.parametrize(
    ("contacts", "deepest", "soft_rows", "told"),
    [
        (2, DEEPEST, 3, "2 mm deep, frame 1, world 0: a and b"),
        (0, None, 0, "no contact"),
        (0, None, 3, "no rigid contact; other contacts are below"),
        (2, None, 0, "no contact of two solid shapes"),
    ],
)
def test_the_deepest_contact_is_that_of_rigid_contacts(contacts, deepest, soft_rows, told):
    result = {
        "contacts": contacts,
        "touching_contacts": contacts,
        "near_contacts": 0,
        "contact_pair_count": contacts,
        "touching_pair_count": contacts,
        "deepest": deepest,
        "groups": {"soft_contacts": {"rows": soft_rows, "cells": 1}},
    }
    assert dict(contact_rows(result))["deepest"] == told
