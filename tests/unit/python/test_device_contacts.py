"""Contacts that stay on the device: bits, order, arrays without a copy, and what is refused."""

import copy
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

import collidecli
from collidecli import InputError, ModelBuilder
from collidecli.engine.pipeline_build import find_device
from collidecli.motions.pose_arrays import PoseArray
from collidecli.scene.contact_columns import PAIR_TABLES, RIGID_COLUMNS
from collidecli.scene.episodes import Episodes
from collidecli.scene.options import ContactOptions
from tests.support.device_scenes import SCENES, Scene
from tests.support.device_traffic import counted_traffic
from tests.support.engine_runs import assert_identical

NAMES = [column.name for column in RIGID_COLUMNS]
MOMENTS = {
    "reduce_contacts": True,
    "reduce_pairs": "all",
    "normal_matching": True,
    "moment_matching": True,
}


@pytest.fixture(scope="module")
def scene() -> Scene:
    return SCENES["primitives"](ContactOptions())


def kept_of(scene: Scene, **options):
    poses = options.pop("poses", scene.poses)
    return collidecli.collide(scene.model, poses, keep_on_device=True, **options)


@pytest.mark.parametrize(
    "options", [{}, {"chunk_cells": 1, "threads": 3}, {"chunk_cells": 4}, MOMENTS], ids=str
)
@pytest.mark.parametrize("float_type", [np.float64, np.float32])
def test_bits_of_the_host_in_its_order(scene, options, float_type):
    poses = scene.poses.astype(float_type)
    here = collidecli.collide(scene.model, poses, **options)
    there = kept_of(scene, poses=poses, **options)
    assert len(there) == len(here) > 100
    assert list(there.columns) == list(here.columns)
    assert there.cell_start.numpy().dtype == np.int64
    np.testing.assert_array_equal(there.cell_start.numpy(), here.cell_start)
    for name, values in there.numpy().items():
        ours = here.columns[name]
        assert values.dtype == ours.dtype
        assert values.shape == ours.shape
        assert values.tobytes() == ours.tobytes(), name
    assert there.shape_path == here.shape_path
    assert there.time.tolist() == here.time.tolist()
    host = there.to_host()
    assert_identical(host, here)
    assert host.contact_set.content_sha256 == here.contact_set.content_sha256


def test_libraries_take_arrays_without_a_copy(scene):
    kept = kept_of(scene)
    for name, array in kept.columns.items():
        assert getattr(kept, name) is array
        for taken in (np.asarray(array), np.from_dlpack(array)):
            assert taken.__array_interface__["data"][0] == array.ptr
            assert taken.shape == (len(kept), *([3] if taken.ndim > 1 else []))
        assert kept.numpy(name)[name].__array_interface__["data"][0] != array.ptr


def test_a_motion_without_contacts_has_columns_without_rows(scene):
    poses = scene.poses.copy()
    poses[..., 2] += 100.0 * np.arange(1, poses.shape[2] + 1)
    kept = kept_of(scene, poses=poses)
    assert len(kept) == 0
    assert kept.normal.numpy().shape == (0, 3)
    assert len(kept.to_host()) == 0


def test_rows_of_a_cell_are_views(scene):
    kept = kept_of(scene)
    here = collidecli.collide(scene.model, scene.poses)
    for frame, world in ((0, 0), (1, 1), (2, 0)):
        cell = kept.cell(frame, world)
        expected = here.cell(frame, world)
        first = here.cell_start[2 * frame + world]
        for name, array in cell.items():
            np.testing.assert_array_equal(array.numpy(), getattr(expected, name))
            assert array.ptr == kept.columns[name].ptr + first * array.strides[0]
    with pytest.raises(InputError, match="frame 3, world 0 does not exist"):
        kept.cell(3)


def test_named_columns_are_kept_alone(scene):
    names = ["distance", "normal", "shape1"]
    kept = collidecli.collide(scene.model, scene.poses, keep_on_device=names)
    here = collidecli.collide(scene.model, scene.poses)
    assert set(kept.columns) == set(names)
    for name, array in kept.columns.items():
        np.testing.assert_array_equal(array.numpy(), getattr(here, name))
    with pytest.raises(AttributeError, match="'point0': keep_on_device named"):
        _ = kept.point0
    with pytest.raises(AttributeError, match=r"no attribute 'points'$"):
        _ = kept.points
    with pytest.raises(InputError, match="there are no columns shape0, point0"):
        kept.to_host()
    with pytest.raises(InputError, match="there is no column 'norm'"):
        kept.numpy("norm")
    assert "columns=shape1,distance,normal" in repr(copy.copy(kept))


