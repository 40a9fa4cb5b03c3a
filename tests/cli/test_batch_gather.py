"""`collide batch gather`: the values of every format against the contact sets, and what is refused."""

from __future__ import annotations

import json
import shutil
from contextlib import chdir
from pathlib import Path

import h5py
import numpy as np
import pandas
import pyarrow
import pyarrow.parquet as parquet
import pytest

from collidecli.batch import gather as gather_merge
from collidecli.batch import gather_formats
from collidecli.batch.plan import read_plan
from collidecli.batch.store import Failure, Store, open_store
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.file_hash import file_sha256
from tests.cli.conftest import SCENE, CommandLine, refusals
from tests.cli.test_hydroelastic import scene, stiffness
from tests.cli.test_recordings import falling, write_demos
from tests.support.batches import compute, plan

JOBS = """
[[job]]
name = "lift"
motion = ["demos/*.hdf5"]
options = { gap = 0.2, device = "cpu" }
"""
FOLDERS = ("merge", "parquet", "lerobot", "robomimic")
LENGTHS = {"demo_0": 12, "demo_2": 9, "demo_10": 7}


def write_recordings(folder: Path) -> None:
    """demos/one.hdf5 and demos/two.hdf5, and jobs.toml."""
    (folder / "demos").mkdir()
    states = falling()
    states[:, 3] -= 0.098  # of the ball: it touches the base after some frames
    write_demos(folder / "demos/one.hdf5", {name: states[:length] for name, length in LENGTHS.items()})
    write_demos(folder / "demos/two.hdf5", {"demo_0": states[:5]})
    (folder / "jobs.toml").write_text(JOBS)


@pytest.fixture
def batch(here: Path) -> Path:
    """The current folder with the recordings."""
    write_recordings(here)
    return here


@pytest.fixture(scope="module")
def computed(tmp_path_factory) -> Path:
    """A folder with the recordings and with B, in which every episode is computed."""
    folder = tmp_path_factory.mktemp("batch")
    with chdir(folder):
        write_recordings(folder)
        compute(CommandLine())
    return folder


@pytest.fixture
def done(computed: Path, tmp_path: Path, collide) -> Path:
    """The current folder is a copy of the computed one."""
    return Path(shutil.copytree(computed, tmp_path, dirs_exist_ok=True))


def gather(collide, to: str, output: str = "out", *words: str) -> dict:
    answer = collide.ok("batch gather B --json --to", to, "-o", output, *words)
    assert answer.err == ""
    return json.loads(answer.out)


def contact_sets() -> list[tuple[str, str, ContactSet]]:
    """Name of recording and demonstration, and the contact set, in the order of numbers in names."""
    store = open_store("B")
    found = [(Path(one.motion).stem, one.demo, one.key) for one in read_plan(store).episodes]
    found.sort(key=lambda one: (one[0], int(one[1].removeprefix("demo_"))))
    return [(stem, demo, ContactSet.open(store.result_location(key))) for stem, demo, key in found]


def files_of(folder: str) -> set[str]:
    return {str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file()}


def test_parquet_has_the_contacts_of_every_episode(done, collide):
    answer = gather(collide, "parquet")
    assert files_of("out") == {"contacts-00000.parquet", "episodes.parquet", "gather.json"}
    episodes = parquet.read_table("out/episodes.parquet").to_pylist()
    rows = parquet.read_table("out/contacts-00000.parquet").to_pandas()
    assert list(rows.columns[:4]) == ["job", "episode_index", "frame_index", "step"]
    assert answer["contacts"] == len(rows) > 0
    assert set(rows["job"]) == {"lift"}
    sets = contact_sets()
    assert [(Path(row["motion"]).stem, row["demo"]) for row in episodes] == [one[:2] for one in sets]
    assert [row["episode_index"] for row in episodes] == [0, 1, 2, 3]
    for row, (_, _, contacts) in zip(episodes, sets, strict=True):
        assert (row["frames"], row["content_sha256"]) == (contacts.frame_count, contacts.content_sha256)
        ours = rows[rows["episode_index"] == row["episode_index"]]
        assert row["contacts"] == len(ours) == contacts.contact_count
        counts = np.diff(contacts.cell_start())
        np.testing.assert_array_equal(ours["frame_index"], np.repeat(np.arange(contacts.frame_count), counts))
        np.testing.assert_array_equal(ours["distance"], contacts.column("distance"))
        np.testing.assert_array_equal(ours["point0_z"], contacts.column("point0")[:, 2])
        assert ours["shape1"].tolist() == [contacts.shapes.path[row] for row in contacts.column("shape1")]
        np.testing.assert_array_equal(ours["time"], np.repeat(contacts.time, counts))


