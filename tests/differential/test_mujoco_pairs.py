"""The pairs that may touch, shape by shape: ours, those of MuJoCo's documented rules, and those that MuJoCo reports."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
from pathlib import Path

import mujoco
import pytest

from collidecli.importers.mujoco.compile import collected_messages, compile_mjcf
from collidecli.importers.mujoco.scene import add_compiled, add_mjcf
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import SceneOptions
from tests.support.mujoco_pairs import our_pairs, reported_pairs, ruled_pairs

SUITE = [
    *("acrobot", "ball_in_cup", "cartpole", "cheetah", "dog", "finger", "fish", "hopper", "humanoid", "humanoid_CMU"),
    *("lqr", "manipulator", "pendulum", "point_mass", "reacher", "stacker", "swimmer", "walker"),
]
WITHOUT_CONTACTS = {"acrobot", "cartpole", "fish", "lqr", "pendulum", "point_mass", "reacher", "swimmer"}
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


def dm_control() -> Path:
    """The package's folder, found without importing it."""
    found = importlib.util.find_spec("dm_control")
    if found is None or not found.submodule_search_locations:
        pytest.skip("dm_control is not installed")
    return Path(found.submodule_search_locations[0])


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


@pytest.mark.parametrize("name", SUITE)
def test_suite(name):
    assert bool(check_file(dm_control() / f"suite/{name}.xml")) == (name not in WITHOUT_CONTACTS)


@pytest.mark.share(3)
@pytest.mark.parametrize(("name", "touches"), LOCOMOTION.items())
def test_locomotion(name, touches):
    path = dm_control() / f"locomotion/{name}.xml"
    assert bool(check_file(path, whole="build_fruitfly" not in name)) == touches


@pytest.mark.share(2)
@pytest.mark.parametrize(("module", "name"), WALKERS)
def test_composer_walkers_on_a_floor(module, name):
    """As composer writes them: everything attached, named and defaulted by prefixes; given as text."""
    walkers = pytest.importorskip(f"dm_control.locomotion.walkers.{module}")
    floors = importlib.import_module("dm_control.locomotion.arenas.floors")
    walker, arena = getattr(walkers, name)(), floors.Floor()
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


def test_the_judges_see_pairs_and_not_all_of_them():
    """Without masks, parents and welds every two geoms of two bodies would meet."""
    mj_model = mujoco.MjModel.from_xml_path("samples/02_humanoid/humanoid.xml")
    everything = set(itertools.combinations(range(mj_model.ngeom), 2))
    assert ruled_pairs(mj_model) < everything
    mj_model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_FILTERPARENT
    assert ruled_pairs(mj_model) == reported_pairs(mj_model)
    assert len(ruled_pairs(mj_model)) > len(check_file(Path("samples/02_humanoid/humanoid.xml")))
