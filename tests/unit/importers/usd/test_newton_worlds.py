"""Several values of `newton:world` in one stage: a world each, with the shapes that are in every world."""

import numpy as np
import pytest

import collidecli
from collidecli.commands.scenes import load_scene
from collidecli.errors import InputError
from collidecli.scene.filters import allowed_pairs
from tests.support.filter_scenes import OFF, ROOT, links, xform
from tests.support.usd_scenes import COLLIDER, load, sphere, write_usda


def in_world(name, number, more="", apis=None):
    inside = f"int newton:world = {number}\n{more}"
    return sphere(name, inside) if apis is None else sphere(name, inside, apis)


STAGE = (
    in_world("a", 0)
    + in_world("b", 0)
    + in_world("c", 1)
    + in_world("d", 1, apis=COLLIDER)
    + in_world("g", -1, apis=COLLIDER)
    + sphere("h")
)


def of_worlds(model):
    """Pairs of names that may touch in each world."""
    names = [path[1:].rpartition("/")[2] for path in model.shapes.path]
    return [{names[a] + names[b] for a, b in allowed_pairs(model, int(template))} for template in model.world_template]


def test_each_value_is_a_world_and_the_others_are_in_all(tmp_path):
    scene, model = load(tmp_path, STAGE)
    assert scene.warnings == ()
    assert model.world_count == 2
    found = [{"".join(sorted(pair)) for pair in pairs} for pairs in of_worlds(model)]
    # Two static shapes do not touch.
    assert found == [{"ab", "ag", "ah", "bg", "bh", "gh"}, {"cd", "cg", "ch", "dh", "gh"}]


def test_values_that_are_not_counted_from_0(tmp_path):
    scene, model = load(tmp_path, in_world("a", 7) + in_world("b", 7) + in_world("c", 3) + in_world("d", 3))
    assert of_worlds(model) == [{"cd"}, {"ab"}]
    assert scene.warnings == ("newton:world: the values 3, 7 are the worlds 0 to 1, in this order",)


def test_one_value_leaves_one_world_that_can_be_copied(tmp_path):
    _, model = load(tmp_path, in_world("a", 4) + in_world("b", -1) + sphere("c"))
    assert model.world_count == 1
    assert len(of_worlds(model)[0]) == 3


def test_colliders_of_a_body_are_in_its_world(tmp_path):
    body = f'def Xform "body" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {{\n{in_world("a", 1, apis=COLLIDER)}'
    body += f"{in_world('b', -1, apis=COLLIDER)}{sphere('c', apis=COLLIDER)}}}\n"
    _, model = load(tmp_path, body + in_world("d", 0) + in_world("e", 1))
    assert of_worlds(model) == [set(), {"ae", "be", "ce"}]


def test_joints_and_articulations_between_worlds(tmp_path):
    inside = OFF + "\n" + in_world("a", 0) + in_world("b", 0) + in_world("c", 1) + in_world("d", 1)
    inside += links("/r", "ab bc cd")
    scene, model = load(tmp_path, xform("r", inside, ROOT) + in_world("e", 0) + in_world("f", 1))
    assert of_worlds(model) == [{"ae", "be"}, {"cf", "df"}]
    assert "the joint is between two worlds, which cannot collide" in scene.warnings[0]


def test_each_world_has_the_contacts_that_its_shapes_have_alone(tmp_path):
    """Also where the worlds' bodies move, by the stage's own time samples."""
    moves = "double3 xformOp:translate.timeSamples = {{ 0: (0, 0, {}), 1: (0, 0, {}), 2: (0, 0, {}) }}\n"
    moves += 'uniform token[] xformOpOrder = ["xformOp:translate"]'
    text = {
        0: in_world("a", 0, moves.format(1.9, 2.5, 1.0)),
        1: in_world("b", 1, moves.format(1.5, 1.7, 3.0)) + in_world("c", 1, moves.format(3.1, 3.3, 5.0)),
    }
    ground = in_world("g", -1, apis=COLLIDER)
    collected = []
    for stage in (text[0] + text[1] + ground, text[0] + ground, text[1] + ground):
        builder = collidecli.ModelBuilder()
        imported = builder.add_usd(write_usda(tmp_path, stage))
        model = builder.finalize()
        found = collidecli.collide(model, imported.motion(model), device="cpu")
        paths = np.array(model.shapes.path)
        collected.append(
            [
                [
                    {
                        (*sorted((str(paths[a]), str(paths[b]))), float(distance))
                        for a, b, distance in zip(cell.shape0, cell.shape1, cell.distance, strict=True)
                    }
                    for cell in (found.cell(frame, world) for frame in range(3))
                ]
                for world in range(model.world_count)
            ]
        )
    assert collected[0] == [collected[1][0], collected[2][0]]
    assert sum(map(len, collected[0][1])) > 2


def test_copies_of_worlds_are_refused(tmp_path):
    path = write_usda(tmp_path, STAGE)
    with pytest.raises(InputError, match="there are 3 worlds, and the scene has 2 worlds of its own"):
        load_scene([path], 3)