def test_parquet_files_end_with_an_episode(done, collide, monkeypatch):
    monkeypatch.setattr(gather_formats, "GROUP_BYTES", 1)
    gather(collide, "parquet", "groups")
    held = parquet.ParquetFile("groups/contacts-00000.parquet")
    found = [set(held.read_row_group(k)["episode_index"].to_pylist()) for k in range(held.num_row_groups)]
    assert found == [{0}, {1}, {2}, {3}]
    monkeypatch.setattr(gather_formats, "PART_BYTES", 1)
    gather(collide, "parquet", "files")
    found = [set(parquet.read_table(f"files/contacts-{k:05d}.parquet")["episode_index"].to_pylist()) for k in range(4)]
    assert found == [{0}, {1}, {2}, {3}]
    one = pyarrow.concat_tables([parquet.read_table(f"files/contacts-{k:05d}.parquet") for k in range(4)])
    other = parquet.read_table("groups/contacts-00000.parquet")
    assert one.to_pylist() == other.to_pylist()


PAIRS = ("--pairs", "*ball *base", "--pairs", "*far *base")


def least_distances(contacts: ContactSet) -> list[float]:
    """Of ball and base in every frame [m]."""
    found = []
    for frame in range(contacts.frame_count):
        cell = contacts.cell(frame)
        names = [
            {contacts.shapes.path[a], contacts.shapes.path[b]} for a, b in zip(cell.shape0, cell.shape1, strict=True)
        ]
        held = [
            d for d, pair in zip(cell.distance.tolist(), names, strict=True) if all("far" not in name for name in pair)
        ]
        found.append(min(held, default=float("inf")))
    return found


def test_robomimic_has_a_file_for_each_recording(done, collide):
    gather(collide, "robomimic", "out", *PAIRS)
    assert files_of("out") == {"lift/one.hdf5", "lift/two.hdf5", "gather.json"}
    for stem, demo, contacts in contact_sets():
        with h5py.File(f"out/lift/{stem}.hdf5") as file, h5py.File(f"demos/{stem}.hdf5") as source:
            assert list(file["data"]) == list(source["data"])
            assert file.attrs["recording_sha256"] == file_sha256(f"demos/{stem}.hdf5")
            group = file[f"data/{demo}"]
            assert group.attrs["num_samples"] == len(source[f"data/{demo}/states"]) == contacts.frame_count
            held = group["contacts"]
            np.testing.assert_array_equal(held["contact_start"], contacts.cell_start())
            assert tuple(held["shape_path"].asstr()) == contacts.shapes.path
            for name in contacts.column_names:
                np.testing.assert_array_equal(held[name], contacts.column(name))
                assert held[name].dtype == contacts.column(name).dtype
            assert held["distance"].attrs["unit"] == "m"
            labels = group["pairs"]
            assert list(labels.attrs["names"]) == ["*ball *base", "*far *base"]
            expected = least_distances(contacts)
            np.testing.assert_array_equal(labels["distance"][:, 0], np.float32(expected))
            np.testing.assert_array_equal(labels["touching"][:, 0], np.array(expected) <= 0.0)
            assert not labels["touching"][:, 1].any()
            assert np.isinf(labels["distance"][:, 1]).all()
            assert labels["touching"][:, 0].any()
            assert not labels["touching"][0, 0]


