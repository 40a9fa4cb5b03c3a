"""Whole scenes, meshes, filters, contact parameters and terrain of MJCF against MuJoCo itself."""

import importlib
import importlib.util
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import collidecli
from collidecli.importers.mujoco.compile import collected_messages, compile_mjcf
from collidecli.importers.mujoco.scene import add_compiled, add_mjcf
from collidecli.python.contact_set import Contacts
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.mixing import ContactMixing
from collidecli.scene.model import Model
from collidecli.scene.options import SceneOptions
from collidecli.scene.shape_types import ShapeType
from collidecli.storage.trajectory_motion import open_trajectory
from tests.support.hull_oracle import core, polytope_distance, proven
from tests.support.mujoco_pairs import (
    LoadedScene,
    Verdicts,
    judge,
    mujoco_distances,
    our_distances,
    our_pairs,
    reported_pairs,
    ruled_pairs,
)
from tests.support.mujoco_pairs import load_scene as load
from tests.support.piles import pile_xml

MEDIAN_TOLERANCE = 2e-5
ORACLE_TOLERANCE = 1e-6  # of the larger shape's half extent
SAMPLE = Path("samples/02_humanoid")


def compare(scene: LoadedScene, poses: np.ndarray) -> Verdicts:
    """Asserts that the two agree where they should, and that the oracle is on our side where they
    do not."""
    verdicts = judge(scene, poses, our_distances(scene, poses), mujoco_distances(scene, poses))
    assert len(verdicts.agreed), "no pair touches: the scene tests nothing"
    assert np.median(verdicts.agreed) <= MEDIAN_TOLERANCE
    off = verdicts.off(verdicts.ours) / verdicts.size
    paths = scene.model.shapes.path
    for k in np.flatnonzero(off > ORACLE_TOLERANCE):
        pair = paths[verdicts.shape0[k]], paths[verdicts.shape1[k]]
        distances = verdicts.ours[k], verdicts.mujoco[k], verdicts.oracle[k]
        pytest.fail(
            f"frame {verdicts.frame[k]}, {pair}: ours, MuJoCo's and the oracle's distance"
            f" {distances}"
        )
    return verdicts


def stepped(mj_model: mujoco.MjModel, frames: int, every: int, start: int) -> np.ndarray:
    """qpos float64[frames, nq] of a simulation under random controls."""
    data = mujoco.MjData(mj_model)
    rng = np.random.default_rng(0)
    kept = []
    for step in range(start + frames * every):
        data.ctrl[:] = rng.uniform(-1, 1, mj_model.nu)
        mujoco.mj_step(mj_model, data)
        if step >= start and (step - start) % every == 0:
            kept.append(data.qpos.copy())
    return np.array(kept)


def test_humanoid_sample():
    scene = load(SAMPLE / "humanoid.xml")
    motion = open_trajectory(SAMPLE / "motion.h5", scene.model, scene.imported.kinematics)
    poses = motion.read(range(len(motion.time)))[:, 0]
    motion.close()
    compare(scene, poses)


def moving_pile(tmp_path: Path, gap: float, frames: int = 40) -> tuple[LoadedScene, np.ndarray]:
    path = tmp_path / "pile.xml"
    path.write_text(pile_xml(60, gap))
    scene = load(path)
    qpos = stepped(scene.imported.mj_model, frames, every=8, start=60)
    return scene, scene.imported.kinematics.poses(qpos)


@pytest.mark.share(2)
@pytest.mark.parametrize("gap", [0.0, 0.01])
def test_pile(gap, tmp_path):
    """With a gap, pairs apart are compared too."""
    scene, poses = moving_pile(tmp_path, gap)
    verdicts = compare(scene, poses)
    assert len(verdicts.agreed) > 40 * 60, "a pile has more pairs than shapes"


# Mesh geoms against MuJoCo: pairs with every primitive and with each other, and whole robots.

SAME = 1e-5
"""Of the larger shape's size: what MuJoCo's distance may be off before somebody has to decide."""
EXACT = 2e-6
"""Of that size: what ours may be off then. Vertices are float32, faces are merged to 3e-7,
distances are float32."""
BAND = 2e-4
"""Depth or gap within which one side may have a pair that the other does not [m]."""
OTHERS = {
    "plane": "1 1 1",
    "sphere": "0.7",
    "capsule": "0.4 0.6",
    "box": "0.5 0.8 0.3",
    "cylinder": "0.5 0.7",
    "ellipsoid": "0.4 0.8 0.6",
    "mesh": "",
}


