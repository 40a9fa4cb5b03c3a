"""Geoms, materials and pairs of a compiled MuJoCo model, added to a builder.

Meshes become the convex hulls that MuJoCo uses for collision. MuJoCo moves a mesh to its inertial
frame when it compiles it, and compensates in the geom's compiled pose: compiled vertices in the
compiled frame of the geom have the positions of the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from types import MappingProxyType

import mujoco
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.hull_cache import cached_hull
from collidecli.importers.limited_hull import hull_vertices
from collidecli.importers.mujoco.compile import CompiledScene
from collidecli.importers.mujoco.flexes import may_collide
from collidecli.importers.mujoco_margins import (
    DEFLATED,
    is_deflated,
    legacy_note,
    margin_and_gap,
    may_be_legacy,
)
from collidecli.numerics.pose_columns import WXYZ_TO_XYZW
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.heightfield import Heightfield, heightfield
from collidecli.scene.materials import Material, PairMaterial
from collidecli.scene.model import STATIC_BODY
from collidecli.scene.options import GROUND, SceneOptions
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import SIZE_COUNT, ShapeType
from collidecli.scene.solids import SOLIDS
from collidecli.wording import first_and_count, plural


def geom_material(mj_model: mujoco.MjModel, geom: int) -> Material:
    """The surface of a geom; with the flag "override", that of the option's o_friction, o_solref
    and o_solimp.

    Static and sliding friction are equal: MuJoCo has a single coefficient.
    """
    friction = mj_model.geom_friction[geom]
    solref = mj_model.geom_solref[geom]
    solimp = mj_model.geom_solimp[geom]
    solmix = mj_model.geom_solmix[geom]
    if _is_overridden(mj_model):
        friction = mj_model.opt.o_friction[[0, 2, 3]]
        # Equal in every geom, so that any mixture equals the option; different weights would round.
        solref = mj_model.opt.o_solref
        solimp = mj_model.opt.o_solimp
        solmix = 1.0
    return Material(
        friction=float(friction[0]),
        torsional_friction=float(friction[1]),
        rolling_friction=float(friction[2]),
        condim=int(mj_model.geom_condim[geom]),
        priority=int(mj_model.geom_priority[geom]),
        solmix=float(solmix),
        solref=_floats(solref),
        solimp=_floats(solimp),
    )


def pair_material(mj_model: mujoco.MjModel, pair: int) -> PairMaterial:
    """The parameters of a `<pair>`, which replace those of its two geoms; the compiler has set all
    of them."""
    of_pairs = mj_model.pair_friction, mj_model.pair_solref, mj_model.pair_solimp
    friction, solref, solimp = (values[pair] for values in of_pairs)
    if _is_overridden(mj_model):
        friction = mj_model.opt.o_friction
        solref = mj_model.opt.o_solref
        solimp = mj_model.opt.o_solimp
    return PairMaterial(
        condim=int(mj_model.pair_dim[pair]),
        friction=_floats(friction),
        solref=_floats(solref),
        solimp=_floats(solimp),
    )


def material_warnings(mj_model: mujoco.MjModel) -> list[str]:
    """Warnings about contact parameters of the scene that a contact set cannot store."""
    o_friction = mj_model.opt.o_friction
    warnings = []
    if _is_overridden(mj_model) and (
        o_friction[0] != o_friction[1] or o_friction[3] != o_friction[4]
    ):
        shown = " ".join(f"{value:g}" for value in o_friction)
        warnings.append(
            f"o_friction is {shown}: outside <pair> the first of two directions is used for both"
        )
    for pair in range(mj_model.npair):
        if mj_model.pair_solreffriction[pair].any():
            geoms = (
                mj_model.geom(int(g)).name
                for g in (mj_model.pair_geom1[pair], mj_model.pair_geom2[pair])
            )
            shown = " and ".join(f"'{name}'" for name in geoms)
            warnings.append(
                f"solreffriction of the <pair> of {shown} is not stored in a contact set"
            )
    return warnings


def _is_overridden(mj_model: mujoco.MjModel) -> bool:
    return bool(mj_model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_OVERRIDE)


def _floats(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


_PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)


def collision_disabled(mj_model: mujoco.MjModel) -> str | None:
    """The flag that disables all contacts of the scene, or None."""
    bits = mujoco.mjtDisableBit
    for bit, name in ((bits.mjDSBL_CONSTRAINT, "constraint"), (bits.mjDSBL_CONTACT, "contact")):
        if mj_model.opt.disableflags & bit:
            return f'<flag {name}="disable"/>'
    return None


def add_pair_rules(
    builder: ModelBuilder,
    mj_model: mujoco.MjModel,
    shape_row: np.ndarray,
    disabled: Mapping[tuple[int, int], str] = MappingProxyType({}),
    meaning: str = "",
) -> list[str]:
    """Filters and forces pairs of shapes as MuJoCo does; returns warnings.

    The builder applies its own rules for masks, shapes of one body and the static world: a pair
    that is filtered by masks is not listed. shape_row: int32[ngeom], -1 for a geom left out.
    disabled: pairs of shapes, lower row first, that are filtered even where the scene forces them,
    with their rules. meaning: of margins, see `margin_and_gap`.
    """
    warnings = []
    flag = collision_disabled(mj_model)
    if flag is not None:
        warnings.append(f"the scene disables every contact with {flag}")
    for bit, name in (
        (mujoco.mjtEnableBit.mjENBL_SPECULATIVE, "speculative"),
        (mujoco.mjtEnableBit.mjENBL_IPC, "ipc"),
    ):
        if mj_model.opt.enableflags & bit:
            warnings.append(
                f'<flag {name}="enable"/> has no effect: contacts depend on margin and gap'
            )
    if collision_disabled(mj_model) is None:
        warnings += _force_pairs(builder, mj_model, shape_row, disabled, meaning)
    for pair, rule in disabled.items():
        builder.add_shape_collision_filter_pair(*pair, rule=rule)
    seen: set[tuple[int, int]] = set()
    for first, second, rule in _ruled_groups(mj_model):
        for pair in _mask_compatible(mj_model, shape_row, first, second):
            if pair not in seen:
                seen.add(pair)
                builder.add_shape_collision_filter_pair(*pair, rule=rule)
    return warnings


def _ruled_groups(mj_model: mujoco.MjModel) -> Iterator[tuple[np.ndarray, np.ndarray, str]]:
    """Two groups of geoms that do not collide, and the rule: excludes, welds, parents, bodies
    without freedom."""
    name = [body_name(mj_model, body) for body in range(mj_model.nbody)]
    of_body = _groups(mj_model.geom_bodyid, mj_model.nbody)
    for row, signature in enumerate(mj_model.exclude_signature):
        a = int(signature) >> 16
        b = int(signature) & 0xFFFF
        title = mj_model.exclude(row).name
        yield (
            of_body[a],
            of_body[b],
            f"<exclude{f' {title}' if title else ''}> of '{name[a]}' and '{name[b]}'",
        )

    weld_of_geom = mj_model.body_weldid[mj_model.geom_bodyid]
    of_weld = _groups(weld_of_geom, mj_model.nbody)
    filter_parent = not mj_model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT
    for weld in _values(weld_of_geom[weld_of_geom > 0]):
        members = of_weld[weld]
        bodies = _values(mj_model.geom_bodyid[members])
        for k, body in enumerate(bodies[:-1]):
            others = members[np.isin(mj_model.geom_bodyid[members], bodies[k + 1 :])]
            yield of_body[body], others, f"welded into one body, '{name[weld]}'"
        parent = int(mj_model.body_weldid[mj_model.body_parentid[weld]])
        if filter_parent and parent > 0:
            yield (
                members,
                of_weld[parent],
                f"'{name[weld]}' is the child of '{name[parent]}' (filterparent)",
            )

    # Mocap bodies and bodies welded to them have no degree of freedom, nor has the static world.
    still = _values(weld_of_geom[mj_model.body_treeid[mj_model.geom_bodyid] < 0])
    for k, weld in enumerate(still):
        others = [of_weld[other] for other in still[k + 1 :]]
        if others:
            yield of_weld[weld], np.concatenate(others), "neither body has a degree of freedom"


def _values(key: np.ndarray) -> list[int]:
    """The values in `key`, ascending, each once. NumPy's `unique` would import masked arrays."""
    return sorted(set(key.tolist()))


