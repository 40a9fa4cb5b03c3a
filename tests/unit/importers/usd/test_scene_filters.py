"""Each USD filter rule against pairs written out by hand, and what is said where a rule cannot be followed."""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
import random
from itertools import combinations_with_replacement

import pytest
from pxr import Sdf, Usd, UsdPhysics

from collidecli.errors import InputError
from collidecli.importers.usd.filters import filtered_groups
from collidecli.importers.usd.scene import add_usd
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.filters import explain
from collidecli.scene.options import SceneOptions
from tests.support.filter_scenes import ABC, BODY_ROOT, OFF, ON, ROOT, SCENES, group, joint, links, spheres, xform
from tests.support.usd_scenes import BODY, COLLIDER, load, pairs, sphere, touching, write_usda

SAID = {
    "groups: filtered groups that are not there": "</H>: physics:filteredGroups names </gone>, which does not exist",
    "filtered pairs: of a prim above": "</x>: physics:filteredPairs: </x> is not a collider, body or articulation",
    "filtered pairs: of a prim above, as target": (
        "</a>: physics:filteredPairs: </x> is not a collider, body or articulation"
    ),
    "articulations: nested roots that agree": "</r>, </r/n>: several roots of one articulation; simulators require one",
    "articulations: nested roots, one silent": (
        "</r>, </r/n>: several roots of one articulation; simulators require one"
    ),
    "articulations: a root above and on the body": (
        "</r>, </r/a>: several roots of one articulation; simulators require one"
    ),
}


@pytest.mark.parametrize("name", SCENES)
def test_rule(tmp_path, name):
    scene, model = load(tmp_path, SCENES[name].text)
    assert touching(model) == pairs(SCENES[name].allowed)
    assert scene.warnings == ((SAID[name],) if name in SAID else ())


def random_groups(seed: int) -> tuple[Usd.Stage, list[str]]:
    """A stage of up to five collision groups with random filters, inversions and merge names; their paths."""
    draw = random.Random(seed)
    names = [f"/G{i}" for i in range(draw.randint(1, 5))]
    stage = Usd.Stage.CreateInMemory()
    for name in names:
        made = UsdPhysics.CollisionGroup.Define(stage, name)
        made.CreateFilteredGroupsRel().SetTargets([Sdf.Path(other) for other in names if draw.random() < 0.35])
        if draw.random() < 0.35:
            made.CreateInvertFilteredGroupsAttr(draw.random() < 0.8)
        if draw.random() < 0.5:
            made.CreateMergeGroupNameAttr(draw.choice("mk"))
    return stage, names


def test_group_table_is_that_of_pxr():
    """Of a merged group pxr's table is right in the row of the first alone: the others must be as that one is."""
    compared = 0
    for seed in range(1500):
        stage, names = random_groups(seed)
        prims = {name: stage.GetPrimAtPath(name) for name in names}
        ours = set(filtered_groups(prims, False))
        merge = {n: UsdPhysics.CollisionGroup(p).GetMergeGroupNameAttr().Get() or n for n, p in prims.items()}
        first = {name: next(n for n in names if merge[n] == merge[name]) for name in names}
        table = UsdPhysics.CollisionGroup.ComputeCollisionGroupTable(stage)
        for a, b in combinations_with_replacement(names, 2):
            collide = table.IsCollisionEnabled(Sdf.Path(first[a]), Sdf.Path(first[b]))
            assert ((a, b) not in ours) == collide, (seed, a, b)
            compared += 1
    assert compared > 5000