def cloud(rng: np.random.Generator, count: int, size: float) -> str:
    """`count` points of which all are on their hull: on an ellipsoid."""
    points = rng.normal(size=(count, 3))
    points *= size * rng.uniform(0.3, 1.0, 3) / np.linalg.norm(points, axis=1, keepdims=True)
    return " ".join(f"{x:.9g}" for x in points.ravel())


def two_geoms(rng: np.random.Generator, other: str, count: int, size: float) -> str:
    """A mesh that moves, and something that does; a plane, which may not in MuJoCo, is carried by
    nothing."""
    sizes = " ".join(str(float(s) * size) for s in OTHERS[other].split())
    geom = (
        '<geom type="mesh" mesh="n"/>'
        if other == "mesh"
        else f'<geom type="{other}" size="{sizes}"/>'
    )
    carried = geom if other == "plane" else f"<body><freejoint/>{geom}</body>"
    return f"""<mujoco>
    <asset><mesh name="m" vertex="{cloud(rng, count, size)}"/><mesh name="n" vertex="{cloud(rng, 40, size)}"/></asset>
    <worldbody>{carried}<body><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""


def by_facets(model: Model, pose: np.ndarray, first: int, second: int) -> float:
    """The distance of two shapes of POLYTOPES."""
    (p, radius_p), (q, radius_q) = (core(model, pose, row) for row in (first, second))
    return polytope_distance(p, q) - radius_p - radius_q


@pytest.mark.share(10, 2)
@pytest.mark.parametrize("size", [0.01, 1.0])
@pytest.mark.parametrize("other", OTHERS)
def test_pairs(tmp_path, other, size, record_property):
    rng = np.random.default_rng(list(OTHERS).index(other))
    path = tmp_path / "pair.xml"
    apart = off = 0
    for count in (5, 12, 40, 300):
        path.write_text(two_geoms(rng, other, count, size))
        scene = load(path)
        mj_model = scene.imported.mj_model
        data = mujoco.MjData(scene.imported.mj_model)
        qpos = rng.normal(size=(40, mj_model.nq // 7, 7))
        qpos[..., 3:] /= np.linalg.norm(qpos[..., 3:], axis=-1, keepdims=True)
        qpos[..., :3] *= size * rng.uniform(0.0, 1.5, (40, 1, 1))
        poses = scene.imported.kinematics.poses(qpos.reshape(40, -1))
        contacts = collidecli.collide(scene.model, poses[:, None], gap=100.0 * size)
        for frame in range(len(qpos)):
            data.qpos[:] = qpos[frame].ravel()
            mujoco.mj_kinematics(mj_model, data)
            ends = np.zeros(6)
            theirs = mujoco.mj_geomDistance(mj_model, data, 0, 1, 100.0 * size, ends)
            cell = contacts.cell(frame)
            nearest = int(np.argmin(cell.distance))
            ours = float(cell.distance[nearest])
            normal = cell.normal[nearest].astype(np.float64)
            apart += ours > 0.0
            off += abs(ours - theirs) > SAME * size
            level = EXACT * max(size, abs(ours))
            assert proven_by(scene.model, poses[frame], normal) == pytest.approx(ours, abs=level), (
                count,
                frame,
            )
            if other in ("sphere", "capsule", "box", "mesh"):
                assert ours == pytest.approx(
                    by_facets(scene.model, poses[frame], 0, 1), abs=level
                ), (count, frame)
            elif abs(ours - theirs) > SAME * size:
                # MuJoCo's own direction does not bear out its distance, and does no better than
                # ours.
                along = np.sign(theirs) * (ends[3:] - ends[:3])
                assert proven_by(scene.model, poses[frame], along) <= ours + level, (
                    count,
                    frame,
                    theirs,
                )
    record_property("mujoco_off", f"{off} of 160")
    assert 20 < apart < 140, "poses are not both separated and overlapping"


def proven_by(model: Model, pose: np.ndarray, direction: np.ndarray) -> float:
    if model.shapes.type[0] == ShapeType.PLANE:
        # the only one that a plane has, not rounded to float32
        direction = np.array([0.0, 0.0, 1.0])
    return float(proven(model, pose, 0, 1, direction[None] / np.linalg.norm(direction))[0])


def dm_control(name: str) -> Path:
    """A file or folder of the package, found without importing it."""
    found = importlib.util.find_spec("dm_control")
    if found is None or not found.submodule_search_locations:
        pytest.skip("dm_control is not installed")
    return Path(found.submodule_search_locations[0]) / name


# The pairs that may touch, shape by shape: ours, those of MuJoCo's documented rules, and those that
# MuJoCo reports.

SUITE = [
    *(
        "acrobot",
        "ball_in_cup",
        "cartpole",
        "cheetah",
        "dog",
        "finger",
        "fish",
        "hopper",
        "humanoid",
        "humanoid_CMU",
    ),
    *("lqr", "manipulator", "pendulum", "point_mass", "reacher", "stacker", "swimmer", "walker"),
]
WITHOUT_CONTACTS = {
    "acrobot",
    "cartpole",
    "fish",
    "lqr",
    "pendulum",
    "point_mass",
    "reacher",
    "swimmer",
}
LOCOMOTION = {
    "soccer/assets/boxhead/boxhead": True,
    "walkers/assets/humanoid_CMU_V2019": True,
    "walkers/assets/humanoid_CMU_V2020": True,
    "walkers/assets/jumping_ball/jumping_ball_with_head": False,
    "walkers/assets/rodent": True,
    "walkers/assets/dog_v2/dog": True,
    "walkers/assets/fruitfly_v2/floor": True,
    "walkers/assets/build_fruitfly/floor": True,
}
"""Whether any pair may touch. Of build_fruitfly the meshes that are only seen are not shipped."""
WALKERS = [
    ("cmu_humanoid", "CMUHumanoid"),
    ("ant", "Ant"),
    ("jumping_ball", "JumpingBallWithHead"),
    ("jumping_ball", "RollingBallWithHead"),
    ("rodent", "Rat"),
    ("fruitfly_v2", "FruitFly"),
]


def checked(mj_model: mujoco.MjModel, ours: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """The pairs, once all three agree."""
    assert ours == ruled_pairs(mj_model)
    assert ours == reported_pairs(mj_model)
    return ours


def check_file(path: Path, whole: bool = True) -> set[tuple[int, int]]:
    """whole: MuJoCo compiles the file as it is, and judges that rather than what we compiled."""
    builder = ModelBuilder()
    scene = add_mjcf(builder, path)
    ours = our_pairs(scene, builder.finalize())
    with collected_messages():
        mj_model = mujoco.MjModel.from_xml_path(str(path)) if whole else scene.mj_model
    return checked(mj_model, ours)


@pytest.mark.share(2)
@pytest.mark.parametrize("name", SUITE)
def test_suite(name):
    assert bool(check_file(dm_control(f"suite/{name}.xml"))) == (name not in WITHOUT_CONTACTS)


@pytest.mark.share(3, 3)
@pytest.mark.parametrize(("name", "touches"), LOCOMOTION.items())
def test_locomotion(name, touches):
    path = dm_control(f"locomotion/{name}.xml")
    assert bool(check_file(path, whole="build_fruitfly" not in name)) == touches


@pytest.mark.share(2, 2)
@pytest.mark.parametrize(("module", "name"), WALKERS)
def test_composer_walkers_on_a_floor(module, name):
    """As composer writes them: everything attached, named and defaulted by prefixes; given as
    text."""
    walkers = pytest.importorskip(f"dm_control.locomotion.walkers.{module}")
    floors = importlib.import_module("dm_control.locomotion.arenas.floors")
    walker = getattr(walkers, name)()
    arena = floors.Floor()
    walker.create_root_joints(arena.attach(walker))
    text = arena.mjcf_model.to_xml_string()
    compiled = compile_mjcf("arena", text)
    builder = ModelBuilder()
    scene = add_compiled(builder, compiled, SceneOptions())
    ours = checked(compiled.mj_model, our_pairs(scene, builder.finalize()))
    floor = scene.mj_model.geom("groundplane").id
    assert any(floor in pair for pair in ours), "the walker stands on nothing"


def test_sample():
    assert len(check_file(Path("samples/02_humanoid/humanoid.xml"))) > 100


# Contact parameters of MJCF scenes against MuJoCo's own contacts: friction, dim, solref, solimp of
# every pair.

COLUMNS = (
    "friction",
    "torsional_friction",
    "rolling_friction",
    "condim",
    "friction5",
    "solref",
    "solimp",
)
GEOMS = 24
ROUNDING = 2.0**-23
"""Of float32 columns: one rounding of MuJoCo's float64, and one in the last place of a sum taken in
another order."""


def numbers(values) -> str:
    return " ".join(repr(float(value)) for value in np.atleast_1d(values))


def random_solref(rng: np.random.Generator) -> np.ndarray:
    """Standard, direct (both negative), mixed signs, zeros."""
    kind = rng.integers(5)
    standard = rng.uniform(0.005, 0.1), rng.uniform(0.5, 2.0)
    direct = -rng.uniform(100.0, 5000.0), -rng.uniform(10.0, 100.0)
    return np.array([standard, standard, direct, (standard[0], direct[1]), (0.0, 0.0)][kind])


def random_solimp(rng: np.random.Generator) -> np.ndarray:
    return np.array(
        [*np.sort(rng.uniform(0.1, 0.99, 2)), *rng.uniform(0.001, 0.01, 1), 0.5, rng.integers(1, 4)]
    )


def attributes(rng: np.random.Generator, friction_count: int) -> str:
    return (
        f'condim="{rng.choice([1, 3, 4, 6])}"'
        f' friction="{numbers(random_friction(rng, friction_count))}"'
        f' solref="{numbers(random_solref(rng))}" solimp="{numbers(random_solimp(rng))}"'
    )


def random_friction(rng: np.random.Generator, count: int) -> np.ndarray:
    """Some zero: MuJoCo raises them to its least coefficient."""
    return np.where(rng.random(count) < 0.2, 0.0, rng.uniform(1e-6, 2.0, count))


def heap(seed: int, option: str = "") -> str:
    """Spheres and boxes, all in one place, no two alike, and every sixth pair of neighbours a
    <pair>."""
    rng = np.random.default_rng(seed)
    bodies = []
    pairs = []
    for k in range(GEOMS):
        solmix = rng.choice([0.0, 1.0, rng.uniform(0.0, 5.0), 1e-16, -1.0])
        kind = 'type="sphere" size="0.5"' if rng.random() < 0.7 else 'type="box" size="0.4 0.5 0.6"'
        bodies.append(
            f'<body pos="{numbers(rng.uniform(-0.05, 0.05, 3))}"><freejoint/><geom name="g{k}"'
            f' {kind} priority="{rng.integers(-1, 2)}" solmix="{numbers(solmix)}"'
            f" {attributes(rng, 3)}/></body>"
        )
        if k % 6 == 5:
            own = attributes(rng, 5) if rng.random() < 0.7 else ""
            pairs.append(f'<pair geom1="g{k}" geom2="g{k - 1}" margin="0.01" {own}/>')
    return f"<mujoco>{option}<worldbody>{''.join(bodies)}</worldbody><contact>{''.join(pairs)}</contact></mujoco>"


@dataclass(frozen=True)
class Both:
    """A scene's contacts here, MuJoCo's, and the row of our shapes of each geom."""

    ours: Contacts
    theirs: Any
    shape_row: np.ndarray

    def rows_of(self, contact: int) -> np.ndarray:
        """Our contacts of the pair of one of MuJoCo's."""
        a, b = np.sort(self.shape_row[self.theirs.geom[contact]])
        return np.flatnonzero((self.ours.shape0 == a) & (self.ours.shape1 == b))


