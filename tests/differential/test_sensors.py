"""Sensors that an MJCF scene declares against MuJoCo's own sensor values on equal poses."""

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import pytest

from collidecli.verbs.label.sensor_labels import SensorBlock
from collidecli.verbs.label.sensors import SensorRequest, evaluated

FRAMES = 40
BODIES = 7
VOLUMES = ("sphere", "capsule", "box", "cylinder", "ellipsoid")
CONTACT = 'data="found dist pos normal tangent" reduce="mindist"'
WIDTH = 11
"""Numbers of a slot of these data."""
SENSORS = {
    "geom": '<contact name="{name}" geom1="g{k}" {data}/>',
    "body": '<contact name="{name}" body1="b{k}" {data}/>',
    "subtree": '<contact name="{name}" subtree1="b{k}" num="3" {data}/>',
    "second": '<contact name="{name}" geom2="g{k}" {data}/>',
    "pair": '<contact name="{name}" body1="b{k}" subtree2="b{j}" {data}/>',
    "floor": '<contact name="{name}" geom1="floor" body2="b{k}" {data}/>',
    "site": '<contact name="{name}" site="s{k}" {data}/>',
    "site floor": '<contact name="{name}" site="s{k}" geom2="floor" {data}/>',
    "touch": '<touch name="{name}" site="s{k}"/>',
    "distance": '<distance name="{name}" geom1="g{k}" body2="b{j}" cutoff="100"/>',
    "normal": '<normal name="{name}" body1="b{k}" geom2="floor" cutoff="100"/>',
    "fromto": '<fromto name="{name}" geom1="g{k}" geom2="g{j}" cutoff="100"/>',
    "inside": '<insidesite name="{name}" site="s{k}" objtype="xbody" objname="b{j}"/>',
    "inside inertial": '<insidesite name="{name}" site="s{k}" objtype="body" objname="b{j}"/>',
    "inside fixed": '<insidesite name="{name}" site="fixed" objtype="geom" objname="g{k}"/>',
}


def _text(numbers: np.ndarray) -> str:
    return " ".join(map(repr, np.asarray(numbers, float).tolist()))


def _turn(rng: np.random.Generator) -> np.ndarray:
    quaternion = rng.normal(size=4)
    return quaternion / np.linalg.norm(quaternion)


def scene(rng: np.random.Generator, shapes: tuple[str, ...]) -> str:
    """Free bodies with a site of each kind, every second with a ball on a joint, over a plane."""
    bodies = []
    for k in range(BODIES):
        place = f'pos="{_text(rng.normal(size=3) * 0.2)}" quat="{_text(_turn(rng))}"'
        child = f'<body name="c{k}" {place}><joint type="ball"/><geom size=".08"/></body>'
        geom = f'pos="{_text(rng.normal(size=3) * 0.05)}" quat="{_text(_turn(rng))}"'
        site = f'pos="{_text(rng.normal(size=3) * 0.1)}" quat="{_text(_turn(rng))}"'
        bodies.append(
            f'<body name="b{k}"><freejoint/>'
            f'<geom name="g{k}" type="{shapes[k % len(shapes)]}" size=".12 .1 .09" {geom}/>'
            f'<site name="s{k}" type="{VOLUMES[k % 5]}" size=".15 .12 .1" {site}/>'
            f"{child if k % 2 else ''}</body>"
        )
    sensors = [
        text.format(name=f"{word} {k}", k=k, j=(k + 3) % BODIES, data=CONTACT)
        for word, text in SENSORS.items()
        for k in range(BODIES)
    ]
    sensors.append(f'<contact name="any" num="5" {CONTACT}/>')
    world = (
        '<geom name="floor" type="plane" size="5 5 1"/><body pos=".1 .2 .3" euler="20 30 40">'
        '<site name="fixed" type="box" size=".4 .3 .2"/></body>'
    )
    return (
        f"<mujoco><worldbody>{world}{''.join(bodies)}</worldbody>"
        f"<sensor>{''.join(sensors)}</sensor>{{keys}}</mujoco>"
    )


