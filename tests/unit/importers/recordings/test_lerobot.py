"""LeRobot data sets: body poses of recorded joint positions, episodes by name, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import mujoco
import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import pytest

from collidecli.batch.plan import read_plan
from collidecli.batch.store import Store, open_store
from collidecli.batch.work import work_shard
from collidecli.storage.contact_sets.reader import ContactSet
from tests.cli.conftest import collide, here  # noqa: F401 - fixtures

ARM = """<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 0.1"/>
    <body name="upper" pos="0 0 0.5">
      <joint name="shoulder" type="hinge" axis="0 1 0"/>
      <geom name="upper" type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
      <body name="lower" pos="0.3 0 0">
        <joint name="elbow" type="hinge" axis="0 1 0"/>
        <geom name="tip" type="sphere" pos="0.3 0 0" size="0.05"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
LENGTHS = (6, 4, 5)


def states() -> list[np.ndarray]:
    """Shoulder and elbow of each episode [rad]; the tip approaches the floor."""
    return [np.linspace((0.3, 0.1 * k), (0.9, 0.2), length) for k, length in enumerate(LENGTHS)]


def write_data_set(root: Path, names: object = ("shoulder", "elbow"), version: str = "v3.0", **feature) -> None:
    """A data set of two data files, as lerobot writes it."""
    (root / "meta/episodes/chunk-000").mkdir(parents=True)
    (root / "data/chunk-000").mkdir(parents=True)
    described = {"dtype": "float32", "shape": [2], "names": list(names) if isinstance(names, tuple) else names}
    info = {"codebase_version": version, "fps": 10, "features": {"observation.state": described | feature}}
    (root / "meta/info.json").write_text(json.dumps(info, indent=4))
    table = pyarrow.table({"episode_index": range(3), "length": LENGTHS})
    parquet.write_table(table, root / "meta/episodes/chunk-000/file-000.parquet")
    for file, episodes in enumerate(((0, 1), (2,))):
        parts = [states()[k].astype(np.float32) for k in episodes]
        flat = pyarrow.array(np.concatenate(parts).reshape(-1))
        columns = {
            "observation.state": pyarrow.FixedSizeListArray.from_arrays(flat, 2),
            "episode_index": np.repeat(episodes, [len(part) for part in parts]),
            "frame_index": np.concatenate([np.arange(len(part)) for part in parts]),
        }
        parquet.write_table(pyarrow.table(columns), root / f"data/chunk-000/file-{file:03d}.parquet")


@pytest.fixture
def data_set(here: Path) -> Path:  # noqa: F811
    """The current folder with arm.xml and the data set `arm`."""
    (here / "arm.xml").write_text(ARM)
    write_data_set(here / "arm")
    return here


def tip_heights(states: np.ndarray) -> list[float]:
    """Distance of the tip's surface to the floor in each frame [m], by MuJoCo."""
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    found = []
    for row in np.float32(states):
        data.qpos[:] = row
        mujoco.mj_kinematics(model, data)
        found.append(float(data.geom("tip").xpos[2]) - 0.05)
    return found


RUN = ("run", "arm.xml", "-t", "arm/meta/info.json", "--gap", "0.5", "--device", "cpu", "-o", "out.h5")


def test_an_episode_moves_the_joints_of_its_states(data_set, collide):  # noqa: F811
    for number, expected in enumerate(states()):
        answer = collide(*RUN, "--demos", f"episode_{number}", "--force")
        assert answer.code == 0, answer.err
        with ContactSet.open("out.h5") as contacts:
            assert contacts.frame_count == len(expected)
            np.testing.assert_allclose(contacts.time, np.arange(len(expected)) / 10.0)
            for frame, height in enumerate(tip_heights(expected)):
                cell = contacts.cell(frame)
                rows = [k for k, row in enumerate(cell.shape1) if "tip" in contacts.shapes.path[row]]
                rows = rows or [k for k, row in enumerate(cell.shape0) if "tip" in contacts.shapes.path[row]]
                if height < 0.5:
                    assert min(cell.distance[rows]) == pytest.approx(height, abs=1e-6)


@pytest.mark.parametrize("elbow", ["hinge", "slide"])
def test_angles_in_degrees(data_set, collide, monkeypatch, elbow):  # noqa: F811
    Path("arm.xml").write_text(ARM.replace('name="elbow" type="hinge"', f'name="elbow" type="{elbow}"'))
    in_radians, least = states(), {}
    factor = np.degrees((1.0, 1.0 if elbow == "hinge" else np.radians(1.0)))
    for units, recorded in (("radians", in_radians), ("degrees", [one * factor for one in in_radians])):
        monkeypatch.setitem(globals(), "states", lambda recorded=recorded: recorded)
        shutil.rmtree("arm")
        write_data_set(Path("arm"))
        answer = collide(*RUN, "--uneven-demos", "hold", "--joint-units", units, "--force")
        assert answer.code == 0, answer.err
        with ContactSet.open("out.h5") as contacts:
            least[units] = [block.distance for block in contacts.blocks()]
    np.testing.assert_allclose(np.concatenate(least["degrees"]), np.concatenate(least["radians"]), atol=1e-6)
    assert len(least["radians"][0]) > 3


