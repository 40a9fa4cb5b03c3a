"""Stages whose arcs multiply: counted, and refused, before USD composes them."""

import pytest
from pxr import Usd

from collidecli.errors import InputError
from collidecli.importers.usd import expected_prims, instancers
from collidecli.importers.usd.expected_prims import MOST_ARCS, open_whole, refuse_excessive_stage
from collidecli.importers.usd.layers import is_motion_only
from tests.support.usd_scenes import COLLIDER, load, write_usda

BASE = f'def Scope "a0" {{\n def Cube "c" {COLLIDER} {{}}\n}}\n'


def doubled(times: int, arc: str = "references", more: str = "") -> str:
    """A scene in which each prim has two children with an arc to the prim before."""
    texts = [BASE]
    for k in range(times):
        child = f"({arc} = </K/a{k}>\n {more})"
        pair = f'def "x" {child} {{}}\n def "y" {child} {{}}'
        texts.append(f'def Scope "a{k + 1}" {{\n {pair}\n}}\n')
    return f'class "K" {{\n{"".join(texts)}}}\ndef Xform "W" ({arc} = </K/a{times}>) {{}}\n'


def in_variants(times: int) -> str:
    """`doubled` with the children in a variant, of which each prim has three."""
    texts = [BASE]
    for k in range(times):
        pair = "".join(f'def "{name}" (references = </K/a{k}>) {{}}\n' for name in "xy")
        sets = "".join(f'"{name}" {{\n{pair}}}\n' for name in ("one", "two", "three"))
        chosen = 'prepend variantSets = "v"\n variants = { string v = "one" }'
        texts.append(f'def Scope "a{k + 1}" ({chosen}) {{\n variantSet "v" = {{\n{sets}}}\n}}\n')
    return f'class "K" {{\n{"".join(texts)}}}\ndef Xform "W" (references = </K/a{times}>) {{}}\n'


@pytest.mark.parametrize(
    "text",
    [
        doubled(24),
        doubled(24, "payload"),
        doubled(24, "inherits"),
        doubled(24, "specializes"),
        doubled(24, more="instanceable = true\n"),
        in_variants(24),
    ],
    ids=["references", "payloads", "inherits", "specializes", "instances", "variants"],
)
def test_arcs_that_multiply_are_refused(tmp_path, text):
    with pytest.raises(InputError, match="composes to over 2,000,000 prims") as error:
        load(tmp_path, text)
    assert error.value.where.endswith("s.usda")
    assert error.value.fix


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (doubled(4), "/W/x/x/x/x/c"),
        (doubled(4, "inherits"), "/W/x/x/x/x/c"),
        (in_variants(3), "/W/x/x/x/c"),
    ],
)
def test_the_count_is_that_of_the_prims(tmp_path, text, kept, monkeypatch):
    """A limit of the prims that are composed, abstract ones included, accepts the scene; one less
    refuses it."""
    stage = Usd.Stage.Open(str(write_usda(tmp_path, text)))
    every = Usd.PrimRange.Stage(stage, Usd.PrimAllPrimsPredicate)
    count = sum(1 for _ in every) + 2  # the root of the layer, and that of the session
    monkeypatch.setattr(expected_prims, "MOST_PRIMS", count)
    imported, _ = load(tmp_path, text)
    assert kept in imported.shape_of
    monkeypatch.setattr(expected_prims, "MOST_PRIMS", count - 1)
    with pytest.raises(InputError, match="composes to over"):
        load(tmp_path, text)


def test_prims_of_sublayers_are_counted(tmp_path, monkeypatch):
    write_usda(tmp_path, f'def Xform "W" {{\n{BASE}}}\n', name="sub.usda")
    header = 'metersPerUnit = 1\n upAxis = "Z"\n subLayers = [@./sub.usda@]'
    path = write_usda(tmp_path, "", header)
    load(tmp_path, path)
    monkeypatch.setattr(expected_prims, "MOST_PRIMS", 2)
    with pytest.raises(InputError, match="composes to over 2 prims"):
        load(tmp_path, path)


