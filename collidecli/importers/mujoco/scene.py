"""Importer of MJCF and URDF: adds a scene that MuJoCo compiles to a model builder.

Meaning of MuJoCo's attributes in the model (MuJoCo 4.0, each compared with `mj_collision` in the tests):

- `margin` inflates a geom, and a pair adds both margins: the model's margin, unless `--mjcf-margin legacy` gives it the
  meaning that it had before MuJoCo 3.9 (`importers.mujoco_margins`). `gap` is the distance beyond the margin
  up to which a contact is reported, and a pair adds both gaps: the model's gap with `gap_rule = "sum"`. MuJoCo's
  `contact.dist` is the distance of the surfaces without margins; the reported distance is
  `contact.dist - contact.includemargin`, which is negative exactly where MuJoCo's contact can have a force.
- Geoms of bodies welded to the world are static. A mocap body is a body without degrees of freedom; as in MuJoCo it
  does not collide with other bodies without degrees of freedom.
- `<pair>` overrides masks, excludes and welds, with its own margin and gap.
- Geoms that cannot collide by any mask or pair are left out.
- Mesh geoms are convex hulls: see `geoms`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import Any

import mujoco
import numpy as np

from collidecli.errors import InputError, located_errors
from collidecli.importers.mesh_files import cached_hull, hull_vertices
from collidecli.importers.mujoco.compile import CompiledScene, compile_mjcf
from collidecli.importers.mujoco.kinematics import MujocoArticulations, MujocoKinematics
from collidecli.importers.mujoco_margins import DEFLATED, is_deflated, legacy_note, margin_and_gap, may_be_legacy
from collidecli.importers.scene_import import disabled_pairs, read_srdf
from collidecli.numerics import WXYZ_TO_XYZW, moved_points
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.heightfield import Heightfield, heightfield
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.motion import TimedMotion
from collidecli.scene.options import GROUND, SceneOptions
from collidecli.scene.shape_config import Material, PairMaterial, ShapeConfig
from collidecli.scene.shape_types import SIZE_COUNT, SOLIDS, ShapeType
from collidecli.storage.trajectory_motion import BodyMatch
from collidecli.texts import first_and_count, plural

# Adds the geoms, materials and pairs of a compiled MuJoCo model to a builder.
#
# Meshes become the convex hulls that MuJoCo uses for collision. MuJoCo moves a mesh to its inertial frame when it
# compiles it, and compensates in the geom's compiled pose: compiled vertices in the compiled frame of the geom have
# the positions of the file.


def geom_material(mj_model: mujoco.MjModel, geom: int) -> Material:
    """The surface of a geom; with the flag "override", that of the option's o_friction, o_solref and o_solimp.

    Static and sliding friction are equal: MuJoCo has a single coefficient.
    """
    friction = mj_model.geom_friction[geom]
    solref, solimp, solmix = mj_model.geom_solref[geom], mj_model.geom_solimp[geom], mj_model.geom_solmix[geom]
    if _is_overridden(mj_model):
        friction = mj_model.opt.o_friction[[0, 2, 3]]
        # Equal in every geom, so that any mixture equals the option; different weights would round.
        solref, solimp, solmix = mj_model.opt.o_solref, mj_model.opt.o_solimp, 1.0
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
    """The parameters of a `<pair>`, which replace those of its two geoms; the compiler has set all of them."""
    of_pairs = mj_model.pair_friction, mj_model.pair_solref, mj_model.pair_solimp
    friction, solref, solimp = (values[pair] for values in of_pairs)
    if _is_overridden(mj_model):
        friction, solref, solimp = mj_model.opt.o_friction, mj_model.opt.o_solref, mj_model.opt.o_solimp
    return PairMaterial(
        condim=int(mj_model.pair_dim[pair]), friction=_floats(friction), solref=_floats(solref), solimp=_floats(solimp)
    )


def material_warnings(mj_model: mujoco.MjModel) -> list[str]:
    """Warnings about contact parameters of the scene that a contact set cannot store."""
    o_friction = mj_model.opt.o_friction
    warnings = []
    if _is_overridden(mj_model) and (o_friction[0] != o_friction[1] or o_friction[3] != o_friction[4]):
        shown = " ".join(f"{value:g}" for value in o_friction)
        warnings.append(f"o_friction is {shown}: outside <pair> the first of two directions is used for both")
    for pair in range(mj_model.npair):
        if mj_model.pair_solreffriction[pair].any():
            geoms = (mj_model.geom(int(g)).name for g in (mj_model.pair_geom1[pair], mj_model.pair_geom2[pair]))
            shown = " and ".join(f"'{name}'" for name in geoms)
            warnings.append(f"solreffriction of the <pair> of {shown} is not stored in a contact set")
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

    The builder applies its own rules for masks, shapes of one body and the static world: a pair that is filtered by
    masks is not listed. shape_row: int32[ngeom], -1 for a geom left out. disabled: pairs of shapes, lower row first,
    that are filtered even where the scene forces them, with their rules. meaning: of margins, see `margin_and_gap`.
    """
    warnings = []
    flag = collision_disabled(mj_model)
    if flag is not None:
        warnings.append(f"the scene disables every contact with {flag}")
    for bit, name in ((mujoco.mjtEnableBit.mjENBL_SPECULATIVE, "speculative"), (mujoco.mjtEnableBit.mjENBL_IPC, "ipc")):
        if mj_model.opt.enableflags & bit:
            warnings.append(f'<flag {name}="enable"/> has no effect: contacts depend on margin and gap')
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
    """Two groups of geoms that do not collide, and the rule: excludes, welds, parents, bodies without freedom."""
    name = [body_name(mj_model, body) for body in range(mj_model.nbody)]
    of_body = _groups(mj_model.geom_bodyid, mj_model.nbody)
    for row, signature in enumerate(mj_model.exclude_signature):
        a, b = int(signature) >> 16, int(signature) & 0xFFFF
        title = mj_model.exclude(row).name
        yield of_body[a], of_body[b], f"<exclude{f' {title}' if title else ''}> of '{name[a]}' and '{name[b]}'"

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
            yield members, of_weld[parent], f"'{name[weld]}' is the child of '{name[parent]}' (filterparent)"

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
    """Forces the shapes of every <pair>; of several for two geoms, the one with the largest margin + gap.

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
            warnings.append(f"<pair> of {shown} is given more than once; the one with the largest margin + gap is used")
            if sum(extent[a, b][:2]) >= margin + gap:
                continue
        extent[a, b] = margin, gap, row
    for (a, b), (margin, gap, row) in extent.items():
        builder.add_shape_forced_pair(a, b, gap=gap, margin=margin, material=pair_material(mj_model, row))
    return warnings


LEFT_OUT = -1

_GEOM = mujoco.mjtGeom
SHAPE_OF = {int(getattr(_GEOM, name)): kind for kind in SOLIDS if hasattr(_GEOM, name := f"mjGEOM_{kind.name}")}
SHAPE_OF |= {int(_GEOM.mjGEOM_HFIELD): ShapeType.HEIGHTFIELD, int(_GEOM.mjGEOM_MESH): ShapeType.CONVEX_MESH}
_UNHANDLED = {int(_GEOM.mjGEOM_SDF): "sdf"}


def body_name(mj_model: mujoco.MjModel, body: int) -> str:
    """A body's name, or `body#<id>`."""
    return mj_model.body(body).name or f"body#{body}"


