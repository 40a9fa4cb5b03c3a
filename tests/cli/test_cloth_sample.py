"""The sample of a cloth: its command, its contacts by formula; and what is refused of particles on the command line."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from collidecli.cli.main import main

SAMPLE = Path(__file__).parents[2] / "samples" / "06_cloth"
SCENE = SAMPLE / "cloth.usda"


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
    words = ["run", str(SCENE), "--self-contacts", "0.02", "-o", str(output), "--device", "cpu", "-q"]
    assert main(words) == 0
    assert main(["check", str(output), "-q"]) == 0
    with h5py.File(output) as file:
        held: Any = file
        yield {name: {key: data[()] for key, data in held[name].items()} for name in ("soft_contacts", "self_contacts")}


def test_the_sample_has_no_warning(capsys):
    assert main(["inspect", str(SCENE)]) == 0
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
        run = collide("run", str(SCENE), "--self-contacts", "0.02", "-o", str(tmp_path / f"{k}.h5"), "--json", *words)
        assert run.code == 0, run.err
        result = json.loads(run.out)
        assert result["groups"]["soft_contacts"]["rows"] > 1000
        hashes.add(result["content_sha256"])
    assert len(hashes) == 1


def test_parts_of_the_motion_are_merged_into_the_whole(tmp_path, collide, contacts):
    parts = [str(tmp_path / "a.h5"), str(tmp_path / "b.h5")]
    for part, frames in zip(parts, ("0:12", "12:"), strict=True):
        run = collide("run", str(SCENE), "--self-contacts", "0.02", "--frames", frames, "-o", part, "-q")
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
    refused = collide("run", str(SCENE), "-t", str(tmp_path / "m.h5"), "-o", str(tmp_path / "c.h5"), *words)
    assert refused.code == 2
    assert said in refused.err
    assert "Traceback" not in refused.err
    assert not (tmp_path / "c.h5").exists()


def test_inspect_lists_the_objects_of_particles(collide):
    shown = collide("inspect", str(SCENE))
    assert "289: cloth /World/cloth, 512 triangles" in shown.out
    why = collide("inspect", str(SCENE), "--why", "/World/cloth", "/World/ball")
    assert why.code == 2
    assert "'/World/cloth' is no shape: it consists of particles (cloth)" in why.err
    objects = json.loads(collide("inspect", str(SCENE), "--json").out)["deformables"]
    assert [(each["path"], each["particles"]) for each in objects] == [("/World/cloth", 289), ("/World/drops", 40)]


def test_a_converted_recording_keeps_the_positions_of_particles(tmp_path, collide):
    source = tmp_path / "m.h5"
    write_recording(source, 329)
    run = collide("traj", "convert", str(source), "-o", str(tmp_path / "n.h5"), "--scene", str(SCENE))
    assert run.code == 0, run.err
    with h5py.File(tmp_path / "n.h5") as file:
        positions: Any = file["particle_q"]
        assert positions.shape == (2, 1, 329, 3)
    assert collide("check", str(tmp_path / "n.h5")).code == 0


def test_recorded_particles_move_those_of_the_scene_and_can_be_ignored(tmp_path, collide):
    write_recording(tmp_path / "m.h5", 329)
    run = collide("run", str(SCENE), "-t", str(tmp_path / "m.h5"), "-o", str(tmp_path / "c.h5"))
    assert run.code == 0, run.err
    with h5py.File(tmp_path / "c.h5") as file:
        starts: Any = file["soft_contacts/cell_start"]
        assert np.diff(starts[()]).tolist() == [329, 329]
    run = collide("run", str(SCENE), "-t", str(tmp_path / "m.h5"), "-o", str(tmp_path / "d.h5"), "--ignore-particles")
    assert run.code == 0
    assert "/particle_q is ignored" in run.err
    with h5py.File(tmp_path / "d.h5") as file:
        assert "soft_contacts" not in file
        assert "particle_object" not in file["model"]  # pyright: ignore[reportOperatorIssue]
        assert json.loads(str(file.attrs["config"]))["ignore_particles"] is True
    with h5py.File(tmp_path / "c.h5") as file:
        assert "ignore_particles" not in json.loads(str(file.attrs["config"]))
