"""Stages whose arcs multiply: counted, and refused, before USD composes them."""

from pathlib import Path

import pytest
from pxr import Usd

from collidecli.errors import InputError
from collidecli.importers.usd import expected_prims, instancers
from collidecli.importers.usd.expected_prims import MOST_ARCS, open_whole, refuse_excessive_stage
from collidecli.importers.usd.layers import is_motion_only
from tests.support.usd_scenes import COLLIDER, METRES, at, load, write_usda

BASE = f'def Scope "a0" {{\n def Cube "c" {COLLIDER} {{}}\n}}\n'


def doubled(times: int, arc: str = "references", more: str = "") -> str:
    """A scene in which each prim has two children with an arc to the prim before."""
    texts = [BASE]
    for k in range(times):
        child = f"({arc} = </K/a{k}>\n {more})"
        pair = f'def "x" {child} {{}}\n def "y" {child} {{}}'
        texts.append(f'def Scope "a{k + 1}" {{\n {pair}\n}}\n')
    return f'class "K" {{\n{"".join(texts)}}}\ndef Xform "W" ({arc} = </K/a{times}>) {{}}\n'


def composed(stage: Usd.Stage) -> int:
    """The number of prims that a traversal meets, with the root, abstract ones and those of
    instances."""
    predicate = Usd.TraverseInstanceProxies(Usd.PrimAllPrimsPredicate)
    return 1 + sum(1 for _ in Usd.PrimRange.Stage(stage, predicate))


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
    count = composed(stage)
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


def split_doubled(folder: Path, times: int) -> Path:
    """`doubled` over two sublayers, of which each has every second prim."""
    texts = ["", ""]
    for k in range(times):
        pair = "".join(f'def "{name}" (references = </K/a{k}>) {{}}\n' for name in "xy")
        texts[k % 2] += f'def Scope "a{k + 1}" {{\n {pair}}}\n'
    for name, text in zip("ab", texts, strict=True):
        write_usda(
            folder, f'class "K" {{\n{BASE if name == "a" else ""}{text}}}', name=f"{name}.usda"
        )
    header = f"{METRES}\n subLayers = [@a.usda@, @b.usda@]"
    return write_usda(folder, f'def Xform "W" (references = </K/a{times}>) {{}}', header)


def through_ancestors(times: int) -> str:
    """`doubled` where the target of each arc is a child that its parent's reference brings."""
    texts = [f'def "P0" {{\n{BASE.replace("a0", "n")}}}\ndef "W0" (references = </P0>) {{}}\n']
    for k in range(times):
        pair = "".join(f'def "{name}" (references = </K/W{k}/n>) {{}}\n' for name in "xy")
        texts.append(f'def "P{k + 1}" {{\n def "n" {{\n{pair}}}\n}}\n')
        texts.append(f'def "W{k + 1}" (references = </K/P{k + 1}>) {{}}\n')
    text = "".join(texts).replace("</P0>", "</K/P0>")
    return f'class "K" {{\n{text}}}\ndef Xform "W" (references = </K/W{times}/n>) {{}}\n'


@pytest.mark.parametrize("kind", ["sublayers", "ancestors"])
def test_doubling_by_other_layers_or_ancestors(tmp_path, kind, monkeypatch):
    """The count is that of the prims that are composed, and many of them are refused."""

    def path(times: int) -> Path:
        folder = tmp_path / str(times)
        folder.mkdir()
        if kind == "sublayers":
            return split_doubled(folder, times)
        return write_usda(folder, through_ancestors(times))

    few = path(4)
    count = composed(Usd.Stage.Open(str(few)))
    monkeypatch.setattr(expected_prims, "MOST_PRIMS", count)
    load(tmp_path, few)
    monkeypatch.setattr(expected_prims, "MOST_PRIMS", count - 1)
    with pytest.raises(InputError, match="composes to over"):
        load(tmp_path, few)
    monkeypatch.setattr(expected_prims, "MOST_PRIMS", 2_000_000)
    with pytest.raises(InputError, match=r"composes to over 2,000,000 prims"):
        load(tmp_path, path(24))


@pytest.mark.parametrize("arcs", ["</a/b>", "[</a/b>, </a/c>]"])
def test_references_to_children_that_have_no_end(tmp_path, arcs):
    """Of prims below themselves the count ends; the composition refuses them."""
    text = f'def "a" (references = {arcs}) {{}}\ndef "b" (references = {arcs}) {{}}\n'
    ring = text.replace('"b"', '"d"') + 'def "e" (references = </d/f>) {}\n'
    with pytest.raises(InputError, match="does not compose"):
        load(tmp_path, ring)