def geom_name(mj_model: mujoco.MjModel, geom: int) -> str:
    """A geom's name, or `<body>/geom#<id>`."""
    return mj_model.geom(geom).name or f"{body_name(mj_model, int(mj_model.geom_bodyid[geom]))}/geom#{geom}"


def urdf_shape_names(mj_model: mujoco.MjModel) -> list[str]:
    """A name for each geom of a URDF scene: that of its collision element, or `<link>/collision#<k>`.

    k counts the link's collision elements from 0, including named ones. Visual elements, if MuJoCo has kept them, are
    `<link>/visual#<k>`.
    """
    seen: Counter[tuple[int, str]] = Counter()
    names = []
    for geom in range(mj_model.ngeom):
        body = int(mj_model.geom_bodyid[geom])
        kind = "collision" if mj_model.geom_contype[geom] or mj_model.geom_conaffinity[geom] else "visual"
        names.append(mj_model.geom(geom).name or f"{mj_model.body(body).name}/{kind}#{seen[body, kind]}")
        seen[body, kind] += 1
    return names


def geom_lengths(mj_model: mujoco.MjModel, geom: int) -> tuple[float, float]:
    """Margin and gap of a geom, as authored [m]."""
    margin = mj_model.geom_margin[geom]
    if _is_overridden(mj_model):
        margin = mj_model.opt.o_margin / 2.0  # a pair adds two margins, and MuJoCo applies o_margin to the pair
    return float(margin), float(mj_model.geom_gap[geom])


