"""Every kernel that is launched was in a list of kernels to load: one that is loaded at its first
launch is compiled alone, while the others wait."""

import os
from pathlib import Path

import numpy as np
import pytest
import warp as wp

import collidecli
from collidecli import ModelBuilder
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime import kernel_loader, recorded_launches
from collidecli.engine.runtime.kernel import kernel

SAMPLES = Path(__file__).parents[3] / "samples"
PILE = os.fspath(SAMPLES / "01_usd_pile/pile.usda")
GRIPPER = os.fspath(SAMPLES / "05_hydroelastic/gripper.usda")
CLOTH = os.fspath(SAMPLES / "06_cloth/cloth.usda")
FRAMES = 4
RUNS = {
    "nxn": (PILE, {"broad_phase": "nxn"}),
    "sap": (PILE, {"broad_phase": "sap"}),
    "explicit": (PILE, {"broad_phase": "explicit"}),
    "mpr": (PILE, {"narrow_phase": "mpr"}),
    "touch": (PILE, {"touch_only": True}),
    "candidates": (PILE, {"candidates_only": True, "broad_phase": "sap"}),
    "reduced": (PILE, {"reduce_contacts": True}),
    "reduced by bodies": (PILE, {"reduce_contacts": True, "reduce_by": "bodies"}),
    "limited": (PILE, {"max_contacts_per_pair": 2}),
    "sweep": (PILE, {"sweep": True}),
    "hydroelastic": (GRIPPER, {}),
    "reduced hydroelastic": (GRIPPER, {"hydro_reduce": True}),
    "cloth": (CLOTH, {}),
    "cloth alone": (CLOTH, {"self_contacts": 0.01}),
    "swept cloth": (CLOTH, {"self_contacts": 0.01, "sweep": True}),
    "nearest of a cloth": (CLOTH, {"soft_elements": "nearest"}),
    "touches of a cloth": (CLOTH, {"touch_only": True}),
}


@pytest.fixture
def unlisted(monkeypatch):
    """Names of modules that are loaded at their first launch, by a loader that has loaded none."""
    found = []
    original = kernel_loader._Loader.load_one

    def load_one(self, module, device):
        found.append(module.name)
        original(self, module, device)

    monkeypatch.setattr(kernel_loader, "_loaders", {})
    monkeypatch.setattr(kernel_loader._Loader, "load_one", load_one)
    return found


def many_shapes():
    """Of every type but heightfields, with particles; more than are listed as pairs."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    tetrahedron = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])
    for k in range(8):
        body = builder.add_body(xform=(0.3 * k, 0.1 * k, 0.3, 0, 0, 0, 1))
        builder.add_shape_box(body, hx=0.3, hy=0.2, hz=0.4)
        builder.add_shape_capsule(body, radius=0.2, half_height=0.3)
        builder.add_shape_mesh(body, tetrahedron, faces)
    builder.add_particles(np.array([[0.0, 0.0, 0.02], [0.0, 0.0, 1.0]]), radius=0.05)
    return builder.finalize()


def poses_of(model):
    poses = np.repeat(model.bodies.pose[None, None], FRAMES, axis=0)
    poses[:, 0, :, 2] += np.linspace(0.0, 0.3, FRAMES)[:, None]
    return poses


CALLS = {
    "collide": lambda model, poses: collidecli.collide(model, poses),
    "sap": lambda model, poses: collidecli.collide(model, poses, broad_phase="sap"),
    "clearance": lambda model, poses: collidecli.clearance(model, poses),
    "vertices": lambda model, poses: collidecli.probe(
        model, poses, vertices_of=model.bodies.path[0]
    ),
    "sweep": lambda model, poses: collidecli.sweep(model, poses),
    "audit": lambda model, poses: collidecli.audit(model, poses),
    "boxes": lambda model, poses: collidecli.bounding_boxes(model, poses),
    "profile": lambda model, poses: collidecli.profile(model, poses, repeats=1),
}


@pytest.mark.rest
@pytest.mark.parametrize("name", RUNS)
def test_kernels_of_runs_are_listed(unlisted, name):
    scene, options = RUNS[name]
    collidecli.run(scene, frames=f"0:{FRAMES}", **options)
    assert unlisted == []


@pytest.mark.rest
@pytest.mark.filterwarnings("ignore:distances from particles are not measured")
@pytest.mark.parametrize("name", CALLS)
def test_kernels_of_functions_are_listed(unlisted, name):
    model = many_shapes()
    CALLS[name](model, poses_of(model))
    assert unlisted == []


@kernel
def unlisted_kernel(values: wp.array[wp.int32]):
    """Adds one."""
    values[wp.tid()] += 1


def test_a_kernel_that_no_list_has_is_loaded_without_a_line(unlisted, capfd):
    values = wp.zeros(3, dtype=wp.int32, device=find_device("cpu"))
    recorded_launches.record_launch(unlisted_kernel, 3, [values]).launch()
    assert values.numpy().tolist() == [1, 1, 1]
    assert unlisted == [unlisted_kernel.module.name]
    assert capfd.readouterr().out == ""