def test_prims_of_other_files_are_counted(tmp_path, monkeypatch):
    """A reference without a path is to the file's default prim; a file that is not there is
    reported by the composition."""
    write_usda(tmp_path, BASE, 'metersPerUnit = 1\n defaultPrim = "a0"', "part.usda")
    pair = "".join(f'def Xform "{name}" (references = @part.usda@) {{}}\n' for name in "xy")
    path = write_usda(tmp_path, pair)
    load(tmp_path, path)
    monkeypatch.setattr(expected_prims, "MOST_PRIMS", 5)
    with pytest.raises(InputError, match="composes to over 5 prims"):
        load(tmp_path, path)
    (tmp_path / "part.usda").unlink()
    with pytest.raises(InputError, match="does not compose"):
        load(tmp_path, path)


def test_environments_count_once(tmp_path, monkeypatch):
    """Of equal environments one is composed, and counted."""
    part = f'class "P" {{\n{BASE}}}\n'
    envs = "".join(f'def Xform "env_{k}" (references = </P>) {{}}\n' for k in range(50))
    text = f'{part}def Xform "World" {{\ndef Xform "envs" {{\n{envs}}}\n}}\n'
    monkeypatch.setattr(expected_prims, "MOST_PRIMS", 20)
    imported, _ = load(tmp_path, text)
    assert len(imported.shape_of) == 1


def test_long_chains_are_refused(tmp_path):
    every = "".join(f'def "a{k + 1}" (references = </K/a{k}>) {{}}\n' for k in range(MOST_ARCS + 1))
    text = f'class "K" {{\n{BASE}{every}}}\n'
    with pytest.raises(InputError, match=f"are {MOST_ARCS + 1} deep, at most {MOST_ARCS}"):
        load(tmp_path, text)


def test_rings_of_arcs_are_left_to_the_composition(tmp_path):
    text = 'def "a" (references = </b>) {}\ndef "b" (references = </a>) {}\n'
    with pytest.raises(InputError, match="does not compose"):
        load(tmp_path, text)


@pytest.mark.parametrize("option", ["variants", "motion_layer"])
def test_stages_that_are_opened_whole_are_counted(tmp_path, option):
    motion = (
        'over "W" {\n double3 xformOp:translate.timeSamples = { 0: (0, 0, 0), 1: (0, 0, 1) }\n}'
    )
    write_usda(tmp_path, motion, name="motion.usda")
    value = {"variants": ("/W:v=one",), "motion_layer": str(tmp_path / "motion.usda")}[option]
    with pytest.raises(InputError, match="composes to over"):
        load(tmp_path, doubled(24), **{option: value})


def test_the_question_whether_a_file_is_a_motion_does_not_compose_it(tmp_path):
    path = str(write_usda(tmp_path, doubled(24)))
    with pytest.raises(InputError, match="composes to over"):
        is_motion_only(path)


def test_prims_without_a_composed_parent_have_none(tmp_path):
    stage = open_whole(str(write_usda(tmp_path, BASE)))
    refuse_excessive_stage(stage, ["/nothing/below"], "s.usda")


def test_prims_of_instances_are_counted(tmp_path, monkeypatch):
    """An instancer multiplies the prims of its prototypes."""
    instancer = """def PointInstancer "i" {
 rel prototypes = [</a0>]
 int[] protoIndices = [0, 0, 0]
 point3f[] positions = [(0, 0, 0), (3, 0, 0), (6, 0, 0)]
}
"""
    monkeypatch.setattr(instancers, "MOST_PRIMS", 6)
    load(tmp_path, BASE + instancer)
    monkeypatch.setattr(instancers, "MOST_PRIMS", 5)
    with pytest.raises(InputError, match="instances have over 5 prims") as error:
        load(tmp_path, BASE + instancer)
    assert "</i>" in error.value.where
