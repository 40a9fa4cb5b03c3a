"""Meshes of USD stages with a signed distance field: what PhysX's and Newton's attributes make of it."""

import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.scene.shape_types import ShapeType
from tests.support.usd_meshes import APIS, BODY_APIS, CUBE_FACES, CUBE_POINTS, mesh
from tests.support.usd_scenes import load

NEWTON = APIS.replace("]", ', "NewtonSDFCollisionAPI"]')
PHYSX = "physxSDFMeshCollision:"
BRICK = CUBE_POINTS * [2.0, 1.0, 0.5]
DIAGONAL = 2.0 * np.sqrt(4.0 + 1.0 + 0.25)


def sdf(inside: str = "", apis: str = APIS, approximation: str = "sdf", faces=CUBE_FACES) -> str:
    return mesh("m", BRICK, faces, approximation, inside, apis)


@pytest.mark.parametrize(
    ("text", "voxel", "band"),
    [
        # PhysX's own defaults, and its numbers: of the longest side, and of the diagonal.
        (sdf(), 4.0 / 256, (-0.01 * DIAGONAL, 0.01 * DIAGONAL)),
        (sdf(f"uniform int {PHYSX}sdfResolution = 100"), 4.0 / 100, (-0.01 * DIAGONAL, 0.01 * DIAGONAL)),
        (sdf(f"uniform int {PHYSX}sdfResolution = 64\nuniform float {PHYSX}sdfNarrowBandThickness = 0.125"),
         4.0 / 64, (-0.125 * DIAGONAL, 0.125 * DIAGONAL)),
        # Newton's, in the stage's units.
        (sdf(apis=NEWTON, approximation=""), 4.0 / 64, (-0.1, 0.1)),
        (sdf("uniform int newton:sdfMaxResolution = 32\nfloat newton:sdfNarrowBandInner = -4", NEWTON, "none"),
         4.0 / 32, (-4.0, 0.1)),
        (sdf("uniform float newton:sdfTargetVoxelSize = 0.25\nfloat newton:sdfNarrowBandOuter = 2", NEWTON),
         0.25, (-0.1, 2.0)),
        (sdf("uniform float newton:sdfTargetVoxelSize = -inf", NEWTON), 4.0 / 64, (-0.1, 0.1)),
    ],
)  # fmt: skip
def test_what_is_asked_of_a_field(tmp_path, text, voxel, band):
    scene, model = load(tmp_path, text)
    assert model.shapes.types() == [ShapeType.MESH]
    (field,) = model.sdfs
    assert field.voxel == pytest.approx(voxel, rel=1e-7)  # authored in float32
    assert field.band == pytest.approx(band, rel=1e-7)
    assert scene.warnings == ()
    assert not scene.kept.get("/m")


def test_lengths_are_those_of_the_stage_and_scales_go_into_the_points(tmp_path):
    scaled = 'double3 xformOp:scale = (1, 1, -10)\nuniform token[] xformOpOrder = ["xformOp:scale"]\n'
    text = sdf(f"{scaled}uniform float newton:sdfTargetVoxelSize = 0.5\nfloat newton:sdfNarrowBandInner = -3", NEWTON)
    _, model = load(tmp_path, text, header='metersPerUnit = 0.01\nupAxis = "Z"')
    (field,) = model.sdfs
    assert (field.voxel, field.band[0]) == (pytest.approx(0.005), pytest.approx(-0.03))
    np.testing.assert_allclose(field.surface.half_extents, (0.02, 0.01, 0.05))
    assert field.surface.volume > 0.0
    _, model = load(tmp_path, sdf(f"{scaled}uniform int {PHYSX}sdfResolution = 40"))
    assert model.sdfs[0].voxel == pytest.approx(10.0 / 40)


def test_equal_meshes_share_a_field_and_the_triangles_with_those_that_have_none(tmp_path):
    texts = [mesh(name, BRICK, approximation="sdf", apis=BODY_APIS) for name in "ab"]
    _, model = load(tmp_path, "".join(texts) + mesh("c", BRICK, approximation="none"))
    assert (len(model.sdfs), len(model.meshes)) == (1, 1)
    assert sorted(model.shapes.sdf.tolist()) == [-1, 0, 0]


def test_what_is_not_honoured_is_warned_of(tmp_path):
    inside = (
        f"uniform int {PHYSX}sdfResolution = 64\nuniform float {PHYSX}sdfMargin = 0.5\n"
        f"uniform int {PHYSX}sdfSubgridResolution = 6\nuniform bool {PHYSX}sdfEnableRemeshing = false\n"
        "uniform int newton:sdfMaxResolution = 32\nuniform float newton:sdfTargetVoxelSize = 0.5\n"
        "uniform float newton:sdfPadding = 1"
    )
    scene, model = load(tmp_path, sdf(inside, NEWTON, "convexHull", CUBE_FACES[1:]))
    assert model.sdfs[0].voxel == 0.5
    assert set(scene.warnings) == {
        "</m>: physics:approximation = convexHull is ignored where NewtonSDFCollisionAPI is applied",
        "</m>: newton:sdfMaxResolution is ignored where newton:sdfTargetVoxelSize is authored",
        f"</m>: {PHYSX}sdfResolution is ignored where newton:sdfTargetVoxelSize is authored",
        f"</m>: {PHYSX}sdfMargin is not used",
        f"</m>: {PHYSX}sdfSubgridResolution is not used",
        "</m>: newton:sdfPadding is not used",
        "</m>: its surface is not closed; its signed distance field treats it as solid, closed at its openings",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (sdf("uniform int newton:sdfMaxResolution = 20", NEWTON), "newton:sdfMaxResolution is 20"),
        (sdf(f"uniform int {PHYSX}sdfResolution = 0"), f"{PHYSX}sdfResolution is 0"),
        (sdf(f"uniform int {PHYSX}sdfResolution = 10000"), f"{PHYSX}sdfResolution is 10000"),
        (sdf(f"uniform float {PHYSX}sdfNarrowBandThickness = 0"), "sdfNarrowBandThickness is 0"),
        (sdf(f"uniform float {PHYSX}sdfNarrowBandThickness = nan"), "sdfNarrowBandThickness is nan"),
        (sdf("float newton:sdfNarrowBandInner = 0", NEWTON), "newton:sdfNarrowBandInner is 0"),
        (sdf("float newton:sdfNarrowBandOuter = -1", NEWTON), "newton:sdfNarrowBandOuter -1"),
        (sdf("uniform float newton:sdfTargetVoxelSize = 1e-6", NEWTON), "sdf_target_voxel_size"),
    ],
)
def test_refused_by_name(tmp_path, text, said):
    with pytest.raises(InputError) as error:
        load(tmp_path, text)
    assert said in str(error.value)
    assert "/m" in str(error.value)
