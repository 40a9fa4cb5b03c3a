"""Meshes that are repaired: what run and inspect tell of them, and that --strict-meshes refuses each by name."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.support.solids import Mesh, box, joined, turned

BOX = box(1.0, 1.0, 1.0)
NOISE = np.random.default_rng(0).uniform(-1e-6, 1e-6, (36, 3))
"""USD has points in float32, for which 1e-9 m is nothing here."""
DIRTY = {
    "duplicate": ((BOX[0], np.concatenate([BOX[1], BOX[1][:1]])), "1 duplicate triangle is left out", "1 duplicates"),
    "opposite": (
        (BOX[0], np.concatenate([BOX[1], BOX[1][:1, ::-1]])),
        "1 triangle that faces away from an equal one is left out",
        "1 opposite",
    ),
    "fin": (
        (np.concatenate([BOX[0], [[1.5, 1.5, 0.0]]]), np.concatenate([BOX[1], [[6, 7, 8]]])),
        "1 triangle of a fin is left out",
        "1 fins",
    ),
    "soup": (
        (BOX[0][BOX[1]].reshape(-1, 3) + NOISE, np.arange(36).reshape(12, 3)),
        "border vertices are welded to others",
        "welded",
    ),
    "over": (
        (BOX[0], np.concatenate([BOX[1][1:], BOX[1][:1, ::-1]])),
        "1 triangle is turned over to face as those beside",
        "1 turned",
    ),
    "inside_out": (turned(BOX), "1 inside-out body is turned over", "1 inside out"),
    "overlapping": (
        joined(BOX, box(0.5, 0.35, 0.35, (1.0, 0.85, 0.85))),
        "2 overlapping bodies are united",
        "2 united",
    ),
    "flat": ((BOX[0], np.concatenate([BOX[1], [[0, 0, 1]]])), "1 triangle without area is left out", "1 degenerate"),
}


def scene(name: str, mesh: Mesh, approximation: str = "none") -> str:
    points = ", ".join(f"({x!r}, {y!r}, {z!r})" for x, y, z in mesh[0].tolist())
    indices = ", ".join(str(k) for k in np.asarray(mesh[1]).reshape(-1).tolist())
    return f"""#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)

def Mesh "{name}" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"])
{{
    uniform token physics:approximation = "{approximation}"
    point3f[] points = [{points}]
    int[] faceVertexCounts = [{", ".join("3" for _ in mesh[1])}]
    int[] faceVertexIndices = [{indices}]
}}

def Sphere "ball" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"])
{{
    double radius = 0.02
    double3 xformOp:translate = (0.05, 0, 0)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}}
"""


@pytest.mark.parametrize("name", DIRTY)
def test_what_is_repaired_is_told_and_strict_meshes_refuse_it(here, collide, name):
    mesh, told, counted = DIRTY[name]
    (here / "dirty.usda").write_text(scene(name, mesh))
    table = collide("inspect", "dirty.usda")
    assert table.code == 0
    assert f"</{name}>" in table.err
    assert told in table.err
    assert counted in table.out
    assert "closed" in table.out
    result = json.loads(collide("inspect", "dirty.usda", "--json", "-q").out)
    assert result["shapes"][0]["closed"]
    assert sum(result["shapes"][0]["repairs"].values()) > 0
    assert any(told in warning for warning in result["warnings"])
    refused = collide("inspect", "dirty.usda", "--strict-meshes")
    assert refused.code == 2
    assert f"</{name}>" in refused.err
    assert f"the mesh needs repairs: {told}" in refused.err or (name == "soup" and told in refused.err)
    assert refused.err.strip().count("\n") <= 1


def test_run_warns_or_refuses_and_keeps_no_trace_of_the_option(here, collide):
    mesh, told, _ = DIRTY["overlapping"]
    (here / "dirty.usda").write_text(scene("part", mesh))
    run = ("run", "dirty.usda", "--device", "cpu", "-o", "out.h5")
    refused = collide(*run, "--strict-meshes")
    assert refused.code == 2
    assert "</part>" in refused.err
    assert not (here / "out.h5").exists()
    done = collide(*run)
    assert done.code == 0
    assert told in done.err
    result = json.loads(collide("inspect", "out.h5", "--json").out)
    assert result["deepest"]["distance"] == pytest.approx(-0.97, abs=1e-6)
    (here / "clean.usda").write_text(scene("part", BOX))
    run = ("run", "clean.usda", "--device", "cpu", "-o")
    clean = [collide(*run, "0.h5"), collide(*run, "1.h5", "--strict-meshes")]
    assert [each.code for each in clean] == [0, 0]
    hashes = [json.loads(collide("inspect", f"{k}.h5", "--json").out) for k in range(2)]
    assert hashes[0]["content_sha256"] == hashes[1]["content_sha256"]
    assert "strict_meshes" not in hashes[1]["config"]


def test_convex_parts_and_hulls(here, collide):
    """Parts are made of the triangles, and are refused too; a hull is of points alone."""
    mesh, told, _ = DIRTY["duplicate"]
    for approximation, code in (("convexDecomposition", 2), ("convexHull", 0)):
        (here / "dirty.usda").write_text(scene("part", mesh, approximation))
        answer = collide("inspect", "dirty.usda", "--strict-meshes")
        assert answer.code == code
        assert (told in answer.err) == (code == 2)


@pytest.mark.parametrize("verb", ["profile", "traj convert"])
def test_other_verbs_refuse_too(here, collide, verb):
    (here / "dirty.usda").write_text(scene("part", DIRTY["duplicate"][0]))
    words = {
        "profile": ["profile", "dirty.usda", "--device", "cpu"],
        "traj convert": ["traj", "convert", "motion.h5", "--scene", "dirty.usda"],
    }
    answer = collide(*words[verb], "--strict-meshes")
    assert answer.code == 2
    assert "the mesh needs repairs" in answer.err
