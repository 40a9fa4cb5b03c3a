"""Deformable objects of demonstrations in the worlds of a scene of several environments."""

from __future__ import annotations

import h5py
import numpy as np

from collidecli.importers.recordings.coordinates import DeformableStates
from collidecli.scene.builder import ModelBuilder


def model():
    """Worlds 0 and 1 of one template, world 2 of another; each has a cloth and a towel of one particle."""
    builder = ModelBuilder()
    for root, origin in (("/envs/env_0", 0.0), ("/envs/env_2", 20.0)):
        builder.begin_world(root, [origin, 0, 0, 0, 0, 0, 1])
        builder.add_particles([[origin, 0, 1]], radius=0.0, key=f"{root}/cloth")
        builder.add_particles([[origin, 0, 2]], radius=0.0, key=f"{root}/towel")
        builder.end_world()
        if not origin:
            builder.repeat_world(0, "/envs/env_1", [10, 0, 0, 0, 0, 0, 1])
    return builder.finalize()


def test_each_demonstration_moves_the_objects_of_its_world(tmp_path):
    held = model()
    assert held.world_template.tolist() == [0, 0, 1]
    with h5py.File(tmp_path / "m.h5", "w") as file:
        for world in (0, 2):
            file[f"d{world}/deformable_object/cloth/nodal_position"] = np.full((2, 1, 3), 0.5 + world)
        file.create_group("d1")
        origins = held.world_pose[:, :3]
        states = DeformableStates([[file[f"d{world}"]] for world in range(3)], held, origins, "m.h5")
        found = states.read(range(2))
    row_of = {path: row for row, path in enumerate(held.particles.path)}
    first, third = row_of["/envs/env_0/cloth"], row_of["/envs/env_2/cloth"]
    np.testing.assert_allclose(found[:, 0, first], [[0.5, 0.5, 0.5]] * 2)
    np.testing.assert_allclose(found[:, 1, first], [[10.0, 0.0, 1.0]] * 2)  # rests
    np.testing.assert_allclose(found[:, 2, third], [[22.5, 2.5, 2.5]] * 2)
    np.testing.assert_allclose(found[:, 1, row_of["/envs/env_0/towel"]], [[10.0, 0.0, 2.0]] * 2)
    assert "towel" in states.warnings[0]