def _groups(key: np.ndarray, count: int) -> list[np.ndarray]:
    order = np.argsort(key, kind="stable")
    return np.split(order, np.searchsorted(key[order], np.arange(1, count)))


def _mask_compatible(
    mj_model: mujoco.MjModel, shape_row: np.ndarray, first: np.ndarray, second: np.ndarray
) -> Iterator[tuple[int, int]]:
    """Pairs of shape rows, lower first, across two groups of geoms whose masks permit a contact."""
    second = second[shape_row[second] >= 0]
    for geom in first[shape_row[first] >= 0]:
        permitted = mj_model.geom_contype[geom] & mj_model.geom_conaffinity[second]
        permitted |= mj_model.geom_contype[second] & mj_model.geom_conaffinity[geom]
        a = int(shape_row[geom])
        for b in shape_row[second[permitted != 0]].tolist():
            if a != b:
                yield (a, b) if a < b else (b, a)


def _force_pairs(
    builder: ModelBuilder,
    mj_model: mujoco.MjModel,
    shape_row: np.ndarray,
    disabled: Container[tuple[int, int]],
    meaning: str,
) -> list[str]:
    """Forces the shapes of every <pair>; of several for two geoms, the one with the largest margin
    + gap.

    meaning: of margins, see `margin_and_gap`.
    """
    if mj_model.npair and mj_model.nbody < 2:
        return ["every <pair> is ignored: without a body MuJoCo finds no contact"]
    extent: dict[tuple[int, int], tuple[float, float, int]] = {}
    warnings = []
    for row in range(mj_model.npair):
        geoms = int(mj_model.pair_geom1[row]), int(mj_model.pair_geom2[row])
        shown = " and ".join(f"'{mj_model.geom(g).name}'" for g in geoms)
        if all(mj_model.geom_type[g] == _PLANE for g in geoms):
            warnings.append(f"<pair> of {shown} is ignored: two planes make no contact")
            continue
        margin, gap = margin_and_gap(*pair_lengths(mj_model, row), meaning)
        a, b = sorted(int(shape_row[g]) for g in geoms)
        if (a, b) in disabled:
            continue
        if (a, b) in extent:
            warnings.append(
                f"<pair> of {shown} is given more than once; the one with the largest margin + gap"
                " is used"
            )
            if sum(extent[a, b][:2]) >= margin + gap:
                continue
        extent[a, b] = margin, gap, row
    for (a, b), (margin, gap, row) in extent.items():
        builder.add_shape_forced_pair(
            a, b, gap=gap, margin=margin, material=pair_material(mj_model, row)
        )
    return warnings


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
_UNHANDLED = {int(_GEOM.mjGEOM_SDF): "sdf"}