def pair_lengths(mj_model: mujoco.MjModel, pair: int) -> tuple[float, float]:
    """Margin and gap of a `<pair>`, as authored [m]."""
    margin = mj_model.opt.o_margin if _is_overridden(mj_model) else mj_model.pair_margin[pair]
    return float(margin), float(mj_model.pair_gap[pair])


def margin_notes(mj_model: mujoco.MjModel, shape_row: np.ndarray, names: Sequence[str], meaning: str) -> list[str]:
    """A note each about geoms and pairs whose margin may be of the other meaning, and whose surface is deflated."""
    if not (mj_model.geom_gap.any() or mj_model.pair_gap.any()):
        return []
    lengths: dict[str, tuple[float, float]] = {
        f"geom '{names[geom]}'": geom_lengths(mj_model, geom) for geom in np.flatnonzero(shape_row != LEFT_OUT).tolist()
    }
    for pair in range(mj_model.npair):
        of_pair = (names[int(geom[pair])] for geom in (mj_model.pair_geom1, mj_model.pair_geom2))
        lengths[f"<pair> of {' and '.join(repr(name) for name in of_pair)}"] = pair_lengths(mj_model, pair)
    notes = []
    legacy = {name: values for name, values in lengths.items() if may_be_legacy(*values, meaning)}
    if legacy:
        margin, _ = next(iter(legacy.values()))
        notes.append(f"{first_and_count(list(legacy))}: {legacy_note(margin)}")
    deflated = [name for name, values in lengths.items() if is_deflated(*values, meaning)]
    if deflated:
        notes.append(f"{first_and_count(deflated)}: {DEFLATED}")
    return notes


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
        position, quaternion = mj_model.geom_pos[geom], mj_model.geom_quat[geom]
        if static[body]:
            in_world = np.empty(3), np.empty(4)
            mujoco.mju_mulPose(*in_world, data.xpos[body], data.xquat[body], position, quaternion)
            position, quaternion = in_world
        pose = (*position, *quaternion[WXYZ_TO_XYZW])
        # As unsigned: a bit pattern, independent of the sign in the file.
        masks = (int(mj_model.geom_contype[geom]) & 0xFFFFFFFF, int(mj_model.geom_conaffinity[geom]) & 0xFFFFFFFF)
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
            shape_row[geom] = builder.add_shape_heightfield(row, fields[field], xform=pose, cfg=config, key=name)
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
    of_scene = [geom for geom in kept if not (options.ground and mj_model.geom(geom).name == GROUND)]
    if of_scene or any(may_collide(mj_model, flex) for flex in range(mj_model.nflex)):
        return
    what, kind = "the scene has no collision geometry", "<collision> to the links"
    if not compiled.urdf:
        kind = "contype and conaffinity to the geoms"
        if mj_model.ngeom - len(kept):
            what += f": none of its {plural(mj_model.ngeom - len(kept), 'geom')} can collide"
    raise InputError(what, compiled.location, f"add {kind} that should collide")


def mesh_hull(mj_model: mujoco.MjModel, mesh: int, where: str) -> ConvexHull:
    """The hull that MuJoCo uses for collisions of a mesh, in the frame of its geoms.

    It is the hull of the mesh's vertices, or with `maxhullvert` of the vertices that MuJoCo's own hull has kept.
    Raises InputError with `where` and the mesh for a mesh without volume.
    """
    first, count = int(mj_model.mesh_vertadr[mesh]), int(mj_model.mesh_vertnum[mesh])
    vertex = mj_model.mesh_vert[first : first + count][hull_vertices(mj_model, mesh)]
    name = mj_model.mesh(mesh).name
    return cached_hull(vertex, f"{where}, mesh '{name}'" if name else where)