def in_both(folder: Path, text: str, **options) -> Both:
    path = folder / "scene.xml"
    path.write_text(text)
    builder = collidecli.ModelBuilder()
    imported = add_mjcf(builder, path)
    ours = collidecli.collide(builder.finalize(), device="cpu", columns=COLUMNS, **options)
    data = mujoco.MjData(imported.mj_model)
    with collected_messages():
        mujoco.mj_forward(imported.mj_model, data)
    return Both(ours, data.contact, imported.shape_row)


def compare_parameters(both: Both) -> int:
    """Asserts that each of MuJoCo's contacts has its parameters in ours; how many there were."""
    columns = both.ours.columns
    theirs = both.theirs
    for k in range(len(theirs.dist)):
        rows = both.rows_of(k)
        assert len(rows), "the pair has no contact here"
        expected = {
            "condim": theirs.dim[k],
            "friction5": theirs.friction[k],
            "friction": theirs.friction[k, 0],
            "torsional_friction": theirs.friction[k, 2],
            "rolling_friction": theirs.friction[k, 3],
            "solref": theirs.solref[k],
            "solimp": theirs.solimp[k],
        }
        for name, value in expected.items():
            for row in rows:
                np.testing.assert_allclose(
                    columns[name][row], value, rtol=ROUNDING, atol=0, err_msg=name
                )
    return len(theirs.dist)