def test_lerobot_has_a_row_for_each_frame(done, collide):
    gather(collide, "lerobot", "out", *PAIRS)
    assert files_of("out") == {
        "data/chunk-000/file-000.parquet",
        "meta/episodes/chunk-000/file-000.parquet",
        "meta/info.json",
        "meta/shapes.parquet",
        "meta/tasks.parquet",
        "gather.json",
    }
    info = json.loads(Path("out/meta/info.json").read_text())
    rows = parquet.read_table("out/data/chunk-000/file-000.parquet").to_pandas()
    assert info["codebase_version"] == "v3.0"
    assert set(info["features"]) == set(rows.columns)
    assert (info["total_episodes"], info["total_frames"]) == (4, len(rows))
    assert info["features"]["contact.pair_touching"]["names"] == ["*ball *base", "*far *base"]
    assert info["data_path"].format(chunk_index=0, file_index=0) == "data/chunk-000/file-000.parquet"
    assert rows["index"].tolist() == list(range(len(rows)))
    shapes = parquet.read_table("out/meta/shapes.parquet")["path"].to_pylist()
    episodes = parquet.read_table("out/meta/episodes/chunk-000/file-000.parquet").to_pylist()
    for number, ((_, demo, contacts), episode) in enumerate(zip(contact_sets(), episodes, strict=True)):
        ours = rows[rows["episode_index"] == number]
        assert (episode["demo"], episode["length"]) == (demo, len(ours))
        assert ours["index"].iloc[0] == episode["dataset_from_index"]
        assert ours["index"].iloc[-1] == episode["dataset_to_index"] - 1
        assert ours["frame_index"].tolist() == list(range(contacts.frame_count))
        np.testing.assert_allclose(ours["timestamp"], contacts.time, atol=1e-6)
        assert info["fps"] == pytest.approx(1.0 / np.median(np.diff(contacts.time)), rel=1e-3)
        for frame in range(contacts.frame_count):
            row, cell = ours.iloc[frame], contacts.cell(frame)
            np.testing.assert_array_equal(row["contact.distance"], cell.distance)
            np.testing.assert_array_equal(row["contact.normal_z"], cell.normal[:, 2])
            paths = [shapes[index] for index in row["contact.shape0"]]
            assert paths == [contacts.shapes.path[index] for index in cell.shape0]
        expected = np.float32(least_distances(contacts))
        np.testing.assert_array_equal(np.stack(ours["contact.pair_distance"])[:, 0], expected)
        np.testing.assert_array_equal(np.stack(ours["contact.pair_touching"])[:, 0], expected <= 0.0)
    assert pandas.read_parquet("out/meta/tasks.parquet").index.tolist() == ["lift"]


def test_lerobot_with_one_pair_has_plain_columns(done, collide):
    """LeRobot has single values, not lists, for a feature of shape [1]."""
    gather(collide, "lerobot", "out", *PAIRS[:2])
    table = parquet.read_table("out/data/chunk-000/file-000.parquet")
    assert table.schema.field("contact.pair_touching").type == pyarrow.bool_()
    assert table.schema.field("contact.pair_distance").type == pyarrow.float32()


def test_merge_has_a_world_for_each_episode(done, collide, monkeypatch):
    gather(collide, "merge")
    assert files_of("out") == {"lift/shard-00000.h5", "gather.json"}
    collide.ok("check out/lift/shard-00000.h5")
    sets = contact_sets()
    with ContactSet.open("out/lift/shard-00000.h5") as merged:
        assert merged.episodes is not None
        assert merged.episodes.name == tuple(f"{stem}/{demo}" for stem, demo, _ in sets)
        assert merged.frame_count == 12
        for world, (_, _, contacts) in enumerate(sets):
            assert merged.episodes.frame_count[world] == contacts.frame_count
            for frame in range(merged.frame_count):
                cell = merged.cell(frame, world)
                if frame >= contacts.frame_count:
                    assert cell.contact_count == 0
                    continue
                for name, values in contacts.cell(frame).columns.items():
                    np.testing.assert_array_equal(cell.columns[name], values)
    monkeypatch.setattr(gather_merge, "SHARD_BYTES", 1)
    gather(collide, "merge", "many")
    assert files_of("many") == {*(f"lift/shard-{k:05d}.h5" for k in range(4)), "gather.json"}


def test_merge_refuses_other_scenes_by_name(batch, collide):
    states = falling()
    other = SCENE.replace('size="0.5"', 'size="0.4"')
    write_demos(batch / "demos/two.hdf5", {"demo_0": states[:5]}, {"demo_0": other})
    compute(collide)
    collide.refused("batch gather B --to merge -o out", told="scene")
    for to in ("parquet", "robomimic", "lerobot"):
        gather(collide, to, f"out_{to}")


test_wrong_pairs_are_refused = refusals(
    "batch gather B -o out",
    ("--to parquet --pairs 'a b'", "--pairs: has no effect"),
    ("--to lerobot --pairs ball", "not two patterns"),
    ("--to lerobot --pairs 'a b' --pairs 'a  b'", "given twice"),
    ("--to lerobot --pairs '*ball *cube'", "'*cube' matches no shape"),
    ("--to robomimic --pairs '*ball *cube'", "'*cube' matches no shape"),
    needs="done",
)


@pytest.mark.parametrize("to", ["lerobot", "robomimic"])
@pytest.mark.parametrize(("options", "said"), [("frames = '2:5', ", "some frames"), ("worlds = 2, ", "2 worlds")])
def test_rows_that_are_not_recorded_frames_are_refused(here, collide, to, options, said):
    demo = to == "robomimic" and "frames" in options
    if demo:
        write_demos(here / "demo.hdf5", {"demo_0": falling()})
    motion = "demo.hdf5" if demo else "motion.h5"
    job = f"[[job]]\nname = 'a'\nscene = 'scene.xml'\nmotion = '{motion}'\noptions = {{ {options}gap = 0.1 }}\n"
    (here / "jobs.toml").write_text(job)
    compute(collide)
    told = said if to == "lerobot" or demo else "no demonstration of an HDF5 recording"
    collide.refused("batch gather B -o out --to", to, told=told)