def body_name(mj_model: mujoco.MjModel, body: int) -> str:
    """A body's name, or `body#<id>`."""
    return mj_model.body(body).name or f"body#{body}"


def geom_name(mj_model: mujoco.MjModel, geom: int) -> str:
    """A geom's name, or `<body>/geom#<id>`."""
    return (
        mj_model.geom(geom).name
        or f"{body_name(mj_model, int(mj_model.geom_bodyid[geom]))}/geom#{geom}"
    )


def urdf_shape_names(mj_model: mujoco.MjModel) -> list[str]:
    """A name for each geom of a URDF scene: that of its collision element, or
    `<link>/collision#<k>`.

    k counts the link's collision elements from 0, including named ones. Visual elements, if MuJoCo
    has kept them, are `<link>/visual#<k>`.
    """
    seen: Counter[tuple[int, str]] = Counter()
    names = []
    for geom in range(mj_model.ngeom):
        body = int(mj_model.geom_bodyid[geom])
        kind = (
            "collision"
            if mj_model.geom_contype[geom] or mj_model.geom_conaffinity[geom]
            else "visual"
        )
        names.append(
            mj_model.geom(geom).name or f"{mj_model.body(body).name}/{kind}#{seen[body, kind]}"
        )
        seen[body, kind] += 1
    return names


def geom_lengths(mj_model: mujoco.MjModel, geom: int) -> tuple[float, float]:
    """Margin and gap of a geom, as authored [m]."""
    margin = mj_model.geom_margin[geom]
    if _is_overridden(mj_model):
        # a pair adds two margins, and MuJoCo applies o_margin to the pair
        margin = mj_model.opt.o_margin / 2.0
    return float(margin), float(mj_model.geom_gap[geom])


def pair_lengths(mj_model: mujoco.MjModel, pair: int) -> tuple[float, float]:
    """Margin and gap of a `<pair>`, as authored [m]."""
    margin = mj_model.opt.o_margin if _is_overridden(mj_model) else mj_model.pair_margin[pair]
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