def scene_of_sublayers(folder: Path, sublayers: int) -> Path:
    """Environments that reference a robot with variants and instances; each sublayer has an `over`
    of each of their prims, and names the reference again."""
    links = "".join(
        f'def Xform "l{k}" (references = </Link>\n instanceable = true) {{}}\n' for k in range(5)
    )
    sets = "".join(f'"{name}" {{\n def Cube "{name}" {COLLIDER} {{}}\n}}\n' for name in ("x", "y"))
    chosen = 'variants = { string v = "x" }\n prepend variantSets = "v"'
    robot = f'def Xform "R" ({chosen}) {{\n{links}variantSet "v" = {{\n{sets}}}\n}}\n'
    part = f'def Xform "Link" {{\n{BASE}}}\n{robot}'
    write_usda(folder, part, f'{METRES}\n defaultPrim = "R"', "robot.usda")
    reference = "prepend references = @robot.usda@"
    for layer in range(sublayers):
        overs = "".join(f'over "l{k}" {{}}\n' for k in range(5))
        envs = "".join(f'over "e{k}" ({reference}) {{\n{overs}}}\n' for k in range(20))
        world = f'over "World" {{\n over "envs" {{\n{envs}}}\n}}\n'
        write_usda(folder, world, name=f"o{layer}.usda")
    envs = "".join(f'def Xform "e{k}" ({reference}) {{\n{at(9 * k, 0, 0)}}}\n' for k in range(20))
    names = ", ".join(f"@o{layer}.usda@" for layer in range(sublayers))
    world = f'def Xform "World" {{\ndef Xform "envs" {{\n{envs}}}\n}}\n'
    return write_usda(folder, world, f"{METRES}\n subLayers = [{names}]")


@pytest.mark.parametrize("pattern", ["none", "/World/envs/e*"])
def test_overs_of_sublayers_count_once(tmp_path, pattern, monkeypatch):
    """Of a prim with specs in two layer stacks each counts it: at most twice the prims that are
    traversed, however many sublayers have specs of it."""
    path = scene_of_sublayers(tmp_path, 6)
    most = 2 * composed(Usd.Stage.Open(str(path)))
    if pattern != "none":
        most = most // 20 + 20
    monkeypatch.setattr(expected_prims, "MOST_PRIMS", most)
    imported, _ = load(tmp_path, path, environments=pattern)
    assert imported.shape_of


def test_a_stronger_layer_edits_the_arcs_of_a_weaker_one(tmp_path, monkeypatch):
    """References that a stronger layer deletes are not counted."""
    many = "".join(f'def "m{k}" {{}}\n' for k in range(50))
    weak = f'class "M" {{\n{many}}}\ndef "a" (prepend references = </M>) {{}}\n{BASE}'
    write_usda(tmp_path, weak, name="weak.usda")
    text = 'over "a" (delete references = </M>) {}\n'
    path = write_usda(tmp_path, text, f"{METRES}\n subLayers = [@weak.usda@]")
    monkeypatch.setattr(expected_prims, "MOST_PRIMS", composed(Usd.Stage.Open(str(path))))
    load(tmp_path, path)


def test_default_prims_below_a_root_prim(tmp_path, capfd, monkeypatch):
    """A default prim may be a path; the count prints nothing of USD's own."""
    header = f'{METRES}\n defaultPrim = "/Y/a0"'
    write_usda(tmp_path, f'def Xform "Y" {{\n{BASE}}}\n', header, "part.usda")
    path = write_usda(tmp_path, 'def Xform "W" (references = @part.usda@) {}')
    monkeypatch.setattr(expected_prims, "MOST_PRIMS", 3)
    load(tmp_path, path)
    monkeypatch.setattr(expected_prims, "MOST_PRIMS", 2)
    with pytest.raises(InputError, match="composes to over 2 prims"):
        load(tmp_path, path)
    assert capfd.readouterr() == ("", "")


def test_files_without_a_default_prim_add_none(tmp_path, capfd):
    write_usda(tmp_path, BASE, name="part.usda")
    path = write_usda(tmp_path, 'def Xform "W" (references = @part.usda@) {}')
    stage = Usd.Stage.OpenMasked(str(path), Usd.StagePopulationMask())
    refuse_excessive_stage(stage, ["/"], "s.usda")
    assert capfd.readouterr() == ("", "")


def test_prims_of_other_files_are_counted(tmp_path, monkeypatch):
    """A reference without a path is to the file's default prim; a file that is not there is
    reported by the composition."""
    write_usda(tmp_path, BASE, 'metersPerUnit = 1\n defaultPrim = "a0"', "part.usda")
    pair = "".join(f'def Xform "{name}" (references = @part.usda@) {{}}\n' for name in "xy")
    path = write_usda(tmp_path, pair)
    load(tmp_path, path)
    monkeypatch.setattr(expected_prims, "MOST_PRIMS", 4)
    with pytest.raises(InputError, match="composes to over 4 prims"):
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