def test_a_batch_numbers_episodes_as_the_data_set_does(data_set, collide):  # noqa: F811
    job = '[[job]]\nname = "arm"\nscene = "arm.xml"\nmotion = ["arm"]\noptions = { gap = 0.5, device = "cpu" }\n'
    Path("jobs.toml").write_text(job)
    assert collide("batch", "plan", "jobs.toml", "-o", "B").code == 0
    plan = read_plan(Store("B"))
    assert {one.demo for one in plan.episodes} == {"episode_0", "episode_1", "episode_2"}
    for shard in range(plan.shard_count):
        work_shard("B", shard)
    assert not open_store("B").failures()
    assert collide("batch", "gather", "B", "--to", "lerobot", "-o", "out", "--pairs", "*tip *floor").code == 0
    rows = parquet.read_table("out/data/chunk-000/file-000.parquet").to_pandas()
    source = parquet.read_table("arm/data").to_pandas()
    for name in ("episode_index", "frame_index"):
        assert rows[name].tolist() == source[name].tolist()
    heights = np.concatenate([tip_heights(one) for one in states()])
    near = np.isfinite(rows["contact.pair_distance"])
    np.testing.assert_allclose(rows["contact.pair_distance"][near], heights[near], atol=1e-6)
    assert near.any()
    Path("some.toml").write_text(job.replace("gap", "demos = 'episode_2', gap"))
    assert collide("batch", "plan", "some.toml", "-o", "S").code == 0
    work_shard("S", 0)
    assert collide("batch", "gather", "S", "--to", "parquet", "-o", "some").code == 0
    assert parquet.read_table("some/episodes.parquet")["episode_index"].to_pylist() == [2]
    Path("two.toml").write_text(job + job.replace('"arm"\nscene', '"again"\nscene').replace("0.5", "0.4"))
    assert collide("batch", "plan", "two.toml", "-o", "T").code == 0
    for shard in range(read_plan(Store("T")).shard_count):
        work_shard("T", shard)
    answer = collide("batch", "gather", "T", "--to", "lerobot", "-o", "two")
    assert (answer.code, "plan it alone" in answer.err) == (2, True)
    # The key of an episode depends on the states, not on info.json alone.
    keys = {one.key for one in plan.episodes}
    changed = parquet.read_table("arm/data/chunk-000/file-001.parquet")
    flat = pyarrow.array(np.zeros(2 * len(changed), np.float32))
    column = pyarrow.FixedSizeListArray.from_arrays(flat, 2)
    parquet.write_table(changed.set_column(0, "observation.state", column), "arm/data/chunk-000/file-001.parquet")
    assert collide("batch", "plan", "jobs.toml", "-o", "C").code == 0
    assert not keys & {one.key for one in read_plan(Store("C")).episodes}


@pytest.mark.parametrize(
    ("changes", "words", "said"),
    [
        ({"version": "v2.1"}, (), "has version v2.1"),
        ({"names": None}, (), "no names are given"),
        ({"names": ("shoulder", "wrist")}, (), "has no joint 'wrist'"),
        ({"dtype": "video"}, (), "observation.state is video"),
        ({"shape": [2, 3]}, (), "not floats [joints]"),
        ({}, ("--demos", "episode_7"), "episode_7"),
        ({}, (), "have 4 to 6 frames"),
    ],
)
def test_data_sets_that_do_not_fit_are_refused(data_set, collide, changes, words, said):  # noqa: F811
    words = words or (("--demos", "episode_0") if changes else ())
    write_data_set(data_set / "other", **changes)
    answer = collide(*["other/meta/info.json" if word.endswith("info.json") else word for word in RUN], *words)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert not Path("out.h5").exists()


def test_names_of_joints_can_be_given(data_set, collide):  # noqa: F811
    write_data_set(data_set / "other", names={"motors": ["m0", "m1"]})
    words = ["other/meta/info.json" if word.endswith("info.json") else word for word in RUN]
    answer = collide(*words, "--demos", "episode_0", "--joint-names", "shoulder,elbow", "--json")
    ours = json.loads(answer.out)["content_sha256"]
    theirs = json.loads(collide(*RUN, "--demos", "episode_0", "--force", "--json").out)["content_sha256"]
    with ContactSet.open("out.h5") as contacts:
        assert contacts.content_sha256 == theirs
    assert len(ours) == len(theirs)


@pytest.mark.parametrize("file", ["data/chunk-000/file-000.parquet", "meta/episodes/chunk-000/file-000.parquet"])
def test_damaged_files_are_named(data_set, collide, file):  # noqa: F811
    path = Path("arm", file)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    answer = collide(*RUN, "--demos", "episode_0")
    assert (answer.code, answer.out) == (2, "")
    assert path.name in answer.err
    path.unlink()
    answer = collide(*RUN, "--demos", "episode_0")
    assert (answer.code, answer.out) == (2, "")
    assert "arm" in answer.err


@pytest.mark.parametrize("text", ["{", "{}", '{"codebase_version": 1, "features": 2, "fps": "x"}', "{" * 9999])
def test_a_damaged_description_is_named(data_set, collide, text):  # noqa: F811
    Path("arm/meta/info.json").write_text(text)
    answer = collide(*RUN)
    assert (answer.code, answer.out) == (2, "")
    assert "arm/meta/info.json: is no description" in answer.err


def test_missing_frames_are_refused(data_set, collide):  # noqa: F811
    path = "arm/data/chunk-000/file-000.parquet"
    parquet.write_table(parquet.read_table(path).slice(1), path)
    answer = collide(*RUN, "--demos", "episode_0")
    assert (answer.code, "episode_0 has 5 rows" in answer.err) == (2, True), answer.err


def test_inspect_lists_episodes_and_joints(data_set, collide):  # noqa: F811
    answer = collide("inspect", "arm/meta/info.json")
    assert answer.code == 0, answer.err
    assert "episode_0" in answer.out
    assert "shoulder" in answer.out
