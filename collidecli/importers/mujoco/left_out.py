"""Removal of elements that affect no contact, for scenes that MuJoCo does not compile completely,
and of textures."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np

from collidecli.importers.mujoco.spec_elements import bodies_of, geoms_of, joints_of

_GEOM = mujoco.mjtGeom
_REPLACEMENT_RADIUS = 0.01
_SOLVER = (
    "integrator",
    "solver",
    "cone",
    "jacobian",
    "timestep",
    "iterations",
    "noslip_iterations",
)
_FILE_TYPES = (_GEOM.mjGEOM_MESH, _GEOM.mjGEOM_HFIELD, _GEOM.mjGEOM_SDF)


def shrink_textures(spec: mujoco.MjSpec) -> None:
    """Sets the size of procedural textures to one pixel: MuJoCo takes a tenth of a second to make a
    usual sky.

    An invalid size stays, so that MuJoCo reports it.
    """
    for texture in spec.textures:
        if texture.builtin != mujoco.mjtBuiltin.mjBUILTIN_NONE:
            texture.width = min(texture.width, 1)
            texture.height = min(texture.height, 1)


def partition_geoms(spec: mujoco.MjSpec) -> tuple[list, list]:
    """Geoms that can collide by their masks or a <pair>, and the other (visual) geoms."""
    paired = {name for pair in spec.pairs for name in (pair.geomname1, pair.geomname2)}
    colliding = []
    visual = []
    for geom in geoms_of(bodies_of(spec)):
        collides = geom.contype or geom.conaffinity or (geom.name and geom.name in paired)
        (colliding if collides else visual).append(geom)
    return colliding, visual


def drop_wrong_keys(spec: mujoco.MjSpec, mj_model: mujoco.MjModel) -> int:
    """Deletes keyframes whose sizes are not the model's; returns their number."""
    count = 0
    for key in list(spec.keys):
        sizes = {
            "qpos": mj_model.nq,
            "qvel": mj_model.nv,
            "act": mj_model.na,
            "ctrl": mj_model.nu,
            "mpos": 3 * mj_model.nmocap,
            "mquat": 4 * mj_model.nmocap,
        }
        if any(np.size(getattr(key, name)) not in (0, size) for name, size in sizes.items()):
            spec.delete(key)
            count += 1
    return count


def _delete(*lists: str) -> Callable[[mujoco.MjSpec], int]:
    def strip(spec: mujoco.MjSpec) -> int:
        elements = [element for name in lists for element in getattr(spec, name)]
        for element in elements:
            spec.delete(element)
        return len(elements)

    return strip


def _strip_appearance(spec: mujoco.MjSpec) -> int:
    references = 0
    for element in (
        *geoms_of(bodies_of(spec)),
        *spec.sites,
        *spec.skins,
        *spec.tendons,
        *spec.flexes,
        *spec.meshes,
    ):
        if element.material:
            element.material = ""
            references += 1
    return _delete("textures", "materials")(spec) or references


def _strip_actuators(spec: mujoco.MjSpec) -> int:
    for key in spec.keys:
        key.ctrl = []
        key.act = []
    return _delete("actuators")(spec)


def _replace_visual_meshes(spec: mujoco.MjSpec) -> int:
    """Replaces visual geoms that use an asset by small spheres, and deletes assets that are then
    unused.

    The geoms stay in the scene, so that geom numbers, which are in the names of unnamed shapes, do
    not change. The importer leaves them out of the model later, as all visual geoms.
    """
    if _frames_follow_inertia(spec):
        return 0
    visual = [g for g in partition_geoms(spec)[1] if g.meshname or g.type in _FILE_TYPES]
    for geom in (*visual, *(site for site in spec.sites if site.meshname)):
        geom.type = _GEOM.mjGEOM_SPHERE
        geom.meshname = ""
        geom.size = [_REPLACEMENT_RADIUS] * 3
    for geom in visual:
        geom.hfieldname = ""
        geom.fromto = [np.nan] * 6
    geoms = geoms_of(bodies_of(spec))
    used = {geom.meshname for geom in geoms}, {geom.hfieldname for geom in geoms}
    unused = [
        asset
        for assets, names in zip((spec.meshes, spec.hfields), used, strict=True)
        for asset in assets
        if asset.name not in names
    ]
    for asset in unused:
        spec.delete(asset)
    return max(len(visual), len(unused))


