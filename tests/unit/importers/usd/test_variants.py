"""`--variants`: what is selected is what is there, and what is not there is named with what is."""

import pytest
from pxr import Usd

import collidecli
from collidecli.errors import InputError
from collidecli.importers.usd.scene import add_usd
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import SceneOptions
from tests.support.usd_oracle import check_same_contacts
from tests.support.usd_scenes import BOTH, COLLIDER, check_refused, sphere, write_usda

GRIPPER = f"""
def Xform "robot" (
 variants = {{
  string gripper = "open"
 }}
 prepend variantSets = ["gripper", "tool"]
) {{
 {sphere("hand")}
 variantSet "gripper" = {{
  "open" {{
   def Cube "finger" {BOTH} {{
    double size = 0.5
   }}
  }}
  "closed" {{
   def Sphere "finger" {BOTH} {{
    double radius = 0.75
   }}
   def Xform "pad" (
    prepend variantSets = "shape"
   ) {{
    variantSet "shape" = {{
     "flat" {{
      def Cube "p" {COLLIDER} {{
      }}
     }}
     "none" {{
     }}
    }}
   }}
  }}
 }}
 variantSet "tool" = {{
  "drill" {{
   def Cylinder "drill" {BOTH} {{
   }}
  }}
 }}
}}
"""


def load(path, *variants):
    builder = ModelBuilder()
    scene = add_usd(builder, path, SceneOptions(variants=variants))
    return scene, builder.finalize()


@pytest.mark.parametrize(
    ("variants", "expected"),
    [
        ((), "finger hand"),
        (("/robot:gripper=open",), "finger hand"),
        (("/robot:gripper=closed",), "finger hand"),
        (("/robot:gripper=closed", "/robot:tool=drill"), "drill finger hand"),
        (("/robot:gripper=closed", "/robot/pad:shape=flat"), "finger hand p"),
        (("/robot:gripper=closed", "/robot/pad:shape=none"), "finger hand"),
    ],
)
def test_selected_as_pxr_selects(tmp_path, variants, expected):
    """The same shapes and contacts as in the flattened stage of a selection made through pxr itself."""
    path = write_usda(tmp_path, GRIPPER)
    ours = load(path, *variants)
    assert sorted(p.rsplit("/")[-1] for p in ours[1].shapes.path) == expected.split()
    stage = Usd.Stage.Open(str(path))
    for variant in variants:
        prim, _, chosen = variant.partition(":")
        name, _, value = chosen.partition("=")
        assert stage.GetPrimAtPath(prim).GetVariantSet(name).SetVariantSelection(value)
    stage.Flatten().Export(str(tmp_path / "flat.usda"))
    del stage  # its root layer is shared, and has the selection now
    theirs = load(tmp_path / "flat.usda")
    assert ours[1].shapes.path == theirs[1].shapes.path
    check_same_contacts(ours, theirs)


def test_files_stay_as_they_are(tmp_path):
    path = write_usda(tmp_path, GRIPPER)
    before = path.read_bytes()
    load(path, "/robot:gripper=closed")
    assert path.read_bytes() == before
    _, model = load(path)
    assert "box" in [shape.label for shape in model.shapes.types()]


def test_inside_an_instance(tmp_path):
    """Instances that share a prototype take different variants."""
    text = f'class "asset" {{\n{GRIPPER}}}\n'
    text += "".join(f'def "r{k}" (instanceable = true\n prepend references = </asset>) {{\n}}\n' for k in (0, 1))
    _, model = load(write_usda(tmp_path, text), "/r1/robot:gripper=closed")
    labels = dict(zip(model.shapes.path, (shape.label for shape in model.shapes.types()), strict=True))
    assert labels["/r0/robot/finger"] == "box"
    assert labels["/r1/robot/finger"] == "sphere"


def test_a_broken_reference_in_a_variant_that_is_not_selected(tmp_path):
    text = """def "r" (
     variants = { string v = "a" }
     prepend variantSets = "v"
    ) {
     variantSet "v" = {
      "a" ( references = @gone.usda@ ) {
      }
      "b" {
      }
     }
    }
    """
    path = write_usda(tmp_path, text + sphere("s"))
    assert load(path, "/r:v=b")[1].shapes.path == ("/s",)
    with pytest.raises(InputError, match=r"@gone\.usda@"):
        load(path)


@pytest.mark.parametrize(
    ("variants", "said"),
    [
        (("/gone:gripper=open",), ["</gone>", "does not exist", "prims with variants: /robot"]),
        (("/robot:hand=open",), ["</robot>", "no variant set 'hand'", "gripper, tool"]),
        (("/robot:gripper=shut",), ["</robot>", "no variant 'shut'", "closed, open"]),
        (("/robot/hand:gripper=shut",), ["</robot/hand>", "its variant sets: none"]),
        (("/robot:gripper",), ["'/robot:gripper' is not PRIM:SET=VALUE", "--variants"]),
        (("robot:gripper=open",), ["is not PRIM:SET=VALUE"]),
        (("/ro bot:gripper=open",), ["is not PRIM:SET=VALUE"]),
        (("/robot:gripper=",), ["is not PRIM:SET=VALUE"]),
        (("/robot/pad:shape=flat", "/robot:gripper=closed"), ["</robot/pad>", "does not exist"]),
        (("/robot:gripper=open", "/robot:gripper=closed"), ["given twice"]),
    ],
)
def test_refused_by_name(tmp_path, capfd, variants, said):
    path = write_usda(tmp_path, GRIPPER)
    check_refused(lambda: load(path, *variants), said, capfd)


def test_a_scene_without_variants_says_so(tmp_path):
    with pytest.raises(InputError, match="the scene has no variants"):
        load(write_usda(tmp_path, sphere("s")), "/t:v=a")


def test_from_python(tmp_path):
    builder = collidecli.ModelBuilder()
    builder.add_usd(write_usda(tmp_path, GRIPPER), variants=["/robot:tool=drill"])
    assert "/robot/drill" in builder.finalize().shapes.path
