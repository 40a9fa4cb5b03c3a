"""Sensors of a compiled MuJoCo model: contact, touch, distance, normal, fromto and insidesite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import mujoco
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.mujoco.shape_names import body_name, geom_name
from collidecli.numerics.pose_columns import WXYZ_TO_XYZW
from collidecli.scene.sensor_volumes import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    SIZE_COUNTS,
    SPHERE,
    Volume,
)
from collidecli.scene.sensors import (
    CONTACT,
    DISTANCE,
    INSIDE,
    POSITION,
    RAY,
    Chosen,
    DeclaredSensors,
    Placement,
    Region,
    Sensor,
    Side,
    any_sensor,
)
from collidecli.wording import first_and_count

_SENSOR = mujoco.mjtSensor
_OBJECT = mujoco.mjtObj
_DATA = mujoco.mjtConDataField
_DISTANCES = {
    int(_SENSOR.mjSENS_GEOMDIST): "distance",
    int(_SENSOR.mjSENS_GEOMNORMAL): "normal",
    int(_SENSOR.mjSENS_GEOMFROMTO): "fromto",
}
_VOLUMES = {
    int(mujoco.mjtGeom.mjGEOM_SPHERE): SPHERE,
    int(mujoco.mjtGeom.mjGEOM_CAPSULE): CAPSULE,
    int(mujoco.mjtGeom.mjGEOM_CYLINDER): CYLINDER,
    int(mujoco.mjtGeom.mjGEOM_ELLIPSOID): ELLIPSOID,
    int(mujoco.mjtGeom.mjGEOM_BOX): BOX,
}
_REDUCTIONS = ("none", "mindist", "maxforce", "netforce")
_FIELDS = {
    "found": _DATA.mjCONDATA_FOUND,
    "force": _DATA.mjCONDATA_FORCE,
    "torque": _DATA.mjCONDATA_TORQUE,
    "dist": _DATA.mjCONDATA_DIST,
    "pos": _DATA.mjCONDATA_POS,
    "normal": _DATA.mjCONDATA_NORMAL,
    "tangent": _DATA.mjCONDATA_TANGENT,
    "linvel": _DATA.mjCONDATA_LINVEL,
    "angvel": _DATA.mjCONDATA_ANGVEL,
}
_OF_DYNAMICS = ("force", "torque", "linvel", "angvel")
"""Data of contact sensors that contacts of recorded poses do not have."""
_OF_ONE_CONTACT = ("dist", "pos", "normal", "tangent")


def mjcf_sensors(
    mj_model: mujoco.MjModel,
    geom_shapes: Sequence[Sequence[str]],
    is_static: np.ndarray,
    chosen: Chosen = any_sensor,
) -> DeclaredSensors:
    """The sensors of a scene, in the order of the file.

    A sensor of contacts that poses do not determine is refused, with the reason. geom_shapes: paths
    of the shapes of each geom. is_static: bool[nbody], bodies that are fixed to the world. chosen:
    those that the notes are about.
    """
    reader = _Reader(mj_model, geom_shapes, is_static)
    sensors = []
    refused: dict[str, str] = {}
    for number in range(mj_model.nsensor):
        try:
            sensor = reader.sensor(number)
        except InputError as error:
            refused[reader.name(number)] = error.what
            continue
        if sensor is not None:
            sensors.append(sensor)
    return DeclaredSensors(tuple(sensors), reader.notes(chosen), refused)


def _chosen_words(listed: Sequence[tuple[str, str]], chosen: Chosen) -> list[str]:
    """The words for those of some sensors, elements with names, that are chosen."""
    return [f"{word} sensor '{name}'" for word, name in listed if chosen(name)]


class _Reader:
    """Reads the sensors of one scene, and collects what is said about them together."""

    def __init__(
        self,
        mj_model: mujoco.MjModel,
        geom_shapes: Sequence[Sequence[str]],
        is_static: np.ndarray,
    ) -> None:
        self._model = mj_model
        self._geom_shapes = geom_shapes
        self._is_static = is_static
        self._data = mujoco.MjData(self._model)
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        self._others: list[tuple[str, str]] = []
        self._touches: list[tuple[str, str]] = []
        self._forces: list[tuple[str, str]] = []
        self._unmeasured: list[tuple[str, str]] = []
        self._without_colliders: list[tuple[str, str]] = []

    def name(self, number: int) -> str:
        """A sensor's name, or its element with its id."""
        return self._model.sensor(number).name or f"{self._word(number)}#{number}"

    def _word(self, number: int) -> str:
        """The element that declares a sensor."""
        kind = int(self._model.sensor_type[number])
        return _DISTANCES.get(kind) or _SENSOR(kind).name.removeprefix("mjSENS_").lower()

    def sensor(self, number: int) -> Sensor | None:
        """A sensor; None for one that is not of contacts. Raises InputError for one that cannot be
        evaluated."""
        kind = int(self._model.sensor_type[number])
        if kind == _SENSOR.mjSENS_CONTACT:
            return self._contact(number)
        if kind == _SENSOR.mjSENS_TOUCH:
            return self._touch(number)
        if kind in _DISTANCES:
            return self._distance(number)
        if kind == _SENSOR.mjSENS_INSIDESITE:
            return self._inside(number)
        if kind == _SENSOR.mjSENS_TACTILE:
            raise InputError(
                "a tactile sensor has a pressure at each vertex of a mesh, which contacts do not"
                " have"
            )
        self._others.append((self._word(number), self.name(number)))
        return None

    def notes(self, chosen: Chosen) -> tuple[str, ...]:
        """Notes about the chosen ones of the sensors that were read."""
        notes = []
        if others := Counter(word for word, name in self._others if chosen(name)):
            kinds = ", ".join(f"{word} ({n})" for word, n in sorted(others.items()))
            notes.append(f"not of contacts, and left out: {kinds}")
        if touches := _chosen_words(self._touches, chosen):
            notes.append(
                f"{first_and_count(touches)}: a touch sensor measures a force, which poses do"
                " not determine; touching, number of contacts and depth are in its place"
            )
        if forces := _chosen_words(self._forces, chosen):
            notes.append(
                f"{first_and_count(forces)}: forces, torques and velocities of contacts are"
                " left out: poses do not determine them"
            )
        if unmeasured := _chosen_words(self._unmeasured, chosen):
            notes.append(
                f"{first_and_count(unmeasured)}: geoms that cannot collide are not measured,"
                " and MuJoCo measures them; --visuals-as-colliders makes them colliders"
            )
        if without_colliders := _chosen_words(self._without_colliders, chosen):
            notes.append(
                f"{first_and_count(without_colliders)}: has no geom that can collide, and"
                " never touches"
            )
        return tuple(notes)

    def _contact(self, number: int) -> Sensor:
        data, reduction, slots = self._model.sensor_intprm[number].tolist()
        name = self.name(number)
        fields = [word for word, bit in _FIELDS.items() if data >> int(bit) & 1]
        reduced = _REDUCTIONS[reduction]
        chosen = [word for word in fields if word in _OF_ONE_CONTACT]
        if reduced == "maxforce" and chosen:
            raise InputError(
                f"its data {' '.join(chosen)} are of the contact with the greatest force, which"
                ' poses do not determine: declare it with reduce="mindist"'
            )
        if reduced == "netforce" and "pos" in fields:
            raise InputError(
                "its data pos is weighted by forces, which poses do not determine: declare it with"
                ' reduce="mindist"'
            )
        if any(word in _OF_DYNAMICS for word in fields):
            self._forces.append(("contact", name))
        kind1 = int(self._model.sensor_objtype[number])
        first = int(self._model.sensor_objid[number])
        second = self._side(self._model.sensor_reftype[number], self._model.sensor_refid[number])
        region = None
        if kind1 == _OBJECT.mjOBJ_SITE:
            region = self._region(first, POSITION)
            one = Side()
        else:
            one = self._side(kind1, first)
        self._check_sides("contact", name, one, second)
        return Sensor(
            name,
            CONTACT,
            "contact",
            one,
            second,
            region,
            slots=1 if reduced == "netforce" else slots,
            tangent="tangent" in fields,
        )

    def _touch(self, number: int) -> Sensor:
        site = int(self._model.sensor_objid[number])
        name = self.name(number)
        body = int(self._model.site_bodyid[site])
        side = Side(self._shapes(self._geoms_of([body])))
        self._check_sides("touch", name, side)
        self._touches.append(("touch", name))
        return Sensor(name, CONTACT, "touch", side, region=self._region(site, RAY))

    def _distance(self, number: int) -> Sensor:
        word = self._word(number)
        name = self.name(number)
        sides = []
        for kinds, ids in (
            (self._model.sensor_objtype, self._model.sensor_objid),
            (self._model.sensor_reftype, self._model.sensor_refid),
        ):
            geoms = self._geoms(int(kinds[number]), int(ids[number]))
            missing = [geom for geom in geoms if not self._geom_shapes[geom]]
            if len(missing) == len(geoms):
                what = f"geom '{geom_name(self._model, missing[0])}'" if missing else "its body"
                raise InputError(
                    f"{what} has no collider to measure: --visuals-as-colliders makes visual geoms"
                    " colliders"
                )
            if missing:
                self._unmeasured.append((word, name))
            sides.append(Side(self._shapes(geoms)))
        return Sensor(name, DISTANCE, word, *sides)

    def _inside(self, number: int) -> Sensor:
        placement = self._object(
            int(self._model.sensor_objtype[number]), int(self._model.sensor_objid[number])
        )
        region = self._region(int(self._model.sensor_refid[number]), POSITION)
        return Sensor(self.name(number), INSIDE, "insidesite", region=region, point=placement)

    def _check_sides(self, word: str, name: str, *sides: Side) -> None:
        """Notes a sensor of which a side has no collider."""
        if any(side.shapes is not None and not len(side.shapes) for side in sides):
            self._without_colliders.append((word, name))

    def _side(self, kind: int, number: int) -> Side:
        if kind == _OBJECT.mjOBJ_UNKNOWN:
            return Side()
        return Side(self._shapes(self._geoms(int(kind), int(number))))

    def _geoms(self, kind: int, number: int) -> list[int]:
        """Geoms of an object: a geom, a body, or the subtree of a body."""
        if kind == _OBJECT.mjOBJ_GEOM:
            return [number]
        if kind == _OBJECT.mjOBJ_BODY:
            return self._geoms_of([number])
        parent = self._model.body_parentid
        inside = np.zeros(self._model.nbody, bool)
        inside[number] = True
        for body in range(number + 1, self._model.nbody):
            inside[body] = inside[parent[body]]
        return self._geoms_of(np.flatnonzero(inside).tolist())

    def _geoms_of(self, bodies: Iterable[int]) -> list[int]:
        return np.flatnonzero(np.isin(self._model.geom_bodyid, list(bodies))).tolist()

    def _shapes(self, geoms: Sequence[int]) -> tuple[str, ...]:
        return tuple(path for geom in geoms for path in self._geom_shapes[geom])

    def _region(self, site: int, test: str) -> Region:
        model = self._model
        kind = _VOLUMES.get(int(model.site_type[site]))
        if kind is None:
            raise InputError(
                f"site '{model.site(site).name}' is no sphere, capsule, ellipsoid, cylinder or box"
            )
        size = tuple(model.site_size[site][: SIZE_COUNTS[kind]].tolist())
        data = self._data
        placement = self._placed(
            int(model.site_bodyid[site]),
            (model.site_pos[site], model.site_quat[site]),
            (data.site_xpos[site], data.site_xmat[site]),
        )
        return Region(Volume(kind, size), test, placement)

    def _object(self, kind: int, number: int) -> Placement:
        """The frame of an object, of which an insidesite sensor tests the origin."""
        model = self._model
        data = self._data
        if kind == _OBJECT.mjOBJ_XBODY:
            own = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
            return self._placed(number, own, (data.xpos[number], data.xmat[number]))
        if kind == _OBJECT.mjOBJ_BODY:
            own = model.body_ipos[number], model.body_iquat[number]
            return self._placed(number, own, (data.xipos[number], data.ximat[number]))
        names = {
            _OBJECT.mjOBJ_GEOM: "geom",
            _OBJECT.mjOBJ_SITE: "site",
            _OBJECT.mjOBJ_CAMERA: "cam",
        }
        word = names[_OBJECT(kind)]
        if word == "cam" and model.cam_mode[number] != mujoco.mjtCamLight.mjCAMLIGHT_FIXED:
            raise InputError("its camera follows an object, and is at no place of its body")
        values = (getattr(model, f"{word}_{part}")[number] for part in ("bodyid", "pos", "quat"))
        body, position, quaternion = values
        in_world = (getattr(data, f"{word}_{part}")[number] for part in ("xpos", "xmat"))
        return self._placed(int(body), (position, quaternion), tuple(in_world))

    def _placed(
        self,
        body: int,
        own: tuple[np.ndarray, np.ndarray],
        in_world: tuple[np.ndarray, ...],
    ) -> Placement:
        """A frame on a body. own: position and quaternion wxyz in the body. in_world: position and
        matrix, for a body that is fixed to the world."""
        if self._is_static[body]:
            quaternion = np.empty(4)
            mujoco.mju_mat2Quat(quaternion, in_world[1])
            return Placement("", (*in_world[0].tolist(), *quaternion[WXYZ_TO_XYZW].tolist()))
        pose = (*own[0].tolist(), *own[1][WXYZ_TO_XYZW].tolist())
        return Placement(body_name(self._model, body), pose)
