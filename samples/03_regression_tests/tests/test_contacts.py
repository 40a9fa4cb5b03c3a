"""The contacts of the crates' fall are those of the baseline, however they are found."""

from __future__ import annotations

import pytest

# Other processors may round otherwise; more than a micrometre or a thousandth of a degree is a
# change of the scene.
pytestmark = pytest.mark.contacts_tolerance(atol=["1e-6", "normal=0.001deg"])


@pytest.mark.parametrize("broad_phase", ["nxn", "sap", "explicit"])
def test_fall(contacts_regression, broad_phase):
    contacts_regression.check(
        "../scenes/crates.xml", "../scenes/fall.h5", basename="fall", broad_phase=broad_phase
    )


@pytest.mark.contacts_tolerance(pairs_only=True)
def test_what_touches_at_rest(contacts_regression):
    """Which pairs touch at the end, and not where."""
    contacts_regression.check("../scenes/crates.xml", "../scenes/fall.h5", frames="-10:")