def hfield_surface(mj_model: mujoco.MjModel, field: int, where: str) -> Heightfield:
    """A compiled hfield, in the frame of its geoms: elevations are fractions of its height, and 0 is at z = 0.

    The array refers to MuJoCo's data. Raises InputError with `where` and the hfield for data that is not finite.
    """
    first, rows, cols = (
        int(array[field]) for array in (mj_model.hfield_adr, mj_model.hfield_nrow, mj_model.hfield_ncol)
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
            f"geom '{name}' is a {_UNHANDLED.get(kind, 'geom of an unknown type')} that may collide, "
            "which is not handled",
            location,
            'replace it by primitives, or give it contype="0" conaffinity="0" if it is visual only',
        )
    return shape_type


# Flexes of an MJCF scene as particles, cloths and soft bodies, whose vertices move with their bodies.

TRIANGLES, TETRAHEDRA = 2, 3
"""Dimensions of a flex; one of lines has dimension 1."""


def may_collide(mj_model: mujoco.MjModel, flex: int) -> bool:
    """Whether a flex collides with shapes, or with itself."""
    masks = mj_model.flex_contype[flex], mj_model.flex_conaffinity[flex]
    return any(masks) or bool(mj_model.flex_selfcollide[flex])


def add_flexes(
    builder: ModelBuilder, mj_model: mujoco.MjModel, data: mujoco.MjData, body_row: np.ndarray, location: str
) -> None:
    """Adds the flexes of a compiled model that may collide: one particle a vertex, with the flex's radius and masks.

    data: poses of the bodies at rest. body_row: the builder's body of each body of the model; the static world is -1. A
    flex of lines has particles alone. Raises InputError for a flex whose vertices are interpolated between nodes.
    """
    for flex in range(mj_model.nflex):
        if not may_collide(mj_model, flex):
            continue
        masks = int(mj_model.flex_contype[flex]), int(mj_model.flex_conaffinity[flex])
        name = mujoco.mj_id2name(mj_model, mujoco.mjtObj.mjOBJ_FLEX, flex) or f"flex#{flex}"
        if mj_model.flex_interp[flex]:
            what = f"the vertices of flex '{name}' are interpolated between nodes, which is not handled"
            raise InputError(what, location, 'give it dof="full", or contype="0" conaffinity="0" selfcollide="none"')
        first, count = int(mj_model.flex_vertadr[flex]), int(mj_model.flex_vertnum[flex])
        position = _positions(mj_model, data, flex, slice(first, first + count))
        bodies = body_row[mj_model.flex_vertbodyid[first : first + count]]
        place = {"cfg": ShapeConfig(mask_either=masks), "key": name, "bodies": bodies}
        radius, dimension = float(mj_model.flex_radius[flex]), int(mj_model.flex_dim[flex])
        if dimension in (TRIANGLES, TETRAHEDRA):
            add = builder.add_cloth_mesh if dimension == TRIANGLES else builder.add_soft_mesh
            add(vertices=position, indices=_elements(mj_model, flex), particle_radius=radius, **place)
        else:
            builder.add_particles(position, radius=radius, **place)


def _positions(mj_model: mujoco.MjModel, data: mujoco.MjData, flex: int, vertices: slice) -> np.ndarray:
    """float64[n, 3]: vertices `vertices` of a flex in the world, from the frames of their bodies [m]."""
    body = mj_model.flex_vertbodyid[vertices]
    local = np.zeros((len(body), 3)) if mj_model.flex_centered[flex] else mj_model.flex_vert[vertices]
    pose = np.concatenate([data.xpos[body], data.xquat[body][:, WXYZ_TO_XYZW]], axis=1)
    return moved_points(pose, local)


def _elements(mj_model: mujoco.MjModel, flex: int) -> np.ndarray:
    """int32[n, dimension + 1]: vertices of each element, counted within the flex."""
    width = int(mj_model.flex_dim[flex]) + 1
    first, count = int(mj_model.flex_elemdataadr[flex]), int(mj_model.flex_elemnum[flex])
    return np.array(mj_model.flex_elem[first : first + count * width]).reshape(count, width)


# Filter of the pairs of shapes within each robot of an MJCF or URDF scene.


