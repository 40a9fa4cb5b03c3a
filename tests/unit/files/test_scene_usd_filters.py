"""Each USD filter rule against pairs written out by hand."""

import pytest

from collidecli.errors import InputError
from collidecli.model.explain import explain
from tests.support.usd_scenes import BODY, COLLIDER, load, pairs, sphere, touching

ABC = sphere("a") + sphere("b") + sphere("c")
ALL_ABC = "a b, a c, b c"


def group(name, members=(), filtered=(), inside=""):
    def paths(names):
        return "[" + ", ".join(f"</{n}>" for n in names) + "]"

    return (
        f'def PhysicsCollisionGroup "{name}" {{\n rel collection:colliders:includes = {paths(members)}\n'
        f" rel physics:filteredGroups = {paths(filtered)}\n {inside}\n}}\n"
    )


def check(folder, text, expected):
    scene, model = load(folder, text)
    assert touching(model) == pairs(expected)
    return scene, model


def test_colliders_of_no_group_touch_all(tmp_path):
    check(tmp_path, ABC, ALL_ABC)


def test_groups_collide_unless_filtered(tmp_path):
    check(tmp_path, ABC + group("G", "a") + group("H", "b"), ALL_ABC)


def test_filtered_groups(tmp_path):
    check(tmp_path, ABC + group("G", "a", "H") + group("H", "b"), "a c, b c")


def test_a_group_filtered_with_itself(tmp_path):
    check(tmp_path, ABC + group("G", "ab", "G"), "a c, b c")


def test_inverted_group_touches_only_what_it_names(tmp_path):
    """a's group names H alone: so a touches b, and neither c nor d, which is in no group."""
    text = ABC + sphere("d") + group("G", "a", "H", "bool physics:invertFilteredGroups = 1")
    check(tmp_path, text + group("H", "b") + group("I", "c"), "a b, b c, b d, c d")


def test_inverted_group_that_does_not_name_itself(tmp_path):
    text = ABC + group("G", "ab", "H", "bool physics:invertFilteredGroups = 1") + group("H", "c")
    check(tmp_path, text, "a c, b c")


def test_inversion_is_off_where_nothing_is_authored(tmp_path):
    scene, model = check(tmp_path, ABC + group("G", "a", "H") + group("H", "b"), "a c, b c")
    assert explain(model, scene.shape_of["/a"], scene.shape_of["/b"]).rule == "collision groups '/G' and '/H'"
    off = group("G", "a", "H", "bool physics:invertFilteredGroups = 0")
    check(tmp_path, ABC + off + group("H", "b"), "a c, b c")


def test_merged_groups_are_one(tmp_path):
    """G and M share a name, so M's filter rules G's member a too."""
    merge = 'string physics:mergeGroup = "one"'
    text = ABC + group("G", "a", (), merge) + group("M", (), "H", merge) + group("H", "b")
    check(tmp_path, text, "a c, b c")
    check(tmp_path, text.replace('"one"', '""'), ALL_ABC)


def test_a_shape_in_two_groups_needs_both_enabled(tmp_path):
    text = ABC + group("G", "ab") + group("H", "a", "I") + group("I", "c")
    check(tmp_path, text, "a b, b c")


def test_group_of_a_whole_body(tmp_path):
    """A collection that includes an Xform holds all below it; an exclusion takes one out."""
    text = f'def Xform "x" {BODY} {{\n{sphere("p", apis=COLLIDER)}{sphere("q", apis=COLLIDER)}}}\n' + sphere("a")
    check(tmp_path, text + group("G", "x", "H") + group("H", "a"), "")
    left_out = group("G", "x", "H", "prepend rel collection:colliders:excludes = [</x/q>]")
    check(tmp_path, text + left_out + group("H", "a"), "a q")