def test_the_rule_that_is_named(tmp_path):
    scene, model = load(tmp_path, ABC + group("G", "a", "H") + group("H", "b"))
    assert explain(model, scene.shape_of["/a"], scene.shape_of["/b"]).rule == "collision groups '/G' and '/H'"
    scene, model = load(tmp_path, SCENES["members: physics scenes"].text)
    rule = explain(model, scene.shape_of["/a"], scene.shape_of["/b"]).rule
    assert rule == "collision groups 'simulated by /S' and 'simulated by /T'"
    scene, model = load(tmp_path, sphere("a", "bool physics:collisionEnabled = 0") + sphere("b"))
    assert explain(model, scene.shape_of["/a"], scene.shape_of["/b"]).rule == "physics:collisionEnabled = false"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (sphere("a", "rel physics:collisionGroup = </G>"),
         "</a>: physics:collisionGroup names </G>, which does not exist"),
        (sphere("a", "rel physics:filteredPairs = </gone>"),
         "</a>: physics:filteredPairs: </gone> is not a collider, body or articulation"),
        (sphere("a") + group("G", "a", ("a",)),
         "</G>: physics:filteredGroups names </a>, which is not a collision group"),
        (spheres("a") + joint("/a", "/gone"), "</j>: the joint names </gone>, which does not exist"),
        ('def PhysicsScene "S" {\n}\ndef PhysicsScene "T" {\n}\n' + sphere("a", "rel physics:simulationOwner = </U>"),
         "</a>: physics:simulationOwner names </U>, which is not a PhysicsScene; the first scene is used"),
    ],
)  # fmt: skip
def test_what_leads_nowhere_is_a_warning(tmp_path, text, said):
    scene, model = load(tmp_path, text + sphere("b"))
    assert scene.warnings == (said,)
    assert touching(model) == {"a b"}


def test_two_roots_that_contradict_each_other_are_refused(tmp_path):
    inner = xform("n", OFF + "\n" + spheres("cd") + links("/r/n", "cd"), ROOT)
    text = xform("r", ON + "\n" + spheres("ab") + links("/r", "ab") + inner + joint("/r/b", "/r/n/c"), ROOT)
    with pytest.raises(InputError, match=r"</r> and </r/n> are roots of one articulation") as error:
        load(tmp_path, text)
    assert "</r/n>" in error.value.where


def test_a_root_that_reaches_an_excluded_joint_leaves_the_rest_alone(tmp_path):
    """The root is on a, and c - d - e hang on by an excluded joint: c and e are in no articulation."""
    excluded = "bool physics:excludeFromArticulation = 1"
    text = xform("r", sphere("a", OFF, BODY_ROOT) + spheres("bcde") + links("/r", "ab bc cd de", bc=excluded))
    _, model = load(tmp_path, text)
    assert touching(model) == pairs("a c, a d, a e, b d, b e, c e")


def test_joint_to_a_part_of_a_kinematic_body_that_is_not_enabled(tmp_path):
    """pxr names the part itself there."""
    kinematic = "bool physics:rigidBodyEnabled = 0\nbool physics:kinematicEnabled = 1"
    text = xform("x", kinematic + "\n" + spheres("pq", COLLIDER), BODY) + ABC + joint("/x/q", "/a")
    _, model = load(tmp_path, text)
    assert touching(model) == pairs("a b, a c, b c, b p, b q, c p, c q")


def test_joint_to_a_body_that_is_not_enabled(tmp_path):
    off = xform("x", "bool physics:rigidBodyEnabled = 0\n" + sphere("p", apis=COLLIDER), BODY)
    _, model = load(tmp_path, off + ABC + joint("/x", "/a"))
    assert touching(model) == pairs("a b, a c, b c, b p, c p")


@pytest.mark.parametrize("name", [f"articulations: self-collision {what}" for what in ("unsaid", "on", "off")])
def test_self_collisions_by_option(tmp_path, name):
    """`off` leaves the pairs with others; `on` does not overrule joints."""
    path = write_usda(tmp_path, SCENES[name].text)
    others = "a e, b e, c e, d e" if name.endswith("off") else ""
    own = "a c, a d, b d"
    for option, allowed in (("on", f"{own}, {others}" if others else own), ("off", others)):
        builder = ModelBuilder()
        add_usd(builder, path, SceneOptions(self_collisions=option))
        assert touching(builder.finalize()) == pairs(allowed)