def add_geoms(
    builder: ModelBuilder,
    mj_model: mujoco.MjModel,
    data: mujoco.MjData,
    static: np.ndarray,
    body_row: np.ndarray,
    location: str,
    names: Sequence[str],
    meaning: str = "",
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Shape row of each geom, -1 for one left out, and the names of those left out.

    names: of geoms. meaning: of margins, see `margin_and_gap`.
    """
    shape_row = np.full(mj_model.ngeom, LEFT_OUT, np.int32)
    left_out = []
    hulls: dict[int, ConvexHull] = {}
    fields: dict[int, Heightfield] = {}
    paired = set(mj_model.pair_geom1) | set(mj_model.pair_geom2)
    disabled = collision_disabled(mj_model)
    for geom in range(mj_model.ngeom):
        name = names[geom]
        if not (mj_model.geom_contype[geom] or mj_model.geom_conaffinity[geom] or geom in paired):
            left_out.append(name)
            continue
        shape_type = _shape_type(int(mj_model.geom_type[geom]), name, location)
        body = int(mj_model.geom_bodyid[geom])
        row = STATIC_BODY if static[body] else int(body_row[body])
        pose = _geom_pose(mj_model, data, geom, bool(static[body]))
        # As unsigned: a bit pattern, independent of the sign in the file.
        masks = (
            int(mj_model.geom_contype[geom]) & 0xFFFFFFFF,
            int(mj_model.geom_conaffinity[geom]) & 0xFFFFFFFF,
        )
        margin, gap = margin_and_gap(*geom_lengths(mj_model, geom), meaning)
        config = ShapeConfig(
            margin=margin,
            gap=gap,
            material=geom_material(mj_model, geom),
            mask_either=masks,
            disabled_rule=disabled,
        )
        if shape_type == ShapeType.CONVEX_MESH:
            mesh = int(mj_model.geom_dataid[geom])
            if mesh not in hulls:
                hulls[mesh] = mesh_hull(mj_model, mesh, f"geom '{name}'")
            shape_row[geom] = builder.add_shape_convex_hull(row, hulls[mesh], pose, config, name)
        elif shape_type == ShapeType.HEIGHTFIELD:
            field = int(mj_model.geom_dataid[geom])
            if field not in fields:
                fields[field] = hfield_surface(mj_model, field, f"geom '{name}'")
            shape_row[geom] = builder.add_shape_heightfield(
                row, fields[field], xform=pose, cfg=config, key=name
            )
        else:
            size = tuple(mj_model.geom_size[geom][: SIZE_COUNT[shape_type]])
            shape_row[geom] = builder.add_shape(row, shape_type, size, pose, config, name)
    return shape_row, tuple(left_out)


def check_geometry(compiled: CompiledScene, shape_row: np.ndarray, options: SceneOptions) -> None:
    """Raises InputError for a scene of which nothing can collide.

    shape_row: of each geom, LEFT_OUT for one that cannot. The plane of `--ground` does not count.
    """
    mj_model = compiled.mj_model
    kept = np.flatnonzero(shape_row != LEFT_OUT)
    of_scene = [
        geom for geom in kept if not (options.ground and mj_model.geom(geom).name == GROUND)
    ]
    if of_scene or any(may_collide(mj_model, flex) for flex in range(mj_model.nflex)):
        return
    what = "the scene has no collision geometry"
    kind = "<collision> to the links"
    if not compiled.urdf:
        kind = "contype and conaffinity to the geoms"
        if mj_model.ngeom - len(kept):
            what += f": none of its {plural(mj_model.ngeom - len(kept), 'geom')} can collide"
    raise InputError(what, compiled.location, f"add {kind} that should collide")


def mesh_hull(mj_model: mujoco.MjModel, mesh: int, where: str) -> ConvexHull:
    """The hull that MuJoCo uses for collisions of a mesh, in the frame of its geoms.

    It is the hull of the mesh's vertices, or with `maxhullvert` of the vertices that MuJoCo's own
    hull has kept. Raises InputError with `where` and the mesh for a mesh without volume.
    """
    first = int(mj_model.mesh_vertadr[mesh])
    count = int(mj_model.mesh_vertnum[mesh])
    vertex = mj_model.mesh_vert[first : first + count][hull_vertices(mj_model, mesh)]
    name = mj_model.mesh(mesh).name
    return cached_hull(vertex, f"{where}, mesh '{name}'" if name else where)


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
            f"geom '{name}' is a {_UNHANDLED.get(kind, 'geom of an unknown type')} that may"
            " collide, which is not handled",
            location,
            'replace it by primitives, or give it contype="0" conaffinity="0" if it is visual only',
        )
    return shape_type
