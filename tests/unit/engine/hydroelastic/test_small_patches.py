"""Small and thin patches of meshes and heightfields: found, or counted and named."""

from __future__ import annotations

import re

import numpy as np
import pytest

from collidecli.commands.python_api import collide
from collidecli.engine.cells import PoseBatch
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import ContactOptions
from tests.support.engine_runs import pipeline_of
from tests.support.hydroelastic import RIGID, random_rotation, soft, surface

IDENTITY = (0.0, 0.0, 0.0, 1.0)
TILT = random_rotation(np.random.default_rng(3))


def arrays(solid) -> tuple[np.ndarray, np.ndarray]:
    mesh = solid.to_mesh()
    return np.asarray(mesh.vert_properties, float)[:, :3], np.asarray(mesh.tri_verts)


def stylus() -> tuple[np.ndarray, np.ndarray]:
    """A bar with a three-sided point below it: closed and not convex."""
    from manifold3d import Manifold

    corners = np.array([(0, 0, 0), (0.05, 0.05, 0.3), (-0.05, 0.05, 0.3), (0, -0.05, 0.3)])
    return arrays(Manifold.hull_points(corners) + Manifold.cube((1, 0.1, 0.1), True).translate((0, 0, 0.33)))


def cup(wall: float, side: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    """A cube without its inner part and its top."""
    from manifold3d import Manifold

    inner = Manifold.cube((side - 2 * wall, side - 2 * wall, side))
    place = wall - side / 2
    return arrays(Manifold.cube((side, side, side), True) - inner.translate((place, place, place)))


def on_ground(mesh: tuple[np.ndarray, np.ndarray], ground: str, pose) -> ModelBuilder:
    builder = ModelBuilder()
    if ground == "plane":
        builder.add_shape_plane(-1, cfg=soft(RIGID))
    else:
        builder.add_shape_heightfield(-1, np.zeros((9, 9), np.float32), hx=3.0, hy=3.0, cfg=soft(RIGID))
    builder.add_shape_mesh(builder.add_body(pose), *mesh, cfg=soft(1e6))
    return builder


def missed(builder: ModelBuilder) -> tuple[int, int, tuple[int, int] | None]:
    """Number of patches, of overlaps without a patch, and the first of these."""
    model = builder.finalize()
    poses = model.resting_poses()[None]
    pipeline = pipeline_of(model, poses, ContactOptions())
    workspace = Workspace(pipeline.device_model.device, 4 << 30)
    block, report = pipeline.collide(PoseBatch(0, 1, 0, np.ascontiguousarray(poses)), workspace)
    return block.groups["hydro_patches"].row_count, report.missed_count, report.missed_pair


@pytest.mark.parametrize("ground", ["plane", "heightfield"])
def test_a_point_that_sinks_in_by_little_has_a_surface(ground):
    """Area and force of a pyramid's tip are as the square and the cube of its depth."""
    depths = np.array([1e-2, 1e-3, 1e-4, 1e-5])
    found = [surface(on_ground(stylus(), ground, (0.013, 0.017, -depth, *IDENTITY))) for depth in depths]
    area = np.array([each.area for each in found])
    force = np.array([each.force[2] for each in found])
    np.testing.assert_allclose(area / depths**2, area[0] / depths[0] ** 2, rtol=5e-3)
    np.testing.assert_allclose(force / depths**3, force[0] / depths[0] ** 3, rtol=2e-2)
    # A triangle of 0.1 m by 0.1 m at a height of 0.3 m.
    np.testing.assert_allclose(area, 0.005 * (depths / 0.3) ** 2, rtol=5e-3)


@pytest.mark.parametrize("ground", ["plane", "heightfield"])
def test_thin_walls_have_a_surface_or_are_named(ground):
    for wall in (5e-4, 1e-4, 1e-5, 1e-6):
        patches, count, pair = missed(on_ground(cup(wall), ground, (0.013, 0.007, 0.1, *TILT)))
        assert patches + count == 1
        assert pair == ((0, 1) if count else None)
    assert missed(on_ground(cup(5e-4), ground, (0.013, 0.007, 0.1, *TILT)))[0] == 1
    assert missed(on_ground(cup(1e-6), ground, (0.013, 0.007, 0.1, *TILT)))[1] == 1


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_shapes_that_are_near_are_not_counted(gap):
    assert missed(on_ground(cup(2e-3), "heightfield", (0.013, 0.007, 0.2 + gap, *IDENTITY))) == (0, 0, None)
    assert missed(on_ground(stylus(), "heightfield", (0.013, 0.007, gap, *IDENTITY))) == (0, 0, None)


def test_a_soft_shape_inside_another_is_not_counted():
    """Its pressure is below the other's everywhere: there is no surface."""
    builder = on_ground(cup(0.19), "plane", (0.0, 0.0, 5.0, *IDENTITY))
    builder.add_shape_sphere(builder.add_body((-0.11, 0.1, 5.0, *IDENTITY)), radius=0.05, cfg=soft(1e5))
    assert missed(builder) == (0, 0, None)


def test_python_names_the_shapes():
    builder = ModelBuilder()
    builder.add_shape_plane(-1, cfg=soft(RIGID), key="table")
    builder.add_shape_mesh(builder.add_body((0.0, 0.0, 0.1, *TILT)), *cup(1e-6), cfg=soft(1e6), key="foil")
    named = "1 hydroelastic overlap, the first of 'table' and '.*foil'"
    with pytest.warns(RuntimeWarning, match="foil' has walls of"), pytest.warns(RuntimeWarning, match=named):
        collide(builder.finalize())


def ball(radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Two balls that overlap: thick, and not convex."""
    from manifold3d import Manifold

    return arrays(Manifold.sphere(radius, 32) + Manifold.sphere(radius, 32).translate((radius, 0, 0)))


def plate(thickness: float) -> tuple[np.ndarray, np.ndarray]:
    """A square plate with a hole: its voxels are small for the shortest side of its box, 16 times smaller at most."""
    from manifold3d import Manifold

    hole = Manifold.cube((0.1, 0.1, 1.0), True).translate((0.1, 0.1, 0.0))
    return arrays(Manifold.cube((0.4, 0.4, thickness), True) - hole)


def sheet(thickness: float) -> tuple[np.ndarray, np.ndarray]:
    """A thin convex plate, whose surface with a plane is exact."""
    from manifold3d import Manifold

    return arrays(Manifold.cube((0.4, 0.4, thickness), True))


@pytest.mark.parametrize(
    ("mesh", "size", "resolution", "expected"),
    [
        (cup, 2e-3, 64, r"walls of 0.002 m, 0\.32 voxels of --hydro-resolution 64.*thicker walls"),
        (cup, 5e-3, 64, r"0\.8\d? voxels.*give --hydro-resolution 32\d"),
        (cup, 5e-3, 161, None),
        (ball, 0.2, 64, None),
        (ball, 0.2, 8, r"voxels of --hydro-resolution 8.*give --hydro-resolution"),
        (plate, 2e-3, 64, None),
        (plate, 2e-4, 64, r"0\.5\d? voxels"),
        (sheet, 1e-5, 64, None),
    ],
)
def test_meshes_with_walls_of_less_than_two_voxels_are_named(mesh, size, resolution, expected):
    model = on_ground(mesh(size), "plane", (0.0, 0.0, 1.0, *IDENTITY)).finalize()
    options = ContactOptions(hydro_resolution=resolution)
    notes = pipeline_of(model, model.resting_poses()[None], options).notes
    if expected is None:
        assert notes == ()
    else:
        assert len(notes) == 1
        assert re.search(r"^mesh '.+' has .*" + expected, notes[0])


def test_a_wall_of_four_voxels_has_the_force_of_the_limit():
    pose = (0.013, 0.007, 0.1, *TILT)
    force = [surface(on_ground(cup(0.02), "plane", pose), hydro_resolution=n).force[2] for n in (16, 80, 320)]
    assert force[0] < 0.8 * force[2]
    assert force[1] == pytest.approx(force[2], rel=0.08)