def filter_self_collisions(
    builder: ModelBuilder,
    mj_model: mujoco.MjModel,
    static: np.ndarray,
    body_row: np.ndarray,
    shape_row: np.ndarray,
    urdf: bool,
) -> None:
    """Filters the pairs of each articulation, but for those that `<pair>` forces.

    An articulation is a child of the world with all bodies below it; the links of a URDF are one. static: bool[nbody],
    see `static_bodies`. body_row, shape_row: as in `MjcfImport`.
    """
    root = np.where(np.arange(mj_model.nbody) > 0, 1, 0) if urdf else np.array(mj_model.body_rootid)
    for tree in np.unique(root[1:]):
        moving = (root == tree) & ~static
        if moving.sum() > 1:
            builder.add_articulation(body_row[moving].tolist(), self_collision=False)
        # The shapes of its fixed base are static, and belong to no body.
        base, others = (
            shape_row[bodies[mj_model.geom_bodyid] & (shape_row != LEFT_OUT)].tolist()
            for bodies in ((root == tree) & static, moving)
        )
        for pair in product(base, others):
            builder.add_shape_collision_filter_pair(*pair, rule="self-collision of the articulation is off")


@dataclass(frozen=True)
class MjcfImport:
    """The result of `add_mjcf`.

    path: the file. mj_model: compiled by MuJoCo. kinematics: of qpos and mocap poses.
    body_row: int32[nbody], the builder's body of each MuJoCo body; -1 for the world.
    shape_row: int32[ngeom], the builder's shape of each geom; -1 for one left out.
    left_out: names of geoms that cannot collide. warnings: of MuJoCo or of this importer. kept: empty.
    files: every file whose content may affect a contact; the scene file first. text: of a scene that is not a file.
    fixed_links: name of the body of each shape of a body that is welded to the world, by name.
    """

    path: str
    mj_model: mujoco.MjModel
    kinematics: MujocoKinematics
    body_row: np.ndarray
    shape_row: np.ndarray
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]
    files: tuple[str, ...] = ()
    text: str = ""
    kept: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fixed_links: Mapping[str, str] = field(default_factory=dict)

    @property
    def articulated(self) -> MujocoArticulations:
        return self.kinematics.articulated

    def motion(self, model: Model) -> KeyframeMotion | None:
        """The scene's keyframes as a motion of the model's bodies, one frame each; None without keyframes."""
        return KeyframeMotion(self, model) if self.mj_model.nkey else None


def add_mjcf(builder: ModelBuilder, path: str | os.PathLike[str], options: SceneOptions | None = None) -> MjcfImport:
    """Adds the bodies, geoms and pair rules of an MJCF or URDF file to `builder`.

    Sets the builder's `gap_rule` to "sum" and its `material_rule` to "mujoco". Raises InputError: a file that MuJoCo
    cannot compile; nothing that can collide; an hfield or sdf geom that may collide; a colliding mesh without volume;
    an interpolated flex.
    """
    options = options or SceneOptions()
    compiled = compile_mjcf(path, options=options)
    builder.source.append(os.path.basename(compiled.location))
    return add_compiled(builder, compiled, options)


def add_compiled(builder: ModelBuilder, compiled: CompiledScene, options: SceneOptions) -> MjcfImport:
    """Adds a compiled scene, which may be given as text, to `builder`; see `add_mjcf`."""
    mj_model, location = compiled.mj_model, compiled.location
    rules = read_srdf(options.disabled_pairs) if options.disabled_pairs else None
    names = urdf_shape_names(mj_model) if compiled.urdf else [geom_name(mj_model, k) for k in range(mj_model.ngeom)]
    meaning = options.mjcf_margin
    if builder.gap_rule != "sum" and builder.shape_count:
        what = "this scene adds the gaps of a pair, and the scenes before it use the larger gap"
        raise InputError(what, location, "load the MJCF scene alone, or give --gap and --gap-rule for all scenes")
    builder.gap_rule, builder.material_rule = "sum", "mujoco"
    data = mujoco.MjData(mj_model)
    mujoco.mj_kinematics(mj_model, data)
    static = static_bodies(mj_model)
    body_row = np.full(mj_model.nbody, STATIC_BODY, np.int32)
    with located_errors(location):
        for body in range(1, mj_model.nbody):
            pose = (*data.xpos[body], *data.xquat[body][WXYZ_TO_XYZW])
            body_row[body] = builder.add_body(xform=pose, key=body_name(mj_model, body))
        shape_row, left_out = add_geoms(builder, mj_model, data, static, body_row, location, names, meaning)
        check_geometry(compiled, shape_row, options)
        if options.self_collisions == "off":
            filter_self_collisions(builder, mj_model, static, body_row, shape_row, compiled.urdf)
        add_flexes(builder, mj_model, data, body_row, location)
        disabled, unknown = disabled_pairs(rules, _shapes_of_links(mj_model, shape_row)) if rules else ({}, [])
        warnings = [
            *compiled.warnings,
            *margin_notes(mj_model, shape_row, names, meaning),
            *add_pair_rules(builder, mj_model, shape_row, disabled, meaning),
            *unknown,
            *material_warnings(mj_model),
        ]
    paths = tuple(body_name(mj_model, body) for body in range(1, mj_model.nbody))
    kinematics = MujocoKinematics(mj_model, paths, static[1:])
    fixed_links = {
        names[geom]: body_name(mj_model, body)
        for geom, body in enumerate(mj_model.geom_bodyid.tolist())
        if body and static[body]
    }
    about = tuple(dict.fromkeys(warnings)), compiled.files, compiled.text
    return MjcfImport(location, mj_model, kinematics, body_row, shape_row, left_out, *about, fixed_links=fixed_links)


