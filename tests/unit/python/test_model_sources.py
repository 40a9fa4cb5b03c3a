"""Contact sets of models that were given in Python: what they name in place of scene files."""

import os
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

import collidecli
from collidecli.motions.scenes import load_scene
from collidecli.pages.world_tables import NOTHING_STORED
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.model_hash import model_sha256
from collidecli.scene.model_source import BUILT_MODEL
from collidecli.scene.shape_config import ShapeConfig
from tests.cli.conftest import CommandLine

WORLD = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 .1"/>
<body name="ball" pos="0 0 .095"><freejoint/><geom name="ball" type="sphere" size=".1"/></body>
</worldbody></mujoco>"""
SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def two_worlds(radius: float = 0.1, gap: float = 0.1) -> Model:
    """Two worlds of a template each, with a ball of 0.1 m and one of `radius`."""
    scene = ModelBuilder()
    for size in (0.1, radius):
        world = ModelBuilder()
        ball = world.add_body((0, 0, 0.095, 0, 0, 0, 1), key="ball")
        world.add_shape_sphere(ball, radius=size, key="ball", cfg=ShapeConfig(gap=gap))
        scene.add_world(world)
    scene.add_ground_plane()
    return scene.finalize()


def poses(height: float = 0.095) -> np.ndarray:
    found = np.zeros((3, 2, 1, 7))
    found[..., 6] = 1.0
    found[..., 2] = height
    return found


def collide(*words: str) -> str:
    return CommandLine()(*words).out


def test_a_set_of_a_built_model_names_it(folder):
    collidecli.run(two_worlds(), poses(), output="a.h5")
    in_memory = collidecli.run(two_worlds(), poses()).contact_set
    with collidecli.open_contacts("a.h5") as written:
        for contacts in (in_memory, written):
            assert contacts.scene == BUILT_MODEL
            assert contacts.scene_sha256 == model_sha256(two_worlds())
            assert contacts.content_sha256 == written.content_sha256


def test_a_model_is_hashed_when_its_hash_is_needed_and_once(folder, monkeypatch):
    hashed = []

    def counted(model):
        hashed.append(model)
        return model_sha256(model)

    monkeypatch.setattr("collidecli.scene.model.model_sha256", counted)
    model = two_worlds()
    collidecli.collide(model, poses())
    collidecli.run(model, poses())
    collidecli.clearance(model, poses())
    collidecli.sweep(model, poses())
    collidecli.bounding_boxes(model, poses())
    assert hashed == []
    results = [collidecli.audit(model, poses()) for _ in range(2)]
    collidecli.run(model, poses(), output="a.h5")
    assert len(hashed) == 1
    with collidecli.open_contacts("a.h5") as written:
        assert written.scene_sha256 == model.sha256 == results[0].result.scene_sha256


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("model", "of another name", "model"),
        ("files", f"{BUILT_MODEL}.xml", "files"),
        (None, BUILT_MODEL, "model"),
        (None, f"{BUILT_MODEL} (of a.usda)", "model"),
        (None, "", "model"),
        (None, "a.usda", "files"),
    ],
)
def test_an_attribute_says_what_the_scene_is(folder, kind, name, expected):
    """Of earlier versions, which wrote none, the name."""
    collidecli.run(two_worlds(), poses(), output="a.h5")
    with h5py.File("a.h5", "a") as file:
        assert file.attrs["scene_kind"] == "model"
        file.attrs["scene"] = name
        del file.attrs["scene_kind"]
        if kind:
            file.attrs["scene_kind"] = kind
    with collidecli.open_contacts("a.h5") as contacts:
        assert contacts.scene_kind == expected
    without_file = "no file has its shapes and motion"
    assert (without_file in CommandLine()("view a.h5 --export page.html").err) == (
        expected == "model"
    )


def test_merged_sets_keep_the_kind_of_their_scene(folder):
    """The name of the file is no hint."""
    scene = f"{BUILT_MODEL}.xml"
    (folder / scene).write_text(WORLD)
    CommandLine().ok("record", scene, "-o", "motion.h5", "--frames", 4)
    for file, frames in (("a.h5", "0:2"), ("b.h5", "2:4")):
        CommandLine().ok("run", scene, "-t", "motion.h5", "--frames", frames, "-o", file)
    CommandLine().ok("merge a.h5 b.h5 -o c.h5")
    with collidecli.open_contacts("c.h5") as contacts:
        assert (contacts.scene, contacts.scene_kind) == (scene, "files")


def test_another_kind_of_scene_is_refused(folder):
    collidecli.run(two_worlds(), poses(), output="a.h5")
    with h5py.File("a.h5", "a") as file:
        file.attrs["scene_kind"] = "stone"
    CommandLine().refused("inspect a.h5", told="scene_kind")


def test_contacts_in_memory_of_files_name_the_files(folder):
    """As the command does, with its options."""
    (folder / "world.xml").write_text(WORLD)
    CommandLine().ok("run world.xml --worlds 2 -q -o a.h5")
    with collidecli.open_contacts("a.h5") as written:
        found = collidecli.run("world.xml", worlds=2).contact_set
        for name in ("scene", "scene_sha256", "config", "content_sha256"):
            assert getattr(found, name) == getattr(written, name)


def test_comparisons_say_that_there_is_no_file(folder):
    collidecli.run(two_worlds(), poses(), output="a.h5")
    collidecli.run(two_worlds(0.11), poses(), output="b.h5")
    collidecli.run(two_worlds(), poses(0.09), output="c.h5")
    told = collide("diff", "a.h5", "b.h5")
    reason = f"the scene of A is {BUILT_MODEL}: no file has its shapes and motion"
    assert reason in told
    assert "note: the models, built in Python, are different" in told
    assert "t = " not in told  # the poses have no times
    told = collide("diff", "a.h5", "c.h5")
    assert "the models of A and B, built in Python, are equal" in told
    assert f"the motions are not compared: {reason}" in told
    assert "note: the models" not in told
    told = collide("inspect", "b.h5")
    assert f"scene        {BUILT_MODEL}\n" in told
    assert "frames       3\n" in told
    assert NOTHING_STORED in told
    CommandLine().refused("export b.h5 --to mujoco --scene b.h5", told="not of a scene file")


def test_templates_of_a_built_model_are_compared_as_those_of_files(folder):
    scene = ModelBuilder()
    for gap in (0.1, 0.2):
        world = ModelBuilder()
        ball = world.add_body(key="ball")
        world.add_shape_sphere(ball, radius=0.1, key="ball", cfg=ShapeConfig(gap=gap))
        scene.add_world(world)
    collidecli.run(scene.finalize(), output="a.h5")
    assert "gap of ball: 0.2 in place of 0.1" in collide("inspect", "a.h5")


@pytest.mark.parametrize(
    "other",
    [
        two_worlds(0.11),
        two_worlds(gap=0.2),
        replace(two_worlds(), gap_rule="sum"),
        replace(two_worlds(), up_axis="Y"),
    ],
)
def test_other_models_have_other_hashes(other):
    assert model_sha256(two_worlds()) == model_sha256(two_worlds())
    assert model_sha256(other) != model_sha256(two_worlds())


def test_vertices_of_a_mesh_are_in_the_hash():
    """Of octahedra whose boxes and sizes are equal."""
    faces = [[0, 1, 2], [1, 3, 2], [3, 4, 2], [4, 0, 2], [1, 0, 5], [3, 1, 5], [4, 3, 5], [0, 4, 5]]
    hashes = []
    for side in (0.0, 0.2):
        builder = ModelBuilder()
        points = np.array(
            [[1, side, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1]], float
        )
        builder.add_shape_mesh(builder.add_body(key="body"), points, np.array(faces), key="mesh")
        hashes.append(model_sha256(builder.finalize()))
    assert hashes[0] != hashes[1]


@pytest.mark.parametrize(
    "scene", ["01_usd_pile/pile.usda", "05_hydroelastic/gripper.usda", "06_cloth/cloth.usda"]
)
def test_every_kind_of_shape_has_a_hash(scene):
    model = load_scene((os.fspath(SAMPLES / scene),), None).model
    assert len(model_sha256(model)) == 64


def test_a_model_of_a_usd_file_is_exported_to_usd_without_its_scene(folder):
    """Its name ends with that of the file, and is no file."""
    scene = collidecli.ModelBuilder()
    scene.add_usd(SAMPLES / "01_usd_pile" / "pile.usda")
    model = scene.finalize()
    given = np.zeros((2, 1, len(model.bodies.path), 7))
    given[..., 0] = 3.0 * np.arange(len(model.bodies.path))
    given[..., 6] = 1.0
    collidecli.run(model, given, fps=10.0, output="pile.h5")
    with collidecli.open_contacts("pile.h5") as contacts:
        assert contacts.scene == f"{BUILT_MODEL} (of pile.usda)"
    collide("export", "pile.h5", "--to", "usd", "-o", "contacts.usda")
    assert "collide_contacts" in Path("contacts.usda").read_text()


@pytest.mark.parametrize("height", [0.5, 2.0])
def test_sets_with_empty_tables_of_particles_are_compared(folder, height):
    """A table without rows against itself, and against one with rows."""
    for name, place in (("low.h5", 0.05), ("other.h5", height)):
        scene = ModelBuilder()
        body = scene.add_body(key="ball")
        scene.add_shape_sphere(body, radius=0.1, key="ball")
        scene.add_particles([[0.0, 0.0, place]], radius=0.02)
        collidecli.run(scene.finalize(), np.array([[[[0, 0, 0, 0, 0, 0, 1.0]]]]), output=name)
    assert collidecli.diff("other.h5", "other.h5").equal
    assert not collidecli.diff("low.h5", "other.h5").equal