@pytest.mark.parametrize("option", PAIR_TABLES)
def test_pairs_alone_stay(scene, option):
    here = collidecli.collide(scene.model, scene.poses, **{option: True})
    kept = kept_of(scene, chunk_cells=2, **{option: True})
    pairs = here.groups[PAIR_TABLES[option].name]
    assert list(kept.columns) == ["shape0", "shape1"]
    assert len(kept) > 50
    np.testing.assert_array_equal(np.diff(kept.cell_start.numpy()), pairs.cell_counts)
    for name, array in kept.columns.items():
        np.testing.assert_array_equal(array.numpy(), pairs.columns[name])
    host = kept.to_host()
    assert host.contact_set.content_sha256 == here.contact_set.content_sha256


def test_contacts_of_a_device_are_not_copied(scene):
    """Besides 4 bytes a cell the host reads the sizes of each chunk."""
    find_device("cpu")
    with counted_traffic() as counted:
        kept = kept_of(scene)
    cells = len(kept.cell_start) - 1
    assert len(kept) > 100
    assert 4 * cells <= counted.total.downloaded_bytes < 4 * cells + 400
    with counted_traffic() as counted:
        collidecli.collide(scene.model, scene.poses)
    assert counted.total.downloaded_bytes > 105 * len(kept)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"columns": "friction"}, "the columns friction need the contacts in the host's memory"),
        ({"contact_ids": True}, "contact_ids and sticky_contacts need"),
        ({"sticky_contacts": 0.01}, "contact_ids and sticky_contacts need"),
        ({"reduce_contacts": True, "reduce_by": "bodies"}, 'reduce_by="bodies" need'),
        ({"keep_on_device": "distances"}, "there is no column 'distances'"),
        ({"keep_on_device": [1]}, r"(?s)keep_on_device is \[1\].*give True, or names"),
        ({"keep_on_device": []}, "it names no column"),
        ({"keep_on_device": "shape0", "touch_only": True}, "has the columns shape0 and shape1"),
        ({"keep_on_device": "shape0", "candidates_only": True}, "candidates_only has the columns"),
        ({"keep_on_device": 1}, "keep_on_device is 1"),
        ({"keep_on_device": None}, "keep_on_device is None"),
        ({"sweep": True}, "the host completes the rows of sweep"),
    ],
)
def test_what_the_host_does_is_refused(scene, options, told):
    with pytest.raises(InputError, match=told):
        collidecli.collide(scene.model, scene.poses, **{"keep_on_device": True, **options})


@pytest.mark.parametrize(
    ("name", "told"), [("particles", "soft contacts and self contacts"), ("hydroelastic", "hydro")]
)
def test_rows_that_the_host_completes_are_refused(name, told):
    scene = SCENES[name](ContactOptions())
    options = {"self_contacts": 0.08} if name == "particles" else {}
    with pytest.raises(InputError, match=f"the host completes the rows of .*{told}"):
        kept_of(scene, **options)


def test_demonstrations_are_refused(scene):
    episodes = Episodes(("a",), *np.array([[0], [0], [2]]))
    with demonstrations_of(scene, episodes) as motion, pytest.raises(InputError, match="episodes"):
        collidecli.collide(scene.model, motion, keep_on_device=True)


def demonstrations_of(scene: Scene, episodes: Episodes):
    """A motion of demonstrations, to be closed."""
    motion = PoseArray(scene.poses, scene.model)
    motion.episodes = episodes
    return closing(motion)


@pytest.mark.parametrize("argument", ["body_q", "particle_q"])
def test_poses_on_a_device_are_refused(scene, argument):
    array = SimpleNamespace(__cuda_array_interface__={}, shape=scene.poses.shape)
    with pytest.raises(InputError, match=f"{argument}: is an array on a device"):
        collidecli.collide(scene.model, **{argument: array})


def test_verbs_name_what_they_cannot_read(scene):
    kept = kept_of(scene)
    for verb in (collidecli.label, collidecli.audit):
        with pytest.raises(InputError, match="on a device"):
            verb(kept)


def test_the_device_is_named():
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_sphere(builder.add_body(xform=(0, 0, 0.4, 0, 0, 0, 1)), radius=0.5)
    kept = collidecli.collide(builder.finalize(), keep_on_device=True)
    assert kept.device == wp.get_device("cpu").alias
    assert repr(kept).startswith("<DeviceContacts rows=1 frames=1 worlds=1 device=cpu columns=")