def keyframes(rng: np.random.Generator, model: mujoco.MjModel) -> str:
    """Random poses, of which many touch."""
    keys = []
    for _ in range(FRAMES):
        qpos = model.qpos0.copy()
        for joint in range(model.njnt):
            at = model.jnt_qposadr[joint]
            if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
                qpos[at : at + 3] = rng.normal(size=3) * 0.22
                qpos[at + 2] = abs(qpos[at + 2]) * 1.2
                at += 3
            qpos[at : at + 4] = _turn(rng)
        keys.append(f'<key qpos="{_text(qpos)}"/>')
    return f"<keyframe>{''.join(keys)}</keyframe>"


@dataclass
class Both:
    """Values of collide and of MuJoCo. values: float64[F, dimensions] by sensor. touches: int[F] by
    touch sensor, contacts by MuJoCo's rule of touch sensors."""

    block: SensorBlock
    columns: dict[str, int]
    values: dict[str, np.ndarray]
    touches: dict[str, np.ndarray]

    def ours(self, array: str, name: str) -> np.ndarray:
        """[F] or [F, 3]: an array of a column."""
        return getattr(self.block, array)[:, 0, self.columns[name]]

    def named(self, word: str) -> list[str]:
        """The sensors of a kind of SENSORS."""
        return [f"{word} {k}" for k in range(BODIES)]


def _touching_contacts(model: mujoco.MjModel, data: mujoco.MjData, site: int) -> int:
    """Contacts of the site's body whose ray, away from the body, hits the site."""
    count = 0
    place = data.site_xpos[site], data.site_xmat[site], model.site_size[site]
    for contact in data.contact:
        bodies = model.geom_bodyid[contact.geom]
        if model.site_bodyid[site] not in bodies:
            continue
        away = contact.frame[:3] * (1.0 if model.site_bodyid[site] == bodies[0] else -1.0)
        kind = model.site_type[site]
        count += mujoco.mju_rayGeom(*place, contact.pos, away, kind) >= 0.0
    return count


def both(folder: Path, seed: int, shapes: tuple[str, ...]) -> Both:
    rng = np.random.default_rng(seed)
    text = scene(rng, shapes)
    bare = mujoco.MjModel.from_xml_string(text.format(keys=""))
    path = folder / "sensors.xml"
    path.write_text(text.format(keys=keyframes(rng, bare)))
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    values = []
    sites = [
        k for k in range(model.nsensor) if model.sensor_type[k] == mujoco.mjtSensor.mjSENS_TOUCH
    ]
    touches = np.zeros((FRAMES, len(sites)), int)
    for frame in range(FRAMES):
        mujoco.mj_resetDataKeyframe(model, data, frame)
        mujoco.mj_forward(model, data)
        values.append(data.sensordata.copy())
        touches[frame] = [
            _touching_contacts(model, data, int(model.sensor_objid[k])) for k in sites
        ]
    at = model.sensor_adr.tolist()
    by_name = {
        model.sensor(k).name: np.array(values)[:, at[k] : at[k] + model.sensor_dim[k]]
        for k in range(model.nsensor)
    }
    request = SensorRequest(scenes=[str(path)])
    found = evaluated(request, lambda labels: (list(labels.blocks()), labels.sensors))
    assert len(found[0]) == 1
    columns = {name: column for column, name in enumerate(found[1])}
    named = {model.sensor(k).name: touches[:, row] for row, k in enumerate(sites)}
    return Both(found[0][0], columns, by_name, named)


@pytest.fixture(
    scope="module", params=[0, *(pytest.param(k, marks=pytest.mark.rest) for k in (1, 2))]
)
def balls(request, tmp_path_factory) -> Both:
    """Balls over a plane: the contacts of both are exactly known."""
    return both(tmp_path_factory.mktemp("balls"), request.param, ("sphere",))


@pytest.fixture(scope="module")
def solids(tmp_path_factory) -> Both:
    """All primitives, whose manifolds differ from MuJoCo's."""
    return both(tmp_path_factory.mktemp("solids"), 3, VOLUMES)


def slots(name: str, compared: Both) -> list[tuple[str, np.ndarray]]:
    """The columns of a contact sensor and MuJoCo's values of each."""
    values = compared.values[name]
    count = values.shape[1] // WIDTH
    names = [name] if count == 1 else [f"{name}[{slot}]" for slot in range(count)]
    return [
        (column, values[:, WIDTH * slot : WIDTH * (slot + 1)]) for slot, column in enumerate(names)
    ]


