"""Groups beside /rigid_contacts are read by cells, and every broken rule is found and named."""

from __future__ import annotations

import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.scene.particles import ParticleObjects, Particles
from collidecli.scene.tables import GROUPS, shapes_of
from collidecli.storage.contact_sets.check import _digest, _hashed_datasets, check_file
from collidecli.storage.contact_sets.content_hash import StreamDigest, content_hash
from collidecli.storage.contact_sets.reader import ContactSet
from tests.support.contact_groups import block_with_groups
from tests.support.contact_sets import made_up_block, small_model, split, write_contact_set

FRAMES = 20
MODEL = small_model()


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("groups") / "a.h5"
    write_contact_set(made, MODEL, block_with_groups(MODEL, FRAMES, groups=GROUPS), cells_per_block=7, chunk_rows=16)
    return made


def edit(path, made, change) -> Path:
    """A changed copy with the content hash of its data."""
    shutil.copyfile(path, made)
    with h5py.File(made, "r+") as file:
        change(file)
        file.attrs["content_sha256"] = content_hash(
            _digest(item, "", StreamDigest) for item in _hashed_datasets(file, ("timing",))
        )
    return made


def test_blocks_are_the_written_cells(path):
    wanted = split(block_with_groups(MODEL, FRAMES, groups=GROUPS), 1)
    with ContactSet.open(path) as contacts:
        assert list(contacts.groups) == [group.name for group in GROUPS]
        blocks = list(contacts.blocks(40, with_groups=True))
        assert len(blocks) > 3
        for block in blocks:
            rows = block.contact_count + sum(held.row_count for held in block.groups.values())
            assert rows <= 40 or len(block.cell_counts) == 1
            for part in split(block, 1):
                for name, held in wanted[part.first_cell].groups.items():
                    found = part.groups[name]
                    for key, values in held.columns.items():
                        assert np.array_equal(found.columns[key], values), (name, key)
                    for key, (lengths, values) in held.lists.items():
                        assert np.array_equal(found.lists[key][0], lengths)
                        assert np.array_equal(found.lists[key][1], values)
    assert check_file(path) == []


def test_shapes_of_faces_are_those_of_their_patches(path):
    with ContactSet.open(path) as contacts:
        groups = contacts.cells(0, contacts.cell_count, (), with_groups=True).groups
        shape0, shape1 = shapes_of(groups, "hydro_faces")
        faces = groups["hydro_faces"]
        assert len(shape0) == faces.row_count > 0
        assert (shape0 < shape1).all()
        assert np.array_equal(shape0, contacts.groups["hydro_patches"].column("shape0")[faces.columns["patch"]])
        assert shapes_of(groups, "self_contacts") == ()


def test_a_file_of_an_older_version_has_no_groups(path, tmp_path):
    def older(file):
        file.attrs["format_version"] = np.array([1, 2], np.int32)

    made = edit(path, tmp_path / "older.h5", older)
    with ContactSet.open(made) as contacts:
        assert contacts.groups == {}


def put(name, row, value):
    def change(file):
        file[name][row] = value

    return change


def drop(name):
    def change(file):
        del file[name]

    return change