@pytest.mark.share(2, 2)
@pytest.mark.parametrize("seed", range(6))
def test_random_scenes_have_mujocos_parameters(tmp_path, seed):
    assert compare_parameters(in_both(tmp_path, heap(seed))) > 150


def test_override(tmp_path):
    """The option's own friction and solver parameters in place of all others; condim stays the
    geoms'."""
    option = (
        '<option o_friction="0.7 0.7 0.03 0.002 0.002" o_solref="0.05 0.9" o_solimp="0.3 0.6 0.01'
        ' 0.4 3" o_margin="0.02"><flag override="enable"/></option>'
    )
    both = in_both(tmp_path, heap(1, option))
    assert compare_parameters(both) > 150
    assert set(both.ours.columns["condim"]) == {1, 3, 4, 6}


@pytest.mark.parametrize(
    ("friction", "warns"),
    [
        ("0.7 0.1 0.03 0.002 0.002", True),
        ("0.7 0.7 0.03 0.002 0.001", True),
        ("0.7 0.7 0.03 0.002 0.002", False),
    ],
)
def test_friction_with_two_directions_is_warned_of(tmp_path, friction, warns):
    option = f'<option o_friction="{friction}"><flag override="enable"/></option>'
    path = tmp_path / "scene.xml"
    path.write_text(
        heap(1, option).replace('margin="0.01"', 'margin="0.01" solreffriction="0.1 1"', 1)
    )
    warnings = add_mjcf(collidecli.ModelBuilder(), path).warnings
    assert len([w for w in warnings if w.startswith(f"o_friction is {friction}")]) == warns
    assert (
        "solreffriction of the <pair> of 'g4' and 'g5' is not stored in a contact set" in warnings
    )


