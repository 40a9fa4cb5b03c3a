"""The samples of cloths, surfaces, meshes and humanoids: their commands, their contacts by
formula."""

import gc
import importlib.util
from pathlib import Path

import h5py
import numpy as np
import pytest

from collidecli.storage.contact_sets.reader import ContactSet
from tests.cli.conftest import CommandLine, arrays, attributes, refusals, write_poses

pytestmark = pytest.mark.rest

SAMPLE = Path(__file__).parents[2] / "samples" / "06_cloth"
CLOTH = SAMPLE / "cloth.usda"
SELVES = ("--self-contacts", "0.02", "--device", "cpu")


def made():
    """The module that makes the sample."""
    spec = importlib.util.spec_from_file_location("make_cloth", SAMPLE / "make_scene.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The contact set of all frames."""
    output = tmp_path_factory.mktemp("cloth") / "cloth.h5"
    CommandLine().ok("run", CLOTH, *SELVES, "-o", output)
    CommandLine().ok("check", output)
    return output


@pytest.fixture
def contacts(whole) -> dict[str, np.ndarray]:
    return arrays(whole)


@pytest.fixture
def cloth(tmp_path, collide) -> None:
    """The current folder has the scene and recordings of its particles."""
    (tmp_path / "cloth.usda").symlink_to(CLOTH)
    for name, count, value in (("m", 329, 0.0), ("more", 330, 0.0), ("nan", 329, np.nan)):
        write_recording(tmp_path / f"{name}.h5", count, value)


def test_the_sample_has_no_warning(collide):
    gc.collect()  # stages of earlier tests, of which OpenUSD would read the layers again
    assert collide.ok("inspect", CLOTH).err == ""


def test_particles_touch_where_the_formula_says(contacts):
    sample = made()
    soft = {
        name: contacts[f"soft_contacts/{name}"]
        for name in ("cell_start", "kind", "indices", "shape", "distance")
    }
    for frame in range(sample.FRAMES):
        cloth, drops = (
            np.round(points, 5).astype(np.float32).astype(float)
            for points in (sample.cloth(frame), sample.drops(frame))
        )
        points = np.concatenate([cloth, drops])
        radius = np.repeat([sample.THICK, sample.DROP], [len(cloth), len(drops)])
        distance = (
            np.stack([np.linalg.norm(points, axis=1) - sample.BALL, points[:, 2] - sample.GROUND])
            - radius
        )
        expected = {(int(p), int(s)) for s, p in np.argwhere(distance < 0.01 - 1e-6)}
        rows = np.arange(soft["cell_start"][frame], soft["cell_start"][frame + 1])
        rows = rows[soft["kind"][rows] == 0]
        found = set(
            zip(soft["indices"][rows, 0].tolist(), soft["shape"][rows].tolist(), strict=True)
        )
        assert expected <= found
        assert all(distance[s, p] < 0.01 + 1e-6 for p, s in found)
        np.testing.assert_allclose(
            soft["distance"][rows],
            distance[soft["shape"][rows], soft["indices"][rows, 0]],
            atol=1e-6,
        )
    assert np.diff(soft["cell_start"])[-1] > 100


def test_the_cloth_touches_itself_only_once_it_is_folded(contacts):
    counts = np.diff(contacts["self_contacts/cell_start"])
    assert counts[: len(counts) // 2].sum() == 0
    assert counts[-1] > 50
    assert contacts["self_contacts/distance"].max() < 0.02


def test_parts_of_the_motion_are_merged_into_the_whole(cloth, collide, contacts):
    for part, frames in (("a.h5", "0:12"), ("b.h5", "12:")):
        collide.ok("run cloth.usda", *SELVES, "--frames", frames, "-o", part)
    rows = {
        name: int(contacts[f"{name}/cell_start"][-1]) for name in ("soft_contacts", "self_contacts")
    }
    assert collide.result("merge a.h5 b.h5 -o c.h5")["group_rows"] == rows
    viewed = collide.ok("view c.h5 --points-only --export c.html").out
    assert f"soft contacts  {rows['soft_contacts']:,}".replace(",", " ") in viewed


def write_recording(path: Path, count: int, value: float = 0.0) -> None:
    write_poses(path, np.zeros((2, 1, 0, 7)), [], 1.0)
    with h5py.File(path, "a") as file:
        file["particle_q"] = np.full((2, 1, count, 3), value, np.float32)


test_bad_input_is_refused = refusals(
    "",
    ("run cloth.usda -t more.h5", "/particle_q: the recording has 330 particles, the scene 329"),
    (
        "run cloth.usda -t nan.h5",
        "/particle_q, frame 0, world 0, particle 0: the position is (nan, nan, nan)",
    ),
    ("run cloth.usda --soft-gap -1", "--soft-gap"),
    ("run cloth.usda --self-contacts nan", "--self-contacts"),
    (
        "run cloth.usda --self-contact-rings 2",
        "self_contact_rings applies to contacts of objects with themselves",
    ),
    (
        "inspect cloth.usda --why /World/cloth /World/ball",
        "'/World/cloth' is no shape: it consists of particles (cloth)",
    ),
    needs="cloth",
)


def test_inspect_lists_the_objects_of_particles(cloth, collide):
    assert "289: cloth /World/cloth, 512 triangles" in collide.ok("inspect cloth.usda").out
    objects = collide.result("inspect cloth.usda")["deformables"]
    assert [(each["path"], each["particles"]) for each in objects] == [
        ("/World/cloth", 289),
        ("/World/drops", 40),
    ]


def test_a_converted_recording_keeps_the_positions_of_particles(cloth, collide):
    collide.ok("traj convert m.h5 -o n.h5 --scene cloth.usda")
    assert arrays("n.h5")["particle_q"].shape == (2, 1, 329, 3)
    collide.ok("check n.h5")


def test_recorded_particles_move_those_of_the_scene(cloth, collide):
    collide.ok("run cloth.usda -t m.h5 -o c.h5")
    ignored = collide.ok("run cloth.usda -t m.h5 -o d.h5 --ignore-particles")
    assert "/particle_q is ignored" in ignored.err
    assert np.diff(arrays("c.h5")["soft_contacts/cell_start"]).tolist() == [329, 329]
    assert "ignore_particles" not in attributes("c.h5")["config"]
    assert not any(
        name.startswith(("soft_contacts", "model/particle_object")) for name in arrays("d.h5")
    )
    assert attributes("d.h5")["config"]["ignore_particles"] is True


GRIPPER = Path(__file__).parents[2] / "samples" / "05_hydroelastic" / "gripper.usda"


def test_the_forces_in_a_gripper_are_those_of_formulas(collide):
    collide.ok("run", GRIPPER, "--hydro-surface", "-o", "gripper.h5", "--device", "cpu")
    collide.ok("check gripper.h5")
    found = arrays("gripper.h5")
    names = found["model/shape/path"].tolist()
    start = found["hydro_patches/cell_start"]
    force = found["hydro_patches/force"]
    sides = [found[f"hydro_patches/{name}"] for name in ("shape0", "shape1")]
    assert (start[1], len(found["rigid_contacts/distance"])) == (0, 0)
    last = {
        frozenset(names[side[k]] for side in sides): force[k] for k in range(start[-2], start[-1])
    }
    # The rigid table's plane in a block of 4 cm and 1e8 N/m^3, 2 mm deep.
    side = 0.04
    depth = 0.002
    truth = 1e8 * depth * (side**2 - 2 * side * depth + 4 * depth**2 / 3)
    assert np.linalg.norm(last[frozenset(("/World/table", "/World/block"))]) == pytest.approx(
        truth, rel=1e-5
    )
    # A ball of 3 cm and 2e7 N/m^3 in a pad of 6e7 N/m^3, 4 mm deep.
    radius = 0.03
    k0 = 6e7
    k1 = 2e7
    x = 0.004
    c = radius - x
    q = radius - x * k0 / (k0 + k1)
    truth = np.pi / 3 * (k1 * (radius**3 - q**3) - k0 * (q**3 - c**3))
    for pad in ("left", "right"):
        found = last[frozenset((f"/World/{pad}_pad", "/World/ball"))]
        assert np.linalg.norm(found) == pytest.approx(truth, rel=5e-3)
        assert np.abs(found[1:]).max() < 1e-2 * truth
    of_block = np.any([each == names.index("/World/block") for each in sides], axis=0)
    assert (np.diff(np.linalg.norm(force[of_block], axis=1)) > 0).all()


MESHES = Path(__file__).parents[2] / "samples" / "04_meshes" / "meshes.usda"
SUNK = 0.002
"""How far the ring's lowest point is below the waves' height under its centre [m]."""


def test_a_ring_rolls_over_waves(collide):
    collide.ok("run", MESHES, "--gap", "0.005", "-o", "ring.h5", "--device", "cpu")
    collide.ok("check ring.h5")
    with ContactSet.open("ring.h5") as contacts:
        row = {path: k for k, path in enumerate(contacts.shapes.path)}
        frames = []
        depths = []
        for frame in range(contacts.frame_count):
            cell = contacts.cell(frame, 0).columns
            here = (cell["shape0"] == row["/World/waves"]) & (cell["shape1"] == row["/World/ring"])
            frames += [frame] * bool(here.any())
            depths += cell["distance"][here].tolist()
            # What the ring stands on pushes it up: no normal of the waves points below the horizon.
            assert np.all(cell["normal"][here][:, 2] > 0.5)
    assert len(frames) > 85
    # The waves' triangles cut hills and fill valleys, at most by the sagitta of one of their sides.
    assert -0.012 < min(depths) < -SUNK / 2
