"""A file of version 1.0, kept, is read by every later version."""

from pathlib import Path

import numpy as np

from collidecli.storage.contact_sets.check import check_file
from collidecli.storage.contact_sets.reader import ContactSet

GOLDEN = Path(__file__).parents[3] / "golden" / "contacts_1_0.h5"


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
