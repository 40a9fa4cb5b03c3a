"""Files of versions 1.0, 1.3 and 2.0, kept, are read by every later version."""

from pathlib import Path

import numpy as np

from collidecli.storage.contact_sets.check import check_file
from collidecli.storage.contact_sets.reader import ContactSet

FOLDER = Path(__file__).parents[3] / "golden"
GOLDEN, GROUPS, BLOCKS = (FOLDER / f"contacts_{version}.h5" for version in ("1_0", "1_3", "2_0"))


def test_version_1_0_is_reread():
    with ContactSet.open(GOLDEN) as contacts:
        assert contacts.version == (1, 0)
        assert contacts.content_sha256 == "fe01f1ce38463cddea0cdaaa69daf52fd69b36d51483d8514f0e262dcbf5a7ce"
        assert contacts.shapes.path == ("ground", "ball", "bøx", "pin", "egg")
        assert contacts.shapes.type == ("plane", "sphere", "box", "capsule", "ellipsoid")
        assert contacts.forced.shape1.tolist() == [2, 4]
        assert (contacts.frame_count, contacts.world_count) == (2, 2)
        assert contacts.time.tolist() == [0.0, 0.01]
        assert contacts.step.tolist() == [0, 5]
        assert contacts.config == {"gap_rule": "max", "narrow_phase": "gjk"}
        assert contacts.cell_start().tolist() == [0, 1, 3, 6, 9]
        assert contacts.column("shape0").tolist() == [0, 0, 2, 0, 0, 2, 0, 1, 2]
        assert contacts.column("shape1").tolist() == [1, 2, 4, 3, 4, 4, 3, 2, 4]
        last = {name: values[-1] for name, values in contacts.cell(1, 1).columns.items()}
    assert last["distance"] == np.float32(-0.072626031935215)
    assert np.array_equal(last["normal"], np.float32([0.9107549786567688, 0.2883278727531433, 0.2956220209598541]))
    assert np.array_equal(last["point0"], np.float32([0.25438812375068665, 1.2246469259262085, -0.29752683639526367]))
    assert np.array_equal(last["offset1"], np.float32([0.6168787479400635, 2.5478978157043457, -1.000924825668335]))
    assert (last["feature0"], last["feature1"], last["kind"]) == (-1, -1, 2)


def test_its_hash_and_rules_still_hold():
    assert check_file(GOLDEN) == []
    assert check_file(GROUPS) == []
    assert check_file(BLOCKS) == []


def test_version_2_0_is_reread():
    """Its columns of cells have two blocks of the content hash."""
    with ContactSet.open(BLOCKS) as contacts:
        assert contacts.version == (2, 0)
        assert contacts.content_sha256 == "f55f4215e2abfd4947c2a45c58822cdd6a73b7a83ef17d19037f7c841e874120"
        assert (contacts.frame_count, contacts.world_count, contacts.contact_count) == (1200, 7, 56)
        assert contacts.shapes.path == ("ground", "ball", "bøx", "pin", "egg")
        assert contacts.cell_start(slice(0, 16))[[1, 7, 14, 15]].tolist() == [6, 33, 56, 56]
        assert contacts.file["content_hash/block"].shape == (81, 32)
        assert bytes(contacts.file["content_hash/block"][0, :4]).hex() == "f1270454"
        last = {name: values[-1] for name, values in contacts.cell(1, 6).columns.items()}
        assert list(contacts.groups) == ["hydro_patches", "hydro_faces", "soft_contacts", "self_contacts"]
        assert contacts.groups["soft_contacts"].row_count == 33
    assert (last["shape0"], last["shape1"], last["kind"]) == (3, 4, 1)
    assert last["distance"] == np.float32(-0.07501723617315292)


def test_the_groups_of_version_1_3_are_reread():
    with ContactSet.open(GROUPS) as contacts:
        assert contacts.version == (1, 3)
        assert contacts.content_sha256 == "f03d1ac1b96e7f1610c941987ce2d82498d4bfe6d32a6df0d4110f59a5d78594"
        objects = contacts.particle_objects
        assert (objects.path, objects.kind, objects.template.tolist()) == (
            ("/cloth", "gel"),
            ("cloth", "soft"),
            [-1, 0],
        )
        assert (objects.first_particle.tolist(), objects.particle_count.tolist()) == ([0, 6], [6, 3])
        starts = {name: table.cell_start().tolist() for name, table in contacts.groups.items()}
        assert starts == {
            "hydro_patches": [0, 3, 6, 8, 11],
            "hydro_faces": [0, 7, 10, 14, 20],
            "soft_contacts": [0, 3, 5, 9, 14],
            "self_contacts": [0, 0, 0, 1, 3],
        }
        patches, faces, soft, own = (
            {column.name: table.column(column.name)[-1].tolist() for column in table.columns}
            for table in contacts.groups.values()
        )
        corners = contacts.groups["hydro_faces"].column("vertex_start").tolist()
        vertices = contacts.groups["hydro_faces"].column("vertices")
    assert (patches["shape0"], patches["shape1"], patches["face_count"]) == (3, 4, 3)
    assert patches["force"] == [-0.7354457743627153, 0.6988227448389438, 0.06917172943950622]
    assert patches["center"] == [-1.0629706382751465, 0.23639518022537231, -0.7152122259140015]
    assert (faces["patch"], faces["pressure"]) == (10, 0.11823820239791931)
    assert corners == [0, 5, 9, 12, 16, 19, 23, 26, 31, 34, 39, 42, 48, 53, 57, 61, 64, 69, 72, 78, 82]
    assert vertices[-1].tolist() == [2.167280673980713, 1.4355412721633911, 0.9425172209739685]
    assert (soft["kind"], soft["indices"], soft["shape"], soft["feature"]) == (1, [3, 4, -1], 2, 4)
    assert soft["barycentric"] == [0.3824954628944397, 0.6175045371055603, 0.0]
    assert soft["point_world"] == [0.06291770190000534, 0.14164426922798157, -0.00807039812207222]
    assert (own["kind"], own["indices"], own["distance"]) == (1, [3, 4, 7, 8], 0.15513943135738373)
