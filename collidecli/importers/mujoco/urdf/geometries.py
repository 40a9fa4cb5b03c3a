"""Collision and visual elements of a URDF link, added to a spec."""

from __future__ import annotations

import os
from collections import Counter
from functools import lru_cache

import mujoco
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.mujoco.orientations import from_z_axis
from collidecli.importers.mujoco.urdf.elements import UrdfElement
from collidecli.importers.mujoco.urdf.free_names import free_name
from collidecli.numerics.euler_angles import euler_quaternions
from collidecli.numerics.pose_columns import WXYZ_TO_XYZW, XYZW_TO_WXYZ, multiply
from collidecli.wording import first_and_count

_GEOM = mujoco.mjtGeom
IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
POINT_RADIUS = 1e-9
"""Radius of a sphere whose radius is given as 0 [m]: MuJoCo takes none of 0, and a distance changes
by less than its rounding to float32 above 1 cm."""
SHAPES = ("box", "sphere", "cylinder", "capsule", "plane", "mesh")
OF_OTHERS = ("ellipsoid", "cone", "polyline", "heightmap", "image", "convex")
"""Shapes that other readers of URDF or SDF take and this one does not."""
_VISUAL_GROUP = 1
"""Group of MuJoCo's parser for geoms that do not collide."""


def _is_shape(name: str) -> bool:
    """Whether an element is a shape to any reader; Drake's have the prefix of its namespace."""
    return name.rpartition(":")[2] in (*SHAPES, *OF_OTHERS)


def origin_of(element: UrdfElement) -> tuple[list[float], np.ndarray]:
    """Position [m] and quaternion wxyz of an element's `<origin>`; the identity without one."""
    origin = element.child("origin")
    if origin is None:
        return [0.0, 0.0, 0.0], IDENTITY
    zero = [0.0, 0.0, 0.0]
    return origin.numbers("xyz", 3, zero), _rotation(tuple(origin.numbers("rpy", 3, zero)))


@lru_cache(maxsize=4096)
def _rotation(angles: tuple[float, ...]) -> np.ndarray:
    """Quaternion wxyz of roll, pitch and yaw [rad], about the fixed axes x, y and z in this
    order."""
    return euler_quaternions(np.array([angles]), ["XYZ"])[0] if any(angles) else IDENTITY