@pytest.mark.parametrize("to", FOLDERS)
def test_failed_episodes_are_left_out_and_counted(batch, collide, to):
    made, store = plan(collide), open_store("B")
    bad = next(one for one in made.episodes if one.demo == "demo_2")
    store.fail(Failure(bad.key, bad.job, bad.motion, "is damaged", 2, "here", demo=bad.demo))
    collide.refused("batch gather B -o out --to", to, told="have no contact set")
    compute(collide)
    answer = gather(collide, to)
    assert (answer["episodes"], answer["failed"]) == (3, 1)
    if to == "parquet":
        assert parquet.read_table("out/episodes.parquet")["episode_index"].to_pylist() == [0, 2, 3]


@pytest.mark.share(2)
@pytest.mark.parametrize("to", FOLDERS)
def test_nothing_half_written_is_left(done, collide, to):
    """A damaged contact set ends the gathering; an earlier output stays as it was."""
    gather(collide, to)
    collide.refused("batch gather B --to", to, "-o", "out", told="exists already", code=3)
    last = Path(contact_sets()[-1][2].path)
    last.write_bytes(last.read_bytes()[:2000])
    collide.refused("batch gather B --to", to, "-o", "out", "--force", told=last.name)
    collide.refused("batch gather B --to", to, "-o", "new")
    assert not list(Path().glob("collide_*"))


@pytest.mark.share(2)
@pytest.mark.parametrize("to", FOLDERS)
def test_force_replaces_only_folders_of_gather(done, collide, to):
    gather(collide, to)
    Path("out/stale").write_text("")
    gather(collide, to, "out", "--force")
    assert "stale" not in files_of("out")
    for output, told in (("demos", "no folder of collide batch gather"), ("no/folder", "does not exist")):
        collide.refused("batch gather B --force --to", to, "-o", output, told=told, code=3)


JOB = '[[job]]\nname = "box"\nscene = "scene.usda"\noptions = { hydro-surface = true, device = "cpu" }\n'


@pytest.fixture
def hydroelastic_set(here: Path, collide) -> str:
    """The contact set of the one episode of the batch B."""
    scene(here, stiffness("3e6"), stiffness("7e6"))
    Path("jobs.toml").write_text(JOB)
    (episode,) = compute(collide).episodes
    return Store("B").result_location(episode.key)


def test_parquet_has_a_file_for_each_group(hydroelastic_set, collide):
    collide.ok("batch gather B --to parquet -o out")
    assert len(parquet.read_table("out/contacts-00000.parquet")) == 0
    with ContactSet.open(hydroelastic_set) as contacts:
        held = contacts.cell(0).groups
    for name, groups in held.items():
        rows = parquet.read_table(f"out/{name}-00000.parquet").to_pydict()
        assert rows["episode_index"] == [0] * groups.row_count
        np.testing.assert_array_equal(rows["area"], groups.columns["area"])
        assert {rows["shape0"][0], rows["shape1"][0]} == {"/ground", "/box"}
    assert set(held) == {"hydro_patches", "hydro_faces"}
    counts = {name: groups.row_count for name, groups in held.items()}
    assert collide.result("batch gather B -o B.parquet")["groups"] == counts
    for table in ("B.parquet", "out/episodes.parquet"):
        (row,) = parquet.read_table(table).to_pylist()
        assert {name: row[name] for name in counts} == counts
        assert row["contacts"] == 0
    assert f"hydro faces    {counts['hydro_faces']:,}" in collide("batch gather B -o C.parquet").out


def test_a_row_for_each_frame_refuses_surfaces_that_no_contact_replaces(hydroelastic_set, collide):
    told = "has hydro patches and hydro faces, and --to lerobot writes contacts of rigid shapes alone"
    collide.refused("batch gather B --to lerobot -o out", told=(told, "--hydro-reduce"))
    Path("jobs.toml").write_text(JOB.replace("hydro-surface", "hydro-reduce"))
    compute(collide, "R")
    collide.ok("batch gather R --to lerobot -o out --pairs", "*box *ground")
    rows = parquet.read_table("out/data/chunk-000/file-000.parquet").to_pydict()
    assert rows["contact.pair_touching"] == [True]