def _replace_inertias(spec: mujoco.MjSpec) -> int:
    if _frames_follow_inertia(spec):
        return 0
    bodies = list(bodies_of(spec))[1:]
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
    for body in bodies:
        body.explicitinertial = True
        body.mass = 1.0
        body.inertia = [1.0, 1.0, 1.0]
        body.fullinertia = [np.nan] * 6
        body.ipos = [0.0, 0.0, 0.0]
        body.iquat = [1.0, 0.0, 0.0, 0.0]
        body.ialt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
    return len(bodies)


def _shell_meshes(spec: mujoco.MjSpec) -> int:
    """Computes the inertias of meshes from their surface, which needs no volume. Meshes to which
    primitives are fitted stay, as the fit follows the inertia."""
    if _frames_follow_inertia(spec):
        return 0
    shell = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    fitted = {geom.meshname for geom in geoms_of(bodies_of(spec)) if geom.type not in _FILE_TYPES}
    meshes = [mesh for mesh in spec.meshes if mesh.name not in fitted and mesh.inertia != shell]
    for mesh in meshes:
        mesh.inertia = shell
    return len(meshes)


def _free_joints(spec: mujoco.MjSpec) -> int:
    limited = [
        joint
        for joint in joints_of(bodies_of(spec))
        if np.any(joint.range) or np.any(joint.actfrcrange)
    ]
    for joint in limited:
        joint.limited = joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_FALSE
        joint.range = joint.actfrcrange = [0.0, 0.0]
    return len(limited)


def _free_sizes(spec: mujoco.MjSpec) -> int:
    given = [name for name in ("memory", "nstack", "njmax", "nconmax") if getattr(spec, name) != -1]
    for name in given:
        setattr(spec, name, -1)
    return len(given)


def _reset_solver(spec: mujoco.MjSpec) -> int:
    """Sets what only a simulation uses to its default. Flags that disable contacts, and the
    override of margins, stay."""
    defaults = mujoco.MjSpec().option
    changed = [name for name in _SOLVER if getattr(spec.option, name) != getattr(defaults, name)]
    for name in changed:
        setattr(spec.option, name, getattr(defaults, name))
    kept = spec.option.enableflags & int(mujoco.mjtEnableBit.mjENBL_OVERRIDE)
    is_flagged = spec.option.enableflags != kept
    spec.option.enableflags = kept
    return len(changed) + is_flagged


def _frames_follow_inertia(spec: mujoco.MjSpec) -> bool:
    """Whether a free body's frame, and with it the meaning of qpos, depends on its inertia."""
    align = mujoco.mjtAlignFree
    free = [
        joint for joint in joints_of(bodies_of(spec)) if joint.type == mujoco.mjtJoint.mjJNT_FREE
    ]
    aligned = {int(align.mjALIGNFREE_TRUE)}
    if spec.compiler.alignfree:
        aligned.add(int(align.mjALIGNFREE_AUTO))
    return any(int(joint.align) in aligned for joint in free)


KEYFRAMES = "keyframes"
FAMILIES: dict[str, Callable[[mujoco.MjSpec], int]] = {
    "textures and materials": _strip_appearance,
    "skins": _delete("skins"),
    "visual meshes": _replace_visual_meshes,
    "inertias of meshes": _shell_meshes,
    "inertias": _replace_inertias,
    "joint limits": _free_joints,
    "lights and cameras": _delete("lights", "cameras"),
    "sizes of memory": _free_sizes,
    "solver settings": _reset_solver,
    "custom numbers and texts": _delete("numerics", "texts"),
    "tendons": _delete("tendons"),
    "equalities": _delete("equalities"),
    "actuators": _strip_actuators,
    "sensors": _delete("sensors"),
    "tuples": _delete("tuples"),
    KEYFRAMES: _delete("keys"),
}
"""Families of elements that affect no contact, in the order in which they are restored: each
depends on those before it alone. A family's function removes its elements from a spec, and returns
their number."""