class GeometryReader:
    """Adds geoms of one URDF to a spec, and one mesh for each file and scale.

    Names of collision elements are unique in a spec: the first of equal names keeps it.
    """

    def __init__(self, spec: mujoco.MjSpec, notes: list[str]) -> None:
        self._spec = spec
        self._notes = notes
        self._names: set[str] = set()
        self._repeated: list[str] = []
        self._points: list[str] = []
        self._meshes: dict[tuple[str, tuple[float, ...]], str] = {}
        self._stems: Counter[str] = Counter()

    def add(self, link: UrdfElement, body: mujoco.MjsBody) -> None:
        """Adds the collision elements of a link to a body, and its visual elements where the scene
        keeps them. Raises InputError for a geometry that is unknown or has no valid sizes."""
        for element in link.children:
            if element.name == "collision":
                self._add_geom(element, link, body)
            elif element.name == "visual" and not self._spec.compiler.discardvisual:
                geom = self._add_geom(element, link, body)
                if geom is not None:
                    geom.contype = geom.conaffinity = 0
                    geom.group = _VISUAL_GROUP
                    geom.density = 0.0

    def add_notes(self) -> None:
        """Appends what has been found in several elements to the warnings."""
        if self._repeated:
            self._notes.append(
                f"collision {first_and_count(self._repeated)}: the name is taken, and the shape is"
                " named after its link"
            )
        if self._points:
            self._notes.append(
                f"{first_and_count(self._points)}: a radius of 0 is a point, which collides as a"
                f" sphere of {POINT_RADIUS:g} m"
            )

    def _add_geom(
        self, element: UrdfElement, link: UrdfElement, body: mujoco.MjsBody
    ) -> mujoco.MjsGeom | None:
        """A geom of the element; None, with a warning, for one without any geometry."""
        geometry = element.child("geometry")
        if geometry is None or not geometry.children:
            self._notes.append(
                f"{element.place} of link '{link.text('name')}' has no geometry, and is left out"
            )
            return None
        shape = self._shape_of(geometry)
        position, quaternion = origin_of(element)
        geom = body.add_geom(pos=position, quat=quaternion)
        self._set_shape(geom, shape, link)
        name = element.text("name", "")
        if name and name not in self._names:
            self._names.add(name)
            geom.name = name
        elif name and element.name == "collision":
            self._repeated.append(f"'{name}' of link '{link.text('name')}'")
        return geom

    def _shape_of(self, geometry: UrdfElement) -> UrdfElement:
        """The only shape in a `<geometry>`; elements beside it that are no shapes of any reader
        cause a warning."""
        known = [child for child in geometry.children if child.name in SHAPES]
        shapes = [child for child in geometry.children if _is_shape(child.name)]
        if len(shapes) > 1 or (not known and len(geometry.children) > 1):
            names = ", ".join(f"<{child.name}>" for child in geometry.children)
            raise InputError(f"has several geometries: {names}", geometry.where, "leave one")
        if not known:
            return geometry.children[0]
        unused = [child for child in geometry.children if child is not known[0]]
        if unused:
            names = ", ".join(f"<{child.name}>" for child in unused)
            self._notes.append(f"{geometry.place}: {names} beside <{known[0].name}> is not used")
        return known[0]

    def _set_shape(self, geom: mujoco.MjsGeom, shape: UrdfElement, link: UrdfElement) -> None:
        if shape.name == "box":
            geom.type = _GEOM.mjGEOM_BOX
            geom.size = [0.5 * _positive(shape, "size", side) for side in shape.numbers("size", 3)]
        elif shape.name == "sphere":
            geom.type = _GEOM.mjGEOM_SPHERE
            geom.size = [self._sphere_radius(shape, link), 0.0, 0.0]
        elif shape.name in ("cylinder", "capsule"):
            is_capsule = shape.name == "capsule"
            geom.type = _GEOM.mjGEOM_CAPSULE if is_capsule else _GEOM.mjGEOM_CYLINDER
            geom.size = [_length(shape, "radius"), 0.5 * _length(shape, "length"), 0.0]
        elif shape.name == "plane":
            geom.type = _GEOM.mjGEOM_PLANE
            geom.size = [0.0, 0.0, 1.0]
            geom.quat = _tilted(geom.quat, _normal(shape))
        elif shape.name == "mesh":
            geom.type = _GEOM.mjGEOM_MESH
            geom.meshname = self._mesh(shape)
        else:
            what = f"link '{link.text('name')}' has a geometry <{shape.name}>, which is not handled"
            fix = f"give {', '.join(SHAPES[:-1])} or {SHAPES[-1]}"
            raise InputError(what, f"{shape.location}: {shape.place}", fix)

    def _sphere_radius(self, shape: UrdfElement, link: UrdfElement) -> float:
        """The radius of a sphere [m]. One of 0 is a point, as in Drake, with a warning."""
        radius = shape.numbers("radius", 1)[0]
        if radius == 0.0:
            self._points.append(f"{shape.place} of link '{link.text('name')}'")
            return POINT_RADIUS
        return _positive(shape, "radius", radius)

    def _mesh(self, shape: UrdfElement) -> str:
        """The name of the mesh of a file and a scale, which is added at first."""
        file = shape.text("filename").strip()
        if self._spec.strippath:
            file = os.path.basename(file)
        scale = tuple(shape.numbers("scale", 3, [1.0, 1.0, 1.0]))
        if (file, scale) not in self._meshes:
            stem = os.path.splitext(os.path.basename(file))[0]
            used = set(self._meshes.values())
            number = self._stems[stem] or int(stem in used)
            name = free_name(f"{stem}#{number}" if number else stem, used)
            self._stems[stem] += 1
            self._spec.add_mesh(name=name, file=file, scale=scale)
            self._meshes[file, scale] = name
        return self._meshes[file, scale]


def _length(shape: UrdfElement, name: str) -> float:
    return _positive(shape, name, shape.numbers(name, 1)[0])


def _positive(shape: UrdfElement, name: str, value: float) -> float:
    if value <= 0.0:
        what = f"{name} is {value:g}"
        raise InputError(what, f"{shape.location}: {shape.place}", "give a length above zero")
    return value


def _normal(shape: UrdfElement) -> np.ndarray:
    """float64[1, 3], the normal of a plane. Bullet's element, not part of URDF."""
    normal = np.array([shape.numbers("normal", 3, [0.0, 0.0, 1.0])])
    if not normal.any():
        raise InputError("the normal is 0 0 0", shape.where, "give a direction")
    return normal


def _tilted(quaternion: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """A rotation, wxyz, whose z axis is a normal in the frame of another rotation."""
    first = np.asarray(quaternion, np.float64)[WXYZ_TO_XYZW][:, None]
    second = from_z_axis(normal)[0][WXYZ_TO_XYZW][:, None]
    return multiply(first, second)[XYZW_TO_WXYZ, 0]
