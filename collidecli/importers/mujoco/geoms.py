"""Geoms of a compiled MuJoCo model, added to a builder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import SupportsIndex

import mujoco
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.mujoco.compile import CompiledScene
from collidecli.importers.mujoco.flexes import may_collide
from collidecli.importers.mujoco.materials import geom_material, is_overridden
from collidecli.importers.mujoco.meshes import OF_MESHES, GeomMeshes
from collidecli.importers.mujoco.shape_names import body_name
from collidecli.importers.mujoco_margins import (
    DEFLATED,
    is_deflated,
    legacy_note,
    margin_and_gap,
    may_be_legacy,
)
from collidecli.importers.visual_options import OPTION
from collidecli.numerics.pose_columns import WXYZ_TO_XYZW
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.heightfield import Heightfield, heightfield
from collidecli.scene.materials import Material
from collidecli.scene.model import STATIC_BODY
from collidecli.scene.option_values import GROUND
from collidecli.scene.options import SceneOptions
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import SIZE_COUNT, ShapeType
from collidecli.scene.solids import SOLIDS
from collidecli.wording import first_and_count, plural


def collision_disabled(mj_model: mujoco.MjModel) -> str | None:
    """The flag that disables all contacts of the scene, or None."""
    bits = mujoco.mjtDisableBit
    for bit, name in ((bits.mjDSBL_CONSTRAINT, "constraint"), (bits.mjDSBL_CONTACT, "contact")):
        if mj_model.opt.disableflags & bit:
            return f'<flag {name}="disable"/>'
    return None


LEFT_OUT = -1
_GEOM = mujoco.mjtGeom
SHAPE_OF = {
    int(getattr(_GEOM, name)): kind
    for kind in SOLIDS
    if hasattr(_GEOM, name := f"mjGEOM_{kind.name}")
}
SHAPE_OF |= {
    int(_GEOM.mjGEOM_HFIELD): ShapeType.HEIGHTFIELD,
    int(_GEOM.mjGEOM_MESH): ShapeType.CONVEX_MESH,
}


def geom_lengths(mj_model: mujoco.MjModel, geom: int) -> tuple[float, float]:
    """Margin and gap of a geom, as authored [m]."""
    margin = mj_model.geom_margin[geom]
    if is_overridden(mj_model):
        # a pair adds two margins, and MuJoCo applies o_margin to the pair
        margin = mj_model.opt.o_margin / 2.0
    return float(margin), float(mj_model.geom_gap[geom])


def pair_lengths(mj_model: mujoco.MjModel, pair: int) -> tuple[float, float]:
    """Margin and gap of a `<pair>`, as authored [m]."""
    margin = mj_model.opt.o_margin if is_overridden(mj_model) else mj_model.pair_margin[pair]
    return float(margin), float(mj_model.pair_gap[pair])


def margin_notes(
    mj_model: mujoco.MjModel, shape_row: np.ndarray, names: Sequence[str], meaning: str
) -> list[str]:
    """A note each about geoms and pairs whose margin may be of the other meaning, and whose surface
    is deflated."""
    if not (mj_model.geom_gap.any() or mj_model.pair_gap.any()):
        return []
    lengths: dict[str, tuple[float, float]] = {
        f"geom '{names[geom]}'": geom_lengths(mj_model, geom)
        for geom in np.flatnonzero(shape_row != LEFT_OUT).tolist()
    }
    for pair in range(mj_model.npair):
        of_pair = (names[int(geom[pair])] for geom in (mj_model.pair_geom1, mj_model.pair_geom2))
        lengths[f"<pair> of {' and '.join(repr(name) for name in of_pair)}"] = pair_lengths(
            mj_model, pair
        )
    notes = []
    legacy = {name: values for name, values in lengths.items() if may_be_legacy(*values, meaning)}
    if legacy:
        margin, _ = next(iter(legacy.values()))
        notes.append(f"{first_and_count(list(legacy))}: {legacy_note(margin)}")
    deflated = [name for name, values in lengths.items() if is_deflated(*values, meaning)]
    if deflated:
        notes.append(f"{first_and_count(deflated)}: {DEFLATED}")
    return notes


def _geom_pose(
    mj_model: mujoco.MjModel, data: mujoco.MjData, geom: int, is_static: bool
) -> tuple[float, ...]:
    """Position [m] and quaternion xyzw of a geom in its body; of a static one, in the world."""
    position = mj_model.geom_pos[geom]
    quaternion = mj_model.geom_quat[geom]
    if is_static:
        body = int(mj_model.geom_bodyid[geom])
        in_world = np.empty(3), np.empty(4)
        mujoco.mju_mulPose(*in_world, data.xpos[body], data.xquat[body], position, quaternion)
        position, quaternion = in_world
    return (*position, *quaternion[WXYZ_TO_XYZW])


@dataclass(frozen=True, eq=False)
class GeomShapes:
    """Shapes of geoms. row: int32[ngeom], a geom's first shape; LEFT_OUT for a geom left out.
    count: int32[ngeom], the number of its shapes, which have consecutive rows."""

    row: np.ndarray
    count: np.ndarray

    def of(self, geoms: Iterable[SupportsIndex]) -> list[int]:
        """Rows of the shapes of some geoms."""
        return [
            shape
            for geom in geoms
            for shape in range(int(self.row[geom]), int(self.row[geom] + self.count[geom]))
        ]


def add_geoms(
    builder: ModelBuilder,
    mj_model: mujoco.MjModel,
    data: mujoco.MjData,
    static: np.ndarray,
    body_row: np.ndarray,
    location: str,
    names: Sequence[str],
    meshes: GeomMeshes,
    meaning: str = "",
) -> tuple[GeomShapes, tuple[str, ...]]:
    """The shapes of all geoms, and the names of geoms that are left out.

    names: of geoms. meshes: makes the colliders of meshes. meaning: of margins, see
    `margin_and_gap`.
    """
    shapes = GeomShapes(
        np.full(mj_model.ngeom, LEFT_OUT, np.int32), np.zeros(mj_model.ngeom, np.int32)
    )
    left_out = []
    fields: dict[int, Heightfield] = {}
    paired = set(mj_model.pair_geom1) | set(mj_model.pair_geom2)
    disabled = collision_disabled(mj_model)
    # Equal materials are one object, which is checked once.
    materials: dict[Material, Material] = {}
    for geom in range(mj_model.ngeom):
        name = names[geom]
        if not (mj_model.geom_contype[geom] or mj_model.geom_conaffinity[geom] or geom in paired):
            left_out.append(name)
            continue
        body = int(mj_model.geom_bodyid[geom])
        row = STATIC_BODY if static[body] else int(body_row[body])
        pose = _geom_pose(mj_model, data, geom, bool(static[body]))
        material = geom_material(mj_model, geom)
        material = materials.setdefault(material, material)
        config = _geom_config(mj_model, geom, material, meaning, disabled)
        kind = int(mj_model.geom_type[geom])
        first = builder.shape_count
        if kind in OF_MESHES:
            collider = meshes.collider(geom, name, body_name(mj_model, body))
            if collider is None:
                left_out.append(name)
                continue
            collider.add(builder, row, pose, config, name)
        elif kind == int(_GEOM.mjGEOM_HFIELD):
            field = int(mj_model.geom_dataid[geom])
            if field not in fields:
                fields[field] = hfield_surface(mj_model, field, f"geom '{name}'")
            builder.add_shape_heightfield(row, fields[field], xform=pose, cfg=config, key=name)
        else:
            shape_type = _shape_type(kind, name, location)
            size = tuple(mj_model.geom_size[geom][: SIZE_COUNT[shape_type]])
            builder.add_shape(row, shape_type, size, pose, config, name)
        shapes.row[geom] = first
        shapes.count[geom] = builder.shape_count - first
    return shapes, tuple(left_out)


def _geom_config(
    mj_model: mujoco.MjModel, geom: int, material: Material, meaning: str, disabled: str | None
) -> ShapeConfig:
    """Lengths, material and masks of a geom. meaning: of margins. disabled: the rule by which the
    scene has no collision, or None."""
    # As unsigned: a bit pattern, independent of the sign in the file.
    masks = (
        int(mj_model.geom_contype[geom]) & 0xFFFFFFFF,
        int(mj_model.geom_conaffinity[geom]) & 0xFFFFFFFF,
    )
    margin, gap = margin_and_gap(*geom_lengths(mj_model, geom), meaning)
    return ShapeConfig(
        margin=margin,
        gap=gap,
        material=material,
        mask_either=masks,
        disabled_rule=disabled,
    )


def check_geometry(
    compiled: CompiledScene,
    shape_row: np.ndarray,
    options: SceneOptions,
    visuals_left_out: Sequence[str] = (),
) -> None:
    """Raises InputError for a scene of which nothing can collide.

    shape_row: of each geom, LEFT_OUT for one that cannot. The plane of `--ground` does not count.
    visuals_left_out: a warning about chosen visuals that cannot collide.
    """
    mj_model = compiled.mj_model
    kept = np.flatnonzero(shape_row != LEFT_OUT)
    of_scene = [
        geom for geom in kept if not (options.ground and mj_model.geom(geom).name == GROUND)
    ]
    if of_scene or any(may_collide(mj_model, flex) for flex in range(mj_model.nflex)):
        return
    what = "the scene has no collision geometry"
    if visuals_left_out:
        raise InputError(
            f"{what}; {'; '.join(visuals_left_out)}", compiled.location, "correct them"
        )
    fix = "add <collision> to the links that should collide"
    if not compiled.urdf:
        fix = "add contype and conaffinity to the geoms that should collide"
        if mj_model.ngeom - len(kept):
            what += f": none of its {plural(mj_model.ngeom - len(kept), 'geom')} can collide"
        else:
            what += ": it has no geom"
            fix = "give the scene that includes it if it is a part of one, or add geoms"
    if compiled.visual_count:
        visuals = plural(compiled.visual_count, "visual mesh or shape", "visual meshes and shapes")
        fix += f", or give {OPTION} '*' or a pattern of its {visuals}"
    raise InputError(what, compiled.location, fix)


def hfield_surface(mj_model: mujoco.MjModel, field: int, where: str) -> Heightfield:
    """A compiled hfield, in the frame of its geoms: elevations are fractions of its height, and 0
    is at z = 0.

    The array refers to MuJoCo's data. Raises InputError with `where` and the hfield for data that
    is not finite.
    """
    first, rows, cols = (
        int(array[field])
        for array in (mj_model.hfield_adr, mj_model.hfield_nrow, mj_model.hfield_ncol)
    )
    half_x, half_y, height, base = mj_model.hfield_size[field].tolist()
    data = mj_model.hfield_data[first : first + rows * cols].reshape(rows, cols)
    name = mj_model.hfield(field).name
    where = f"{where}, hfield '{name}'" if name else where
    return heightfield(data, half_x, half_y, base, where, scale=height, bottom=-base)


def _shape_type(kind: int, name: str, location: str) -> ShapeType:
    shape_type = SHAPE_OF.get(kind)
    if shape_type is None:
        raise InputError(
            f"geom '{name}' is a geom of an unknown type that may collide, which is not handled",
            location,
            'replace it by primitives, or give it contype="0" conaffinity="0" if it is visual only',
        )
    return shape_type
