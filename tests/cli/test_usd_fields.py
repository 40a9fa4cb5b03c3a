"""A USD scene with a signed distance field: built in the first run, found in the cache by the second."""

from __future__ import annotations

import json

import numpy as np
import pytest

from collidecli.cli import main as cli
from collidecli.engine.geometry import signed_distance
from tests.support.field_scenes import RING
from tests.support.usd_meshes import BODY_APIS, mesh
from tests.support.usd_scenes import sphere, write_usda


def test_the_second_run_finds_the_field(tmp_path, capsys, monkeypatch):
    ring = mesh("ring", *RING, "sdf", "uniform int physxSDFMeshCollision:sdfResolution = 40", BODY_APIS)
    place = 'double3 xformOp:translate = (1, 0, 0)\nuniform token[] xformOpOrder = ["xformOp:translate"]'
    scene = str(write_usda(tmp_path, ring + sphere("ball", f"double radius = 0.1\n{place}")))
    cache = ["--cache-dir", str(tmp_path / "cache")]
    built = []
    build = signed_distance.build_sdf
    monkeypatch.setattr(signed_distance, "build_sdf", lambda *words: built.append(words) or build(*words))
    hashes, load, result = [], [], {}
    for name in ("a.h5", "b.h5"):
        words = ["run", scene, "-o", str(tmp_path / name), "--device", "cpu", "--json", *cache]
        assert cli.main(words) == 0
        result = json.loads(capsys.readouterr().out)
        hashes.append(result["content_sha256"])
        load += [stage["calls"] for stage in result["stages"] if stage["stage"] == "load"]
    assert len(built) == 1
    assert hashes[0] == hashes[1]
    assert load == [2, 2]  # the scene, and its fields
    assert cli.main(["cache", "--json", *cache]) == 0
    assert len(json.loads(capsys.readouterr().out)["entries"]) == 1
    deepest = result["deepest"]["distance"]
    # The ball is on the middle line of the tube, 0.35 thick: a polygon of ten sides, so cos(18 deg) of it at least.
    voxel = 2.7 / 40
    assert -0.45 - voxel <= deepest <= -0.35 * np.cos(np.pi / 10.0) - 0.1 + voxel


@pytest.mark.parametrize("verb", [["run", "-o", "o.h5"], ["profile"]])
def test_too_many_voxels_name_the_file_and_the_prim(tmp_path, capsys, monkeypatch, verb):
    monkeypatch.chdir(tmp_path)
    ring = mesh("ring", *RING, "sdf", "uniform int physxSDFMeshCollision:sdfResolution = 8192", BODY_APIS)
    scene = write_usda(tmp_path, ring + sphere("ball", "double radius = 0.1"))
    assert cli.main([*verb, scene.name, "--device", "cpu", "--cache-limit", "0"]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"error: {scene.name}: shape '/ring': the signed distance field would have ")
    assert "larger than" in message