def replaced(name, values):
    def change(file):
        unit = file[name].attrs.get("unit")
        del file[name]
        file[name] = values
        if unit is not None:
            file[name].attrs["unit"] = unit

    return change


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("hydro_patches/shape1", 0, 99), "/hydro_patches, .*a shape is no row of /model/shape"),
        (put("hydro_patches/shape0", 3, -1), "a shape is no row of /model/shape"),
        (put("hydro_patches/area", 2, -1.0), "area is less than 0"),
        (put("hydro_patches/force", 2, [math.nan, 0, 0]), "force is not finite"),
        (put("hydro_patches/face_count", 2, 77), "face_count is not the number of faces"),
        (put("hydro_faces/patch", 0, 10**15), "/hydro_faces/patch, cell .*is no row of /hydro_patches of its cell"),
        (put("hydro_faces/patch", 5, -1), "is no row of /hydro_patches of its cell"),
        (put("hydro_faces/vertices", 5, [0, math.inf, 0]), "vertices is not finite"),
        (put("hydro_faces/vertex_start", 0, 1), "vertex_start: begins with 1, not 0"),
        (put("hydro_faces/vertex_start", 4, -(2**62)), "vertex_start, entry 4: is less than"),
        (put("hydro_faces/vertex_start", -1, 2**62), "vertex_start: ends with .* not the number of values"),
        (put("hydro_faces/normal", 5, [0, 0, 2]), "the normal has not unit length"),
        (put("hydro_faces/normal", 5, [3e38, 3e38, 0]), "the normal has not unit length"),
        (put("soft_contacts/kind", 1, 9), "kind is not 0 to 2"),
        (put("soft_contacts/kind", 0, 2), "indices are not as many as the kind has"),
        (put("soft_contacts/barycentric", 0, [0.5, 0.4, 0.0]), "weights are not at least 0 with the sum 1"),
        (put("soft_contacts/barycentric", 0, [1.5, -0.5, 0.0]), "weights are not at least 0 with the sum 1"),
        (put("soft_contacts/indices", 0, [-2, -1, -1]), "indices is less than -1"),
        (put("soft_contacts/shape", 1, 2**31 - 1), "a shape is no row of /model/shape"),
        (put("soft_contacts/cell_start", 5, 2**62), "cell_start, entry 6: is less than"),
        (put("soft_contacts/cell_start", -1, 3), "cell_start.* is less than|ends with"),
        (put("self_contacts/indices", 0, [9, 9, 9, -9]), "indices is less than 0"),
        (put("self_contacts/distance", 0, math.inf), "distance is not finite"),
        (put("soft_contacts/indices", 0, [9, -1, -1]), "a particle is of no object"),
        (put("soft_contacts/indices", 0, [-1, 2, 3]), "a row has no particle"),
        (put("soft_contacts/indices", 0, [5, 6, -1]), "the particles of an element are of several objects"),
        (put("self_contacts/indices", 0, [0, 5, 6, 7]), "the particles of an element are of several objects"),
        (put("model/particle_object/template", 0, 5), "/model/particle_object/template, row 0: is the template of no"),
        (put("model/particle_object/template", 0, -7), "/model/particle_object/template, row 0: is below -1"),
        (put("model/particle_object/kind", 1, "cloths"), "kind, row 1: is not particles, cloth or soft"),
        (put("model/particle_object/first_particle", 1, 4), "first_particle, row 1: is not the end of the object"),
        (put("model/particle_object/first_particle", 0, 1), "first_particle, row 0: is not the end of the object"),
        (put("model/particle_object/particle_count", 1, -2), "particle_count, row 1: is less than 0"),
        (put("model/particle_object/particle_count", 0, 2**62), "first_particle, row 1: is not the end of the object"),
        (drop("model/particle_object/kind"), "/model/particle_object/kind: the dataset is missing"),
        (drop("model/particle_object"), "/model/particle_object/path: the dataset is missing"),
        (
            replaced("model/particle_object/particle_count", np.zeros(3, np.int64)),
            "it has 3 rows for 2 particle objects",
        ),
        (replaced("model/particle_object/path", np.zeros(2)), "particle_object/path: the type is float64, not string"),
        (drop("hydro_faces/vertex_start"), "hydro_faces/vertex_start: the dataset is missing"),
        (drop("soft_contacts/cell_start"), "soft_contacts/cell_start: the dataset is missing"),
        (replaced("soft_contacts/kind", np.zeros(3, np.float32)), "soft_contacts/kind: the type is float32"),
        (replaced("soft_contacts/shape", np.zeros((4, 2), np.int32)), "soft_contacts/shape: the shape is"),
        (replaced("soft_contacts/feature", np.zeros(4, np.int32)), "soft_contacts/feature: it has 4 rows"),
        (replaced("self_contacts/cell_start", np.zeros(4, np.int64)), "cell_start: it has 4 rows"),
        (drop("hydro_patches"), "/hydro_faces: refers to /hydro_patches, which is missing"),
    ],
)
def test_a_broken_rule_is_found(path, tmp_path, change, words):
    made = edit(path, tmp_path / "b.h5", change)
    found = "\n".join(map(str, check_file(made)))
    assert re.search(words, found), found


