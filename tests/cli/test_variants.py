"""`--variants` on the command line: what is run, inspected and written."""

import json

import h5py
import pytest

from collidecli.commands.python_api import open_contacts

SCENE = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)
def Sphere "a" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {
}
def Xform "b" (
    variants = { string size = "small" }
    prepend variantSets = "size"
) {
    variantSet "size" = {
        "small" {
            def Sphere "s" (prepend apiSchemas = ["PhysicsCollisionAPI"]) { double radius = 0.5 }
        }
        "large" {
            def Sphere "s" (prepend apiSchemas = ["PhysicsCollisionAPI"]) { double radius = 2 }
        }
    }
}
""".replace(" }\n        }", "\n            }\n        }")


@pytest.fixture
def scene(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.usda").write_text(SCENE)
    return "s.usda"


def test_run_writes_what_was_selected(collide, scene):
    """Concentric spheres: the distance is minus the sum of the radii, and the file says which variant it was."""
    hashes = []
    for value, distance in (("small", -1.5), ("large", -3.0)):
        variant = f"/b:size={value}"
        result = collide("run", scene, "--variants", variant, "-o", f"{value}.h5", "--device", "cpu")
        assert result.code == 0, result.err
        with open_contacts(f"{value}.h5") as found:
            (block,) = found.blocks()
            assert block.columns["distance"].tolist() == pytest.approx([distance])
        with h5py.File(f"{value}.h5") as file:
            assert variant in json.loads(file.attrs["config"])["variants"]
            hashes.append(file.attrs["content_sha256"])
    assert hashes[0] != hashes[1]


def test_refused(collide, scene, tmp_path):
    result = collide("run", scene, "--variants", "/b:size=huge", "-o", "o.h5", "--device", "cpu")
    assert result.code == 2
    assert "no variant 'huge'" in result.err
    assert "large, small" in result.err
    (tmp_path / "m.xml").write_text('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>')
    result = collide("inspect", "m.xml", "--variants", "/b:size=huge")
    assert result.code == 2
    assert "m.xml: --variants is for USD scenes" in result.err
