"""The samples of cloths, surfaces, meshes and humanoids: their commands, their contacts by formula."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from pxr import Usd, UsdGeom

from collidecli import open_contacts
from collidecli.cli.main import main
from collidecli.storage.contact_sets.reader import ContactSet

SAMPLE = Path(__file__).parents[2] / "samples" / "06_cloth"
CLOTH = SAMPLE / "cloth.usda"


def made():
    """The module that makes the sample."""
    spec = importlib.util.spec_from_file_location("make_cloth", SAMPLE / "make_scene.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def contacts(tmp_path_factory):
    output = tmp_path_factory.mktemp("cloth") / "cloth.h5"
    words = ["run", str(CLOTH), "--self-contacts", "0.02", "-o", str(output), "--device", "cpu", "-q"]
    assert main(words) == 0
    assert main(["check", str(output), "-q"]) == 0
    with h5py.File(output) as file:
        held: Any = file
        yield {name: {key: data[()] for key, data in held[name].items()} for name in ("soft_contacts", "self_contacts")}


def test_the_sample_has_no_warning(capsys):
    assert main(["inspect", str(CLOTH)]) == 0
    assert capsys.readouterr().err == ""


def test_particles_touch_the_ball_and_the_ground_where_the_formula_says(contacts):
    sample, soft = made(), contacts["soft_contacts"]
    for frame in range(sample.FRAMES):
        cloth, drops = (
            np.round(points, 5).astype(np.float32).astype(float)
            for points in (sample.cloth(frame), sample.drops(frame))
        )
        points = np.concatenate([cloth, drops])
        radius = np.repeat([sample.THICK, sample.DROP], [len(cloth), len(drops)])
        distance = np.stack([np.linalg.norm(points, axis=1) - sample.BALL, points[:, 2] - sample.GROUND]) - radius
        expected = {(int(p), int(s)) for s, p in np.argwhere(distance < 0.01 - 1e-6)}
        rows = np.arange(soft["cell_start"][frame], soft["cell_start"][frame + 1])
        rows = rows[soft["kind"][rows] == 0]
        found = set(zip(soft["indices"][rows, 0].tolist(), soft["shape"][rows].tolist(), strict=True))
        assert expected <= found
        assert all(distance[s, p] < 0.01 + 1e-6 for p, s in found)
        np.testing.assert_allclose(
            soft["distance"][rows], distance[soft["shape"][rows], soft["indices"][rows, 0]], atol=1e-6
        )
    assert np.diff(soft["cell_start"])[-1] > 100


def test_the_cloth_touches_itself_only_once_it_is_folded(contacts):
    counts = np.diff(contacts["self_contacts"]["cell_start"])
    assert counts[: len(counts) // 2].sum() == 0
    assert counts[-1] > 50
    assert contacts["self_contacts"]["distance"].max() < 0.02


def test_the_result_does_not_depend_on_threads_chunks_and_memory(tmp_path, collide):
    hashes = set()
    for k, words in enumerate(([], ["--threads", "1", "--chunk-cells", "3"], ["--memory-limit", "96MiB"])):
        run = collide("run", str(CLOTH), "--self-contacts", "0.02", "-o", str(tmp_path / f"{k}.h5"), "--json", *words)
        assert run.code == 0, run.err
        result = json.loads(run.out)
        assert result["groups"]["soft_contacts"]["rows"] > 1000
        hashes.add(result["content_sha256"])
    assert len(hashes) == 1


def test_parts_of_the_motion_are_merged_into_the_whole(tmp_path, collide, contacts):
    parts = [str(tmp_path / "a.h5"), str(tmp_path / "b.h5")]
    for part, frames in zip(parts, ("0:12", "12:"), strict=True):
        run = collide("run", str(CLOTH), "--self-contacts", "0.02", "--frames", frames, "-o", part, "-q")
        assert run.code == 0, run.err
    merged = collide("merge", *parts, "-o", str(tmp_path / "c.h5"), "--json")
    rows = {name: int(held["cell_start"][-1]) for name, held in contacts.items()}
    assert json.loads(merged.out)["group_rows"] == rows
    viewed = collide("view", str(tmp_path / "c.h5"), "--points-only", "--export", str(tmp_path / "c.html"))
    assert f"soft contacts  {rows['soft_contacts']:,}".replace(",", " ") in viewed.out


def write_recording(path: Path, count: int, value: float = 0.0) -> None:
    with h5py.File(path, "w") as file:
        file.attrs["format"] = "collide-trajectory"
        file.attrs["format_version"] = np.array([1, 0], np.int32)
        file.attrs["creator"] = "test"
        file["time"] = [0.0, 1.0]
        file["body_name"] = np.zeros(0, "S1")
        file["body_q"] = np.zeros((2, 1, 0, 7))
        file["particle_q"] = np.full((2, 1, count, 3), value, np.float32)


@pytest.mark.parametrize(
    ("count", "value", "words", "said"),
    [
        (330, 0.0, (), "/particle_q: the recording has 330 particles, the scene 329"),
        (329, np.nan, (), "/particle_q, frame 0, world 0, particle 0: the position is (nan, nan, nan)"),
        (329, 0.0, ("--soft-gap", "-1"), "--soft-gap"),
        (329, 0.0, ("--self-contacts", "nan"), "--self-contacts"),
        (329, 0.0, ("--self-contact-rings", "2"), "self_contact_rings applies to contacts of objects with themselves"),
    ],
)
def test_bad_input_is_refused_in_one_message(tmp_path, collide, count, value, words, said):
    write_recording(tmp_path / "m.h5", count, value)
    refused = collide("run", str(CLOTH), "-t", str(tmp_path / "m.h5"), "-o", str(tmp_path / "c.h5"), *words)
    assert refused.code == 2
    assert said in refused.err
    assert "Traceback" not in refused.err
    assert not (tmp_path / "c.h5").exists()


def test_inspect_lists_the_objects_of_particles(collide):
    shown = collide("inspect", str(CLOTH))
    assert "289: cloth /World/cloth, 512 triangles" in shown.out
    why = collide("inspect", str(CLOTH), "--why", "/World/cloth", "/World/ball")
    assert why.code == 2
    assert "'/World/cloth' is no shape: it consists of particles (cloth)" in why.err
    objects = json.loads(collide("inspect", str(CLOTH), "--json").out)["deformables"]
    assert [(each["path"], each["particles"]) for each in objects] == [("/World/cloth", 289), ("/World/drops", 40)]


def test_a_converted_recording_keeps_the_positions_of_particles(tmp_path, collide):
    source = tmp_path / "m.h5"
    write_recording(source, 329)
    run = collide("traj", "convert", str(source), "-o", str(tmp_path / "n.h5"), "--scene", str(CLOTH))
    assert run.code == 0, run.err
    with h5py.File(tmp_path / "n.h5") as file:
        positions: Any = file["particle_q"]
        assert positions.shape == (2, 1, 329, 3)
    assert collide("check", str(tmp_path / "n.h5")).code == 0


def test_recorded_particles_move_those_of_the_scene_and_can_be_ignored(tmp_path, collide):
    write_recording(tmp_path / "m.h5", 329)
    run = collide("run", str(CLOTH), "-t", str(tmp_path / "m.h5"), "-o", str(tmp_path / "c.h5"))
    assert run.code == 0, run.err
    with h5py.File(tmp_path / "c.h5") as file:
        starts: Any = file["soft_contacts/cell_start"]
        assert np.diff(starts[()]).tolist() == [329, 329]
    run = collide("run", str(CLOTH), "-t", str(tmp_path / "m.h5"), "-o", str(tmp_path / "d.h5"), "--ignore-particles")
    assert run.code == 0
    assert "/particle_q is ignored" in run.err
    with h5py.File(tmp_path / "d.h5") as file:
        assert "soft_contacts" not in file
        assert "particle_object" not in file["model"]  # pyright: ignore[reportOperatorIssue]
        assert json.loads(str(file.attrs["config"]))["ignore_particles"] is True
    with h5py.File(tmp_path / "c.h5") as file:
        assert "ignore_particles" not in json.loads(str(file.attrs["config"]))


GRIPPER = Path(__file__).parents[2] / "samples" / "05_hydroelastic" / "gripper.usda"


def test_the_forces_of_pads_ball_and_block(tmp_path):
    output = tmp_path / "gripper.h5"
    assert main(["run", str(GRIPPER), "--hydro-surface", "-o", str(output), "--device", "cpu", "-q"]) == 0
    assert main(["check", str(output), "-q"]) == 0
    with h5py.File(output) as found:
        names = [name.decode() for name in found["model/shape/path"][:]]
        start, patches = found["hydro_patches/cell_start"][:], found["hydro_patches"]
        assert start[1] == 0
        assert len(found["rigid_contacts/distance"]) == 0
        rows = range(start[-2], start[-1])
        last = {frozenset((names[patches["shape0"][k]], names[patches["shape1"][k]])): k for k in rows}
        table = last[frozenset(("/World/table", "/World/block"))]
        # The rigid table's plane in a block of 4 cm and 1e8 N/m^3, 2 mm deep.
        side, depth = 0.04, 0.002
        truth = 1e8 * depth * (side**2 - 2 * side * depth + 4 * depth**2 / 3)
        assert np.linalg.norm(patches["force"][table]) == pytest.approx(truth, rel=1e-5)
        # A ball of 3 cm and 2e7 N/m^3 in a pad of 6e7 N/m^3, 4 mm deep.
        radius, k0, k1, x = 0.03, 6e7, 2e7, 0.004
        c, q = radius - x, radius - x * k0 / (k0 + k1)
        truth = np.pi / 3 * (k1 * (radius**3 - q**3) - k0 * (q**3 - c**3))
        for pad in ("left", "right"):
            row = last[frozenset((f"/World/{pad}_pad", "/World/ball"))]
            assert np.linalg.norm(patches["force"][row]) == pytest.approx(truth, rel=5e-3)
            assert np.abs(patches["force"][row][1:]).max() < 1e-2 * truth
        force = np.linalg.norm(patches["force"][:], axis=1)
        block = (patches["shape1"][:] == names.index("/World/block")) | (
            patches["shape0"][:] == names.index("/World/block")
        )
        assert (np.diff(force[block]) > 0).all()


MESHES = Path(__file__).parents[2] / "samples" / "04_meshes" / "meshes.usda"
SUNK = 0.002
"""How far the ring's lowest point is below the waves' height under its centre [m]."""


def test_a_ring_rolls_over_waves(tmp_path):
    output = tmp_path / "ring.h5"
    assert main(["run", str(MESHES), "--gap", "0.005", "-o", str(output), "--device", "cpu", "-q"]) == 0
    assert main(["check", str(output), "-q"]) == 0
    with open_contacts(output) as contacts:
        row = {path: k for k, path in enumerate(contacts.shapes.path)}
        frames, depths = [], []
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


SAMPLES = Path(__file__).parents[2] / "samples"
PILE = SAMPLES / "01_usd_pile" / "pile.usda"
HUMANOID = [str(SAMPLES / "02_humanoid" / name) for name in ("humanoid.xml", "motion.h5")]


def run(output: Path, *words: str) -> None:
    assert main(["run", *words, "-o", str(output), "--device", "cpu", "-q"]) == 0


@pytest.fixture(scope="module")
def humanoid(tmp_path_factory) -> Path:
    """whole.h5 of 60 frames, and a.h5 and b.h5 of its halves."""
    folder = tmp_path_factory.mktemp("humanoid")
    for name, frames in (("whole", ":60"), ("a", ":31"), ("b", "31:60")):
        run(folder / f"{name}.h5", HUMANOID[0], "-t", HUMANOID[1], "--frames", frames)
    return folder


def test_a_layer_over_the_pile(tmp_path):
    """Composed, it has the scene's moving shapes and, at their time codes, every contact near the two that it names."""
    run(tmp_path / "pile.h5", str(PILE), "--frames", "20:100:39")
    words = ["--to", "usd", "-o", str(tmp_path / "over.usdc"), "--scene", str(PILE), "-q"]
    assert main(["export", str(tmp_path / "pile.h5"), *words]) == 0
    stage = Usd.Stage.Open(str(tmp_path / "over.usdc"))
    assert not stage.GetCompositionErrors()
    points = UsdGeom.Points(stage.GetPrimAtPath("/collide_contacts/world_0/points"))
    paths = stage.GetPrimAtPath("/collide_contacts").GetAttribute("collide:shapes").Get()
    with ContactSet.open(tmp_path / "pile.h5") as contacts:
        counts = np.diff(contacts.cell_start()).tolist()
        codes = contacts.step.tolist()
    assert points.GetPointsAttr().GetTimeSamples() == codes == [20, 59, 98]
    made = UsdGeom.PrimvarsAPI(points)
    purposes = [UsdGeom.Tokens.default_]
    for code, count in zip(codes, counts, strict=True):
        places = np.array(points.GetPointsAttr().Get(code))
        assert len(places) == count > 20
        boxes = UsdGeom.BBoxCache(code, purposes)
        for k in (0, 1):
            shapes = made.GetPrimvar(f"shape{k}").Get(code)
            for row, place in zip(shapes, places, strict=True):
                prim = stage.GetPrimAtPath(paths[row])
                assert prim
                if prim.IsA(UsdGeom.Plane):
                    continue  # infinite to physics, drawn finite
                box = boxes.ComputeWorldBound(prim).ComputeAlignedRange()
                # Half of the gap, or of the depth, keeps the middle from the surface itself.
                low, high = np.array(box.GetMin()) - 0.06, np.array(box.GetMax()) + 0.06
                assert np.all((low <= place) & (place <= high)), (paths[row], code)


def test_halves_of_the_humanoid_are_the_whole(humanoid):
    parts = [str(humanoid / f"{name}.h5") for name in "ba"]
    assert main(["merge", *parts, "-o", str(humanoid / "merged.h5"), "-q"]) == 0
    assert main(["check", str(humanoid / "merged.h5"), "-q"]) == 0
    with ContactSet.open(humanoid / "whole.h5") as one, ContactSet.open(humanoid / "merged.h5") as other:
        assert one.content_sha256 == other.content_sha256
        assert other.contact_count > 100


@pytest.mark.parametrize("name", ["csv", "parquet", "npz", "newton", "genesis", "dart", "raisim", "mujoco"])
def test_the_humanoid_in_every_format(humanoid, name):
    ending = name if name in ("csv", "parquet") else "npz"
    output = humanoid / f"{name}.{ending}"
    scene = ["--scene", HUMANOID[0]] if name == "mujoco" else []
    assert main(["export", str(humanoid / "whole.h5"), "--to", name, "-o", str(output), "-q", *scene]) == 0
    assert output.stat().st_size > 10_000