def _shapes_of_links(mj_model: mujoco.MjModel, shape_row: np.ndarray) -> dict[str, list[int]]:
    shapes: dict[str, list[int]] = {body_name(mj_model, body): [] for body in range(mj_model.nbody)}
    for geom in np.flatnonzero(shape_row != LEFT_OUT):
        shapes[body_name(mj_model, int(mj_model.geom_bodyid[geom]))].append(int(shape_row[geom]))
    return shapes


def static_bodies(mj_model: mujoco.MjModel) -> np.ndarray:
    """bool[nbody]: the world and every body that is welded to it and is not a mocap body or a child of one."""
    static = mj_model.body_weldid == 0
    for body in range(1, mj_model.nbody):
        if mj_model.body_mocapid[body] >= 0:
            static[body] = False
        elif static[body]:
            static[body] = static[mj_model.body_parentid[body]]
    return static


class KeyframeMotion(TimedMotion):
    """A scene's keyframes as a motion (see `scene.motion.Motion`), one frame each, in the file's order.

    time: as authored; the frame's number where authored times decrease.
    """

    def __init__(self, scene: MjcfImport, model: Model) -> None:
        mj_model = scene.mj_model
        count = mj_model.nkey
        super().__init__(np.array(mj_model.key_time, np.float64))
        if not np.isfinite(self.time).all():
            key = int(np.argmin(np.isfinite(self.time)))
            where = f"{scene.path}: keyframe {key} ('{mj_model.key(key).name}')"
            raise InputError(f"the time is {self.time[key]:g}", where, "give it a time in seconds")
        if (np.diff(self.time) < 0.0).any():
            self.time = np.arange(count, dtype=np.float64)
            self.warnings = ("the keyframes' times decrease; the frame numbers are used as times",)
        self.sha256 = ""
        qpos = np.array(mj_model.key_qpos, np.float64).reshape(count, mj_model.nq)
        bad = scene.kinematics.first_bad_coordinate(qpos)
        if bad is not None:
            key, body, what = bad
            raise InputError(what, f"{scene.path}: keyframe {key} ('{mj_model.key(key).name}'), body '{body}'")
        position = np.reshape(mj_model.key_mpos, (count, mj_model.nmocap, 3))
        rotation = np.reshape(mj_model.key_mquat, (count, mj_model.nmocap, 4))[..., WXYZ_TO_XYZW]
        mocap = np.concatenate([position, rotation], axis=-1)
        self._coordinates = qpos[:, None], mocap[:, None]
        poses = scene.kinematics.poses(qpos, mocap)
        match = BodyMatch(list(scene.kinematics.body_path), model, scene.path)
        self._poses = match.checked(poses[:, None], range(count), scene.path, "keyframes")

    def read(self, frames: range) -> np.ndarray:
        return self._poses[frames.start : frames.stop : frames.step]

    def read_coordinates(self, frames: range) -> tuple[np.ndarray, np.ndarray | None] | None:
        """qpos float64[len(frames), 1, nq] and poses of mocap bodies, see `RecordsCoordinates`."""
        qpos, mocap = (values[frames.start : frames.stop : frames.step] for values in self._coordinates)
        return qpos, mocap