def test_an_object_of_another_world_is_found(tmp_path):
    """gel is in the worlds of template 0 alone."""
    model = replace(small_model(), world_template=np.array([0, 1, 0], np.int32))
    write_contact_set(tmp_path / "a.h5", model, block_with_groups(model, FRAMES))
    found = "\n".join(map(str, check_file(tmp_path / "a.h5")))
    assert re.search("/self_contacts, frame .*, world 1, .*a particle is not in this world", found), found
    assert not re.search("world [02], .*a particle is not in this world", found)


def test_the_object_of_each_particle(path):
    with ContactSet.open(path) as contacts:
        objects = contacts.particle_objects
        assert (objects.path, objects.kind) == (("/cloth", "gel"), ("cloth", "soft"))
        assert (objects.template.tolist(), len(objects), objects.total) == ([-1, 0], 2, 9)
        assert objects.of(np.arange(9)).tolist() == [0] * 6 + [1] * 3
    assert ParticleObjects(("a", "b", "c"), (), np.zeros(3), np.array([0, 2, 2]), np.array([2, 0, 1])).of(
        np.arange(3)
    ).tolist() == [0, 0, 2]


def test_a_scene_without_particles_has_no_table(tmp_path):
    model = replace(small_model(), particles=Particles())
    write_contact_set(tmp_path / "a.h5", model, made_up_block(model, 4))
    with h5py.File(tmp_path / "a.h5") as file:
        assert "particle_object" not in file["model"]
    with ContactSet.open(tmp_path / "a.h5") as contacts:
        assert len(contacts.particle_objects) == contacts.particle_objects.total == 0


def test_rows_out_of_order_and_repeated_are_found(path, tmp_path):
    with h5py.File(path) as file:
        start = file["soft_contacts/cell_start"][()]
        row = int(start[np.flatnonzero(np.diff(start) > 1)[0]])
        columns = {name: file["soft_contacts"][name][row] for name in ("kind", "indices", "shape", "feature")}

    def repeat(file):
        for name, value in columns.items():
            file["soft_contacts"][name][row + 1] = value

    found = check_file(edit(path, tmp_path / "b.h5", repeat))
    assert any("rows are out of order: cell, kind, indices, shape, feature" in one.what for one in found)


@pytest.mark.parametrize(
    "change",
    [
        replaced("soft_contacts/kind", np.zeros(3, np.float32)),
        drop("hydro_faces/vertices"),
        drop("hydro_patches"),
        replaced("self_contacts", np.zeros(3)),
    ],
)
def test_a_group_that_is_not_as_specified_is_refused(path, tmp_path, change):
    made = edit(path, tmp_path / "b.h5", change)
    with pytest.raises(InputError, match=r"group|dataset is missing|not uint8|refers to"):
        ContactSet.open(made)


@pytest.mark.parametrize(
    ("name", "row", "value"),
    [
        ("soft_contacts/cell_start", 5, 2**62),
        ("soft_contacts/cell_start", 5, -(2**62)),
        ("hydro_faces/vertex_start", 4, 2**62),
        ("hydro_faces/patch", 0, 2**62),
        ("hydro_faces/patch", 0, -(2**62)),
    ],
)
def test_hostile_starts_and_references_are_refused_on_reading(path, tmp_path, name, row, value):
    made = edit(path, tmp_path / "b.h5", put(name, row, value))
    with ContactSet.open(made) as contacts, pytest.raises(InputError):
        for _ in contacts.blocks(with_groups=True):
            pass
