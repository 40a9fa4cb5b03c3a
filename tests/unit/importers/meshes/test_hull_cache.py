"""Hulls from the cache: equal to computed ones in every bit, and computed where an entry is missing
or invalid."""

import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.importers import hull_cache
from collidecli.importers.convex_parts_cache import RawParts, parts_kept_in, parts_of
from collidecli.importers.hull_cache import HULL_PREFIX, LEAST_POINTS, cached_hull
from collidecli.scene.convex_hull import ConvexHull, convex_hull
from collidecli.storage.field_cache import FieldCache

CYLINDER = np.array(
    [[np.cos(a), np.sin(a), z] for a in np.linspace(0.0, 6.2, 128) for z in (-1.0, 0.7)]
)
LIMIT = 1 << 20


def same(one: ConvexHull, other: ConvexHull) -> bool:
    arrays = [each.name for each in fields(ConvexHull) if each.name != "face"]
    bits = all(
        getattr(one, name).tobytes() == getattr(other, name).tobytes()
        and getattr(one, name).dtype == getattr(other, name).dtype
        for name in arrays
    )
    climbing = zip(one.climbing, other.climbing, strict=True)
    bits &= all(a.tobytes() == b.tobytes() and a.dtype == b.dtype for a, b in climbing)
    return bits and one.face == other.face


def no_computation(*_):
    raise AssertionError("computed")


@pytest.fixture
def folder(tmp_path):
    with parts_kept_in(str(tmp_path), LIMIT):
        yield str(tmp_path)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_kept_hull_has_the_bits_of_a_computed_one(folder, monkeypatch, dtype):
    points = CYLINDER.astype(dtype)
    assert same(cached_hull(points, "a"), convex_hull(points, "a"))
    monkeypatch.setattr(hull_cache, "convex_hull", no_computation)
    kept = cached_hull(points, "a")
    monkeypatch.undo()
    assert same(kept, convex_hull(points, "a"))
    assert [entry.key.startswith(HULL_PREFIX) for entry in FieldCache(folder, LIMIT).entries()] == [
        True
    ]


def test_other_points_have_another_entry(folder):
    cached_hull(CYLINDER, "a")
    moved = CYLINDER + np.array([0.0, 0.0, 1e-12])
    assert same(cached_hull(moved, "a"), convex_hull(moved, "a"))
    assert len(FieldCache(folder, LIMIT).entries()) == 2


def test_an_invalid_entry_is_computed_again(folder):
    right = cached_hull(CYLINDER, "a")
    cache = FieldCache(folder, LIMIT)
    key = cache.entries()[0].key
    arrays = cache.load(key)
    none = {"corner": arrays["corner"][:0], "face_normal": arrays["face_normal"][:0]}
    for changed in (
        {"corner": arrays["corner"] + 1000},
        {"edge": arrays["edge"] - 1},
        {"edge": arrays["edge"][:0]},
        {"first": arrays["first"][1:]},
        {**none, "first": arrays["first"][:1]},
        {"vertex": np.where(np.arange(3) == 1, np.nan, arrays["vertex"])},
        {"center": arrays["center"].astype(np.float32)},
        {"climb_offset": arrays["climb_offset"][1:]},
        {"climb_offset": arrays["climb_offset"] + 1},
        {"climb_neighbor": arrays["climb_neighbor"] + 1000},
        {"climb_neighbor": arrays["climb_neighbor"].astype(np.int32)},
    ):
        cache.save(key, {**arrays, **changed})
        assert same(cached_hull(CYLINDER, "a"), right)


def test_convex_parts_that_are_not_finite_are_computed_again(folder):
    vertex = CYLINDER.copy()
    made = RawParts((vertex,), np.zeros(2))
    settings = (CYLINDER, np.zeros((1, 3), np.int64), "settings")
    parts_of(*settings, lambda: made)
    cache = FieldCache(folder, LIMIT)
    key = cache.entries()[0].key
    arrays = cache.load(key)
    cache.save(key, {**arrays, "vertex": np.full_like(arrays["vertex"], np.nan)})
    found, _ = parts_of(*settings, lambda: made)
    np.testing.assert_array_equal(found.vertices[0], vertex)


def test_small_point_sets_are_not_kept(folder):
    cached_hull(CYLINDER[: LEAST_POINTS - 2], "a")
    assert FieldCache(folder, LIMIT).entries() == []


def test_flat_point_sets_are_not_kept(folder):
    with pytest.raises(InputError, match="flat"):
        cached_hull(CYLINDER * [1.0, 1.0, 0.0], "a")
    assert FieldCache(folder, LIMIT).entries() == []


def test_a_kept_hull_needs_no_qhull(folder):
    """Its import takes a third of a short run."""
    cached_hull(CYLINDER, "a")
    script = (
        "import sys, numpy as np\n"
        "from collidecli.engine.geometry.hulls import upload_hulls\n"
        "from collidecli.importers.convex_parts_cache import parts_kept_in\n"
        "from collidecli.importers.hull_cache import cached_hull\n"
        "import warp\n"
        f"with parts_kept_in({folder!r}, {LIMIT}):\n"
        f"    hull = cached_hull(np.array({CYLINDER.tolist()}), 'a')\n"
        "upload_hulls([hull], warp.get_device('cpu'))\n"
        "sys.exit('scipy' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
