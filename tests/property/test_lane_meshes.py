"""Two meshes that 32 lanes search have the contacts of one thread, to the bit, in any order of the
lanes.

The CPU is treated as a device with a memory of its own: one thread visits the lanes of a pair in an
order that the test chooses.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from collidecli.engine.narrowphase import lane_meshes
from collidecli.engine.narrowphase.lane_meshes import LANES
from collidecli.engine.narrowphase.triangles.mesh_mesh import MESHES
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime import device_stream
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import ContactOptions
from tests.property import test_flat_faces as flat_faces
from tests.support.device_scenes import Scene, answer, scene_pipeline
from tests.support.fields import BLOB
from tests.support.flat_faces import LETTER_L, LETTER_U, flat_scene
from tests.support.meshes import Mesh, bumpy, prism, torus
from tests.support.poses import poses_of_two

ORDERS = 3
"""Permuted orders of the lanes, beside the ascending one."""


def two_meshes(first: Mesh, second: Mesh, seed: int, count: int, spread: float) -> Scene:
    """Two meshes at random poses that mostly overlap."""
    builder = ModelBuilder()
    for mesh in (first, second):
        builder.add_shape_mesh(builder.add_body(), *mesh)
    poses = poses_of_two(np.random.default_rng(seed), count, spread)
    return Scene(builder.finalize(), poses[:, :1], ContactOptions())


def standing(surface: str, body: str, seed: int) -> Scene:
    """A prism on a flat surface with its walls on grid lines, moved by noise of 0 to 1e-6: most
    exits are equal."""
    model = flat_scene(surface, body)
    rng = np.random.default_rng(seed)
    found = [flat_faces.standing_poses(rng, placing) for placing in flat_faces.PLACINGS]
    poses = np.zeros((sum(len(each.yaw) for each in found), 1, len(model.bodies), 7))
    poses[..., 6] = 1.0
    turn = np.concatenate([each.yaw for each in found])[:, None] * [0.0, 0.0, 1.0]
    tilt = np.concatenate([each.tilt for each in found])
    poses[:, 0, -1, :2] = np.concatenate([each.offset for each in found])
    poses[:, 0, -1, 2] = np.concatenate([each.height for each in found])
    poses[:, 0, -1, 3:] = (Rotation.from_rotvec(tilt) * Rotation.from_rotvec(turn)).as_quat()
    return Scene(model, poses[::4], ContactOptions(gap=1e-3))


SCENES: dict[str, Callable[[], Scene]] = {
    "coarse meshes": lambda: two_meshes(BLOB, BLOB, 9, 12, 0.8),
    "L in L": lambda: two_meshes(prism(LETTER_L, 1.0), prism(LETTER_L, 1.0), 3, 20, 1.5),
    "torus in U": lambda: two_meshes(torus(20, 10), prism(LETTER_U, 1.0), 4, 12, 1.0),
    "equal tori": lambda: replace(
        two_meshes(torus(20, 10), torus(20, 10), 5, 2, 0.0),
        poses=np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (1, 1, 2, 1)),
    ),
    "finely divided": lambda: two_meshes(
        bumpy(np.random.default_rng(0), 35, 31, 0.1),
        bumpy(np.random.default_rng(1), 35, 31, 0.1),
        6,
        2,
        0.15,
    ),
    "L on a slab": lambda: standing("slab", "L of triangles", 7),
    "L on a sheet": lambda: standing("sheet", "L of triangles", 8),
}


@pytest.fixture
def launched(monkeypatch) -> list[wp.Kernel]:
    """Kernels that workspaces launch, in a list."""
    found: list[wp.Kernel] = []
    launch = Workspace.launch

    def noted(self: Workspace, kernel: wp.Kernel, count: int, arguments: list) -> None:
        found.append(kernel)
        launch(self, kernel, count, arguments)

    monkeypatch.setattr(Workspace, "launch", noted)
    return found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.rest) if name == "finely divided" else name
        for name in SCENES
    ],
)
def test_lanes_in_any_order_have_the_bits_of_one_thread(name, launched, monkeypatch):
    find_device("cpu")
    scene = SCENES[name]()
    expected = answer(scene_pipeline(scene, "explicit"), scene)
    assert expected[1] > 0
    assert MESHES.overlap in launched
    assert MESHES.lane_overlap not in launched
    monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", {"cpu"})
    monkeypatch.setattr(device_stream, "keep_freed_memory", lambda device: None)
    rng = np.random.default_rng(len(name))
    factors = [1, *(2 * rng.integers(0, LANES // 2, ORDERS) + 1)]
    for factor, shift in zip(factors, [0, *rng.integers(0, LANES, ORDERS)], strict=True):
        monkeypatch.setattr(lane_meshes, "LANE_ORDER", (int(factor), int(shift)))
        launched.clear()
        assert answer(scene_pipeline(scene, "explicit"), scene) == expected, (factor, shift)
        assert MESHES.lane_overlap in launched
        assert MESHES.overlap not in launched