@pytest.mark.rest
def test_scenes_of_the_control_suite():
    """Surfaces that people wrote: contacts of random poses, each against what its two geoms mix to
    here."""
    scenes = sorted(dm_control("suite").glob("*.xml"))
    rng = np.random.default_rng(0)
    compared: dict[str, int] = {}
    refused: list[str] = []
    for path in scenes:
        builder = collidecli.ModelBuilder()
        try:
            imported = add_mjcf(builder, path)
        except collidecli.InputError as error:
            refused.append(error.what)
            continue
        mixing = ContactMixing.of_model(builder.finalize())
        mj_model = imported.mj_model
        data = mujoco.MjData(imported.mj_model)
        for _ in range(40):
            data.qpos[:] = mj_model.qpos0 + rng.uniform(-1.0, 1.0, mj_model.nq)
            mujoco.mj_fwdPosition(mj_model, data)
            theirs = data.contact
            rows = np.sort(imported.shape_row[theirs.geom.reshape(-1, 2)], axis=1)
            ours = mixing.of_pairs(rows[:, 0], rows[:, 1])
            for name, value in (
                ("friction5", theirs.friction),
                ("solref", theirs.solref),
                ("solimp", theirs.solimp),
            ):
                np.testing.assert_allclose(
                    ours[name], value.reshape(ours[name].shape), rtol=1e-15, err_msg=str(path)
                )
            np.testing.assert_array_equal(ours["condim"], theirs.dim)
            compared[path.stem] = compared.get(path.stem, 0) + len(rows)
    assert not refused
    assert len(compared) > 15
    assert sum(compared.values()) > 1000


# dm_control's quadruped on its terrain: the pairs that touch and their depths are mj_collision's.


def test_quadruped(tmp_path):
    pytest.importorskip("dm_control")
    from tests.support.piles import walk, write_quadruped

    builder = ModelBuilder()
    imported = add_mjcf(builder, write_quadruped(tmp_path, 201))
    mj_model = imported.mj_model
    row = imported.shape_row
    qpos = walk(mj_model, 150, every=10, settle=300)
    contacts = collidecli.collide(
        builder.finalize(), imported.kinematics.poses(qpos)[:, None], gap=2 * BAND
    )
    terrain = int(row[mj_model.geom("terrain").id])
    data = mujoco.MjData(mj_model)
    mj_model.geom_margin[:] = BAND
    compared = 0
    for frame, coordinates in enumerate(qpos):
        data.qpos[:] = coordinates
        mujoco.mj_kinematics(mj_model, data)
        mujoco.mj_comPos(mj_model, data)
        mujoco.mj_collision(mj_model, data)
        theirs = defaultdict(lambda: np.inf)
        ours = defaultdict(lambda: np.inf)
        for contact in data.contact:
            pair = tuple(sorted(int(row[geom]) for geom in contact.geom))
            theirs[pair] = min(theirs[pair], contact.dist)
        cell = contacts.cell(frame)
        for shape0, shape1, distance in zip(cell.shape0, cell.shape1, cell.distance, strict=True):
            ours[int(shape0), int(shape1)] = min(ours[int(shape0), int(shape1)], float(distance))
        for pair in {pair for pair in (*theirs, *ours) if terrain in pair}:
            if min(ours[pair], theirs[pair]) < -BAND:
                compared += 1
                # MuJoCo's search for a depth ends at 1e-6 m.
                assert ours[pair] == pytest.approx(theirs[pair], abs=5e-6), (frame, pair)
    assert compared > 50