def test_group_named_by_the_shape(tmp_path):
    text = sphere("a", "rel physics:collisionGroup = </G>") + sphere("b", "rel physics:collisionGroup = </H>")
    check(tmp_path, text + sphere("c") + group("G", (), "H") + group("H"), "a c, b c")


def test_group_named_by_the_shape_need_not_be_typed(tmp_path):
    text = sphere("a", "rel physics:collisionGroup = </G>") + sphere("b", "rel physics:collisionGroup = </G>")
    text += 'def "G" {\n rel physics:filteredGroups = </G>\n}\n'
    check(tmp_path, text + sphere("c"), "a c, b c")


def test_group_that_is_not_there_is_a_warning(tmp_path):
    scene, _ = check(tmp_path, sphere("a", "rel physics:collisionGroup = </G>") + sphere("b"), "a b")
    assert scene.warnings == ("</a>: physics:collisionGroup names </G>, which is not there",)


def test_filtered_pairs_hold_both_ways(tmp_path):
    check(tmp_path, sphere("a") + sphere("b", "rel physics:filteredPairs = </a>") + sphere("c"), "a c, b c")


def test_filtered_pairs_of_a_body_are_those_of_its_shapes(tmp_path):
    body = f'def Xform "x" {BODY} {{\n{sphere("p", apis=COLLIDER)}{sphere("q", apis=COLLIDER)}}}\n'
    check(tmp_path, body + sphere("a", "rel physics:filteredPairs = </x>") + sphere("b"), "b p, b q, a b")
    check(tmp_path, body + sphere("a", "rel physics:filteredPairs = </x/q>") + sphere("b"), "a p, b p, b q, a b")


def chain(inside: str) -> str:
    """Bodies a - b - c in an articulation, joints between neighbours."""
    joints = "".join(
        f'def PhysicsFixedJoint "j{i}" {{\n rel physics:body0 = </r/{i}>\n rel physics:body1 = </r/{k}>\n}}\n'
        for i, k in ("ab", "bc")
    )
    return f'def Xform "r" (prepend apiSchemas = ["PhysicsArticulationRootAPI"]) {{\n{inside}\n{ABC}{joints}}}\n'


def test_filtered_pairs_of_an_articulation(tmp_path):
    text = chain("rel physics:filteredPairs = </d>") + sphere("d") + sphere("e")
    check(tmp_path, text, "a c, a e, b e, c e, d e")


def test_filtered_pair_with_nothing_is_a_warning(tmp_path):
    scene, _ = check(tmp_path, sphere("a", "rel physics:filteredPairs = </gone>") + sphere("b"), "a b")
    assert scene.warnings == ("</a>: physics:filteredPairs: </gone> is no collider, body or articulation",)


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("", "a c"),
        ("bool physxArticulation:enabledSelfCollisions = 1", "a c"),
        ("bool physxArticulation:enabledSelfCollisions = 0", ""),
        ("bool newton:selfCollisionEnabled = 0", ""),
        ("bool newton:selfCollisionEnabled = 1\nbool physxArticulation:enabledSelfCollisions = 0", "a c"),
    ],
)
def test_articulation_self_collision(tmp_path, inside, expected):
    check(tmp_path, chain(inside), expected)


def test_articulation_rooted_in_a_joint_to_the_world(tmp_path):
    """world - a - b - c: all three belong to the articulation."""
    root = 'def PhysicsFixedJoint "root" (prepend apiSchemas = ["PhysicsArticulationRootAPI"]) {\n'
    root += "bool physxArticulation:enabledSelfCollisions = 0\nrel physics:body1 = </r/a>\n}\n"
    text = chain("").replace('(prepend apiSchemas = ["PhysicsArticulationRootAPI"])', "") + root + sphere("d")
    check(tmp_path, text, "a d, b d, c d")


