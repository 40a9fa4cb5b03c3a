"""Every cell of the shape matrix against its oracle, at a few poses; and that the page lists the
cells there are."""

from pathlib import Path

import numpy as np
import pytest

from tests.matrix.cells import (
    CELLS,
    FORMS,
    NEVER,
    cell_name,
    contacts_of,
    expected,
    field_voxel,
    listed,
    measure,
    measure_depths,
    route,
    truth_of,
)

PAGE = Path(__file__).parents[2] / "docs/reference/shape-matrix.md"
POSES = 9
HULL_BOUND = 1e-5
"""Of the size. Columns of float32 are good to 1e-7."""
GROOVES = 0.05
"""Of the size."""
LEAST_SHARE = 0.5
"""Of how deep the deepest place is: what leaves a triangle sideways counts only where it is twice
as deep as others."""


@pytest.fixture(scope="module")
def errors():
    return measure([cell for cell in CELLS if route(*cell) != NEVER], POSES)


@pytest.mark.parametrize("cell", CELLS, ids=cell_name)
def test_cell(cell, errors):
    if route(*cell) == NEVER:
        return
    facts = errors[cell]
    voxel = field_voxel(cell)
    bound = HULL_BOUND if voxel is None else 0.5 * voxel
    assert facts.strays == 0
    assert facts.apart > 0
    assert facts.overlapping > 0
    assert facts.apart_error <= bound
    if facts.depth_error is not None:
        # The least translation of a sphere is no less than its centre's distance; in a groove it is
        # more.
        in_grooves = {form.name for form in cell} & {"triangle mesh", "heightfield"}
        assert facts.depth_error <= (GROOVES if in_grooves else bound)
    elif facts.short is not None and voxel is not None:
        assert facts.short <= bound
    elif facts.least_share is not None:
        assert facts.least_share >= LEAST_SHARE


def test_depths_are_the_least_where_a_mesh_is_convex():
    for form, facts in measure_depths(POSES).items():
        assert facts.deepest > 0.5, form.name
        assert facts.error <= HULL_BOUND, form.name


CYLINDER_ACROSS = [
    [0.358, -0.556, -0.588, 0.114, 0.374, 0.877, 0.28],
    [0.594, 0.009, -1.215, -0.673, -0.444, 0.525, -0.274],
]
CONE_BESIDE = [
    [0.0524, -0.4484, -1.5594, -0.6447, -0.2446, -0.2556, -0.6777],
    [-1.5034, -0.2586, -1.4751, -0.2416, -0.6068, -0.6336, 0.4145],
]


def unit_poses(pair):
    poses = np.array(pair)[None]
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    return poses


def test_what_crosses_is_not_said_to_touch():
    """An edge of the mesh goes through the cylinder's axis: along the surface's normals it was 0.09
    deep."""
    cell = (FORMS[4], FORMS[8])
    poses = unit_poses(CYLINDER_ACROSS)
    found, _ = contacts_of([cell], poses[:, None], 1.0)
    assert found[0, 0] <= LEAST_SHARE * truth_of(*cell, poses).distance[0] < -0.19


def test_a_rim_meets_a_ridge_between_its_corners():
    """Each corner of the rim has a lower one beside it: none was the nearest, and the pair was 0.7
    voxels too far."""
    cell = (FORMS[5], FORMS[10])
    poses = unit_poses(CONE_BESIDE)
    found, _ = contacts_of([cell], poses[:, None], 1.0)
    assert found[0, 0] == pytest.approx(
        truth_of(*cell, poses).distance[0], abs=0.25 * cell[1].voxel
    )


def test_the_page_lists_the_cells_there_are():
    assert len(CELLS) == len(FORMS) * (len(FORMS) + 1) // 2
    assert listed(PAGE.read_text()) == expected()
