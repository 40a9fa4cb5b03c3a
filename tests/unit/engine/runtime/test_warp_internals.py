"""Contacts without Warp's private names, and the module that alone uses them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from warp._src import codegen, context

import collidecli
from collidecli.engine.pipeline import find_device
from collidecli.engine.runtime import warp_internals
from collidecli.engine.runtime.launch_queue import LaunchQueue
from collidecli.engine.runtime.warp_internals import RecordedLaunches
from collidecli.engine.runtime.workspace import Workspace

PRIVATE = re.compile(r"warp\._src|__ctype__|_pch_dirs|\.hooks\b|\.adj\b|\.params\b\[|\.bounds\.(shape|size)")


def test_only_two_modules_use_private_names_of_warp():
    package = Path(collidecli.__file__).parent
    users = {path.name for path in package.rglob("*.py") if PRIVATE.search(path.read_text())}
    assert users == {"deferred_builtins.py", "warp_internals.py"}


def test_an_unknown_warp_disables_every_use(monkeypatch):
    assert isinstance(Workspace(find_device("cpu"), 1 << 20)._launches, LaunchQueue)
    monkeypatch.setattr(warp_internals, "KNOWN_WARP", ())
    workspace = Workspace(find_device("cpu"), 1 << 20)
    assert isinstance(workspace._launches, RecordedLaunches)
    assert workspace._set_field is setattr
    assert not workspace._rebinds_host_arrays
    before = dict(context.runtime._pch_dirs)
    warp_internals.share_header_folder("folder")
    assert context.runtime._pch_dirs == before


def contacts_of_pile() -> dict[str, np.ndarray]:
    """Contacts of spheres and boxes above a plane, in chunks of one frame: structs and arrays are reused."""
    rng = np.random.default_rng(3)
    builder = collidecli.ModelBuilder()
    builder.add_shape_plane(-1)
    for _ in range(12):
        builder.add_shape_sphere(builder.add_body(), radius=0.3)
        builder.add_shape_box(builder.add_body(), hx=0.3, hy=0.2, hz=0.1)
    poses = rng.normal(size=(6, 1, 24, 7))
    poses[..., :3] *= 0.7
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    contacts = collidecli.collide(builder.finalize(), poses, gap=0.05, chunk_cells=1)
    names = ("shape0", "shape1", "distance", "normal", "point0", "point1", "feature0", "feature1")
    return {name: getattr(contacts, name) for name in names}


@pytest.mark.parametrize("known", [("0.",), ()])
def test_contacts_without_private_names_are_equal_to_the_bit(monkeypatch, known):
    expected = contacts_of_pile()
    assert len(expected["distance"]) > 50
    monkeypatch.setattr(warp_internals, "KNOWN_WARP", known)
    found = contacts_of_pile()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, name)


def test_the_numpy_type_of_a_struct_is_built_once_under_the_lock_of_warp(monkeypatch):
    built: list[str] = []

    def build(struct: str) -> dict:
        assert warp_internals.hashing_lock()._is_owned()
        built.append(struct)
        return {"names": ["a"], "formats": ["3f8"], "offsets": [8], "itemsize": 32}

    monkeypatch.setattr(codegen.Struct, "numpy_dtype", build)
    warp_internals.keep_struct_dtypes()
    first = codegen.Struct.numpy_dtype("one")
    assert first is codegen.Struct.numpy_dtype("one")
    assert first == np.dtype({"names": ["a"], "formats": [(np.float64, 3)], "offsets": [8], "itemsize": 32})
    assert built == ["one"]


def test_an_unknown_warp_builds_the_numpy_type_of_a_struct_itself(monkeypatch):
    monkeypatch.setattr(warp_internals, "KNOWN_WARP", ())
    before = codegen.Struct.numpy_dtype
    warp_internals.keep_struct_dtypes()
    assert codegen.Struct.numpy_dtype is before