def joint(body0="", body1="", inside=""):
    rels = "".join(f" rel physics:body{i} = <{path}>\n" for i, path in enumerate((body0, body1)) if path)
    return f'def PhysicsRevoluteJoint "j" {{\n{rels} {inside}\n}}\n'


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("", "a c, b c"),
        ("bool physics:collisionEnabled = 0", "a c, b c"),
        ("bool physics:collisionEnabled = 1", ALL_ABC),
        ("bool physics:jointEnabled = 0", ALL_ABC),
    ],
)
def test_joined_bodies(tmp_path, inside, expected):
    check(tmp_path, ABC + joint("/a", "/b", inside), expected)


def test_joint_to_the_world_frame_filters_nothing(tmp_path):
    text = ABC + sphere("ground", apis=COLLIDER)
    free = ALL_ABC + ", a ground, b ground, c ground"
    check(tmp_path, text + joint("/a"), free)
    check(tmp_path, f'def Xform "w" {{\n}}\n{text}' + joint("/w", "/a"), free)


def test_joint_to_nothing_is_a_warning(tmp_path):
    scene, _ = check(tmp_path, ABC + joint("/a", "/gone"), ALL_ABC)
    assert scene.warnings == ("</j>: the joint names </gone>, which is not there",)


def test_two_articulations_of_one_body_are_refused(tmp_path):
    off = "bool newton:selfCollisionEnabled = 0"
    api = '(prepend apiSchemas = ["PhysicsArticulationRootAPI"])'
    text = f'def PhysicsFixedJoint "w" {api} {{\n{off}\nrel physics:body1 = </r/c>\n}}\n' + chain(off)
    with pytest.raises(InputError, match="two articulations"):
        load(tmp_path, text)


def test_joint_to_a_static_collider_filters_that_one(tmp_path):
    text = ABC + sphere("ground", apis=COLLIDER) + sphere("wall", apis=COLLIDER)
    free = ALL_ABC + ", b ground, c ground, a wall, b wall, c wall"
    check(tmp_path, text + joint("/a", "/ground"), free)


def test_joint_to_a_part_of_a_body_joins_the_body(tmp_path):
    body = f'def Xform "x" {BODY} {{\n{sphere("p", apis=COLLIDER)}{sphere("q", apis=COLLIDER)}}}\n'
    check(tmp_path, body + ABC + joint("/x/q", "/a"), ALL_ABC + ", b p, b q, c p, c q")


def test_joint_to_a_part_of_a_kinematic_body_that_is_not_enabled(tmp_path):
    """pxr names the part itself there."""
    kinematic = "bool physics:rigidBodyEnabled = 0\nbool physics:kinematicEnabled = 1"
    parts = sphere("p", apis=COLLIDER) + sphere("q", apis=COLLIDER)
    text = f'def Xform "x" {BODY} {{\n{kinematic}\n{parts}}}\n' + ABC + joint("/x/q", "/a")
    check(tmp_path, text, ALL_ABC + ", b p, b q, c p, c q")


def test_joint_to_a_body_that_is_not_enabled(tmp_path):
    off = f'def Xform "x" {BODY} {{\n bool physics:rigidBodyEnabled = 0\n{sphere("p", apis=COLLIDER)}}}\n'
    check(tmp_path, off + ABC + joint("/x", "/a"), ALL_ABC + ", b p, c p")


def test_collision_enabled_false_touches_nothing(tmp_path):
    scene, model = check(tmp_path, sphere("a", "bool physics:collisionEnabled = 0") + sphere("b") + sphere("c"), "b c")
    assert "collisionEnabled" in explain(model, scene.shape_of["/a"], scene.shape_of["/b"]).rule


def test_static_colliders_do_not_touch_each_other(tmp_path):
    check(tmp_path, sphere("s", apis=COLLIDER) + sphere("t", apis=COLLIDER) + sphere("a"), "a s, a t")


def test_newton_collision_group(tmp_path):
    text = sphere("a", "int newton:collision_group = 2") + sphere("b", "int newton:collision_group = -1")
    check(tmp_path, text + sphere("c"), "a b, b c")