@pytest.mark.parametrize(
    "word", ["geom", "body", "subtree", "second", "pair", "floor", "site", "site floor", "any"]
)
def test_contact_sensors_of_balls_are_those_of_mujoco(balls, word):
    compared = 0
    for name in ["any"] if word == "any" else balls.named(word):
        for column, value in slots(name, balls):
            found = value[:, 0] > 0
            compared += int(found.sum())
            assert np.array_equal(balls.ours("touch", column), found)
            assert np.array_equal(balls.ours("count", column)[found], value[found, 0])
            for array, part, atol in (
                ("distance", value[found, 1], 3e-8),
                ("position", value[found, 2:5], 1e-12),
                ("normal", value[found, 5:8], 2e-7),
            ):
                # distances and normals of contacts are float32
                assert np.allclose(balls.ours(array, column)[found], part, rtol=0.0, atol=atol)
            # MuJoCo turns the tangent with a normal that it turns
            along = (balls.ours("tangent", column)[found] * value[found, 8:11]).sum(axis=1)
            assert np.allclose(np.abs(along), 1.0, rtol=0.0, atol=2e-7)
            if not column.endswith("]"):
                assert (balls.ours("count", column)[~found] == 0).all()
    assert compared > 20


def test_touch_sensors_count_the_contacts_that_mujoco_adds(balls):
    touching = 0
    for name in balls.named("touch"):
        count = balls.touches[name]
        touching += int((count > 0).sum())
        assert np.array_equal(balls.ours("count", name), count)
        assert np.array_equal(balls.ours("touch", name), count > 0)
        force = balls.values[name][:, 0]
        assert not (force[count == 0] > 0.0).any()
        assert (force[count > 0] > 0.0).mean(where=count[count > 0] > 0) > 0.5
    assert touching > 30


def check_distances(compared: Both, atol: float) -> None:
    """Distances, normals and points of the pairs that are apart are MuJoCo's."""
    for name in compared.named("distance"):
        ours = compared.ours("distance", name)
        theirs = compared.values[name][:, 0]
        assert np.allclose(ours[theirs > 0.0], theirs[theirs > 0.0], rtol=0.0, atol=atol)
        assert np.array_equal(compared.ours("touch", name), theirs <= 0.0)
    for name in compared.named("normal"):
        apart = compared.ours("distance", name) > 1e-3
        expected = compared.values[name][apart]
        assert np.allclose(compared.ours("normal", name)[apart], expected, rtol=0.0, atol=1e-6)
    for name in compared.named("fromto"):
        apart = compared.ours("distance", name) > 1e-3
        ends = compared.values[name][apart]
        for array, end in (("point", ends[:, :3]), ("partner_point", ends[:, 3:])):
            # nearest points are less well determined than the distance
            assert np.allclose(compared.ours(array, name)[apart], end, rtol=0.0, atol=1e3 * atol)


def test_distances_of_balls_are_those_of_mujoco(balls):
    check_distances(balls, 1e-12)
    for name in balls.named("distance"):
        overlap = balls.values[name][:, 0] <= 0.0
        ours = balls.ours("distance", name)[overlap]
        assert np.allclose(ours, balls.values[name][overlap, 0], rtol=0.0, atol=1e-12)


@pytest.mark.rest
def test_distances_of_solids_are_those_of_mujoco(solids):
    check_distances(solids, 2e-6)  # the tolerance of MuJoCo's general algorithm


@pytest.mark.rest
@pytest.mark.parametrize("word", ["inside", "inside inertial", "inside fixed"])
def test_points_are_in_sites_as_in_mujoco(balls, solids, word):
    for compared in (balls, solids):
        for name in compared.named(word):
            inside = compared.values[name][:, 0] > 0.0
            assert np.array_equal(compared.ours("touch", name), inside)


@pytest.mark.rest
@pytest.mark.parametrize("word", ["geom", "body", "second", "pair", "floor"])
def test_solids_touch_where_mujoco_finds_a_contact(solids, word):
    """The depths are the least translations here, and MuJoCo's are at least as deep or equal up to
    its tolerance."""
    for name in solids.named(word):
        value = solids.values[name]
        found = value[:, 0] > 0
        differs = found != solids.ours("touch", name)
        # where only one touches, it barely does
        depth = np.where(found, value[:, 1], solids.ours("distance", name))
        assert (np.abs(depth[differs]) < 1e-5).all()
