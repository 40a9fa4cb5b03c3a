"""`collide batch gather`: the values of every format against the contact sets, and what is
refused."""

import json
import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas
import pyarrow
import pyarrow.parquet as parquet
import pytest
import yaml

from collidecli.analysis.labelled_runs import LabelRule
from collidecli.exporters import parquet_parts
from collidecli.exporters.lerobot import QUANTILES, joined_statistics, statistics_of
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.input_files import file_sha256
from collidecli.verbs.batch import gathered_episodes, lerobot, merged_shards
from collidecli.verbs.batch.plan import read_plan
from collidecli.verbs.batch.store import Failure, Store, open_store
from collidecli.verbs.label.named_pairs import NamedPairs
from tests.cli.conftest import SCENE, CommandLine, refusals
from tests.cli.test_particles import scene, stiffness
from tests.cli.test_recordings import falling, write_demos
from tests.support.batches import compute, plan

JOBS = """
[[job]]
name = "lift"
motion = ["demos/*.hdf5"]
options = { gap = 0.2, device = "cpu" }
"""
FOLDERS = ("merge", "parquet", "lerobot", "robomimic")
GAP = np.float32(0.4)
"""Of a pair: the sum of its shapes'."""
LENGTHS = {"demo_0": 12, "demo_2": 9, "demo_10": 7}


def write_recordings(folder: Path) -> None:
    """demos/one.hdf5 and demos/two.hdf5, and jobs.toml."""
    (folder / "demos").mkdir()
    states = falling()
    states[:, 3] -= 0.098  # of the ball: it touches the base after some frames
    write_demos(
        folder / "demos/one.hdf5", {name: states[:length] for name, length in LENGTHS.items()}
    )
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
    """Name of recording and demonstration, and the contact set, in the order of numbers in
    names."""
    store = open_store("B")
    found = [(Path(one.motion).stem, one.demo, one.key) for one in read_plan(store).episodes]
    found.sort(key=lambda one: (one[0], int(one[1].removeprefix("demo_"))))
    return [(stem, demo, ContactSet.open(store.result_location(key))) for stem, demo, key in found]


def files_of(folder: str) -> set[str]:
    return {str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file()}


def test_parquet_has_the_contacts_of_every_episode(done, collide, monkeypatch):
    answer = gather(collide, "parquet")
    assert files_of("out") == {
        "contacts-00000.parquet",
        "episodes.parquet",
        "gather.json",
        "README.md",
    }
    episodes = parquet.read_table("out/episodes.parquet").to_pylist()
    rows = parquet.read_table("out/contacts-00000.parquet").to_pandas()
    assert list(rows.columns[:4]) == ["job", "episode_index", "frame_index", "step"]
    assert (set(rows["job"]), answer["contacts"]) == ({"lift"}, len(rows))
    sets = contact_sets()
    named = [(Path(row["motion"]).stem, row["demo"], row["episode_index"]) for row in episodes]
    assert named == [(*one[:2], index) for index, one in enumerate(sets)]
    for row, (_, _, contacts) in zip(episodes, sets, strict=True):
        assert (row["frames"], row["content_sha256"]) == (
            contacts.frame_count,
            contacts.content_sha256,
        )
        ours = rows[rows["episode_index"] == row["episode_index"]]
        assert row["contacts"] == len(ours) == contacts.contact_count
        counts = np.diff(contacts.cell_start())
        np.testing.assert_array_equal(
            ours["frame_index"], np.repeat(np.arange(contacts.frame_count), counts)
        )
        np.testing.assert_array_equal(ours["distance"], contacts.column("distance"))
        np.testing.assert_array_equal(ours["point0_z"], contacts.column("point0")[:, 2])
        assert ours["shape1"].tolist() == [
            contacts.shapes.path[row] for row in contacts.column("shape1")
        ]
        np.testing.assert_array_equal(ours["time"], np.repeat(contacts.time, counts))
    monkeypatch.setattr(parquet_parts, "GROUP_BYTES", 1)
    gather(collide, "parquet", "groups")
    held = parquet.ParquetFile("groups/contacts-00000.parquet")
    groups = [held.read_row_group(k).to_pylist() for k in range(held.num_row_groups)]
    assert [{row["episode_index"] for row in group} for group in groups] == [{0}, {1}, {2}, {3}]
    monkeypatch.setattr(parquet_parts, "PART_BYTES", 1)
    gather(collide, "parquet", "files")
    assert [
        parquet.read_table(f"files/contacts-{k:05d}.parquet").to_pylist() for k in range(4)
    ] == groups


def tables_of(folder: str) -> dict[str, list[dict]]:
    """Rows of each table of a folder, by the rules of Hugging Face's `datasets.load_dataset`; the
    first is the default.

    Files of one table have one schema, and no dictionary (`Features.from_arrow_schema`).
    """
    found = {}
    for one in yaml.safe_load(Path(folder, "README.md").read_text().split("---")[1])["configs"]:
        first, *others = [
            parquet.read_table(path) for path in sorted(Path(folder).glob(one["data_files"]))
        ]
        assert all(first.schema.equals(other.schema) for other in others)
        assert not any(pyarrow.types.is_dictionary(field.type) for field in first.schema)
        found[one["config_name"]] = pyarrow.concat_tables([first, *others]).to_pylist()
        assert bool(one.get("default")) == (len(found) == 1)
    return found


def test_slots_write_the_rows_of_one_gathering(done, collide):
    whole = gather(collide, "parquet")
    for slot, left in (("2/3", 2), ("0/3", 1), ("0/3", 1)):
        assert gather(collide, "parquet", "parts", "--slot", slot)["slots_left"] == left
    assert not Path("parts/gather.json").exists()
    answer = gather(collide, "parquet", "parts", "--slot", "1/3")
    assert answer == whole | {"output": "parts", "slots_left": 0}
    assert tables_of("parts") == tables_of("out")
    assert len(tables_of("out")["contacts"]) == whole["contacts"]
    collide.refused(
        "batch gather B --to parquet -o parts --slot 0/2", told="output of other slots", code=3
    )
    collide.refused(
        "batch gather B --to parquet -o out --slot 0/2", told="output of other slots", code=3
    )
    collide.refused("batch gather B --to lerobot -o other --slot 0/2", told="only --to parquet")


def test_a_manifest_trusts_what_runs_recorded(done, collide, monkeypatch):
    opened = []
    checked = gathered_episodes.Gathered.open
    monkeypatch.setattr(
        gathered_episodes.Gathered, "open", lambda *given: opened.append(given) or checked(*given)
    )
    assert gather(collide, "manifest", "all.parquet")["episodes"] == 4
    assert len(opened) == 1
    found = parquet.read_table("all.parquet").to_pylist()
    for log in [path for path in Path("B/events").rglob("*") if path.is_file()]:
        text = log.read_text()
        log.write_text(text.replace('"counts": {"contacts": ', '"counts": {"contacts": 1'))
        told = "has another content hash, or other numbers of rows, than its log"
        collide.refused("batch gather B --to manifest -o other.parquet", told=told)
        log.write_text(text.replace('"counts": {', '"counts": {"frames": "3", '))
    shutil.rmtree("B/events")
    opened.clear()
    gather(collide, "manifest", "again.parquet")  # without logs every contact set is opened
    assert len(opened) == 4
    assert parquet.read_table("again.parquet").to_pylist() == found


PAIRS = ("--pairs", "*ball,*base", "--pairs", "*far,*base")


def test_a_pattern_of_a_pair_matches_bodies(done, monkeypatch):
    (_, _, contacts), *_ = contact_sets()
    monkeypatch.setattr(contacts, "body_path", tuple(f"{path}_body" for path in contacts.body_path))
    found = NamedPairs([("ball_body", "*base"), ("*ball", "*base")], LabelRule()).labels(contacts)
    assert found["present"].all()
    assert found["touching"].any()
    for name, values in found.items():
        np.testing.assert_array_equal(values[:, 0], values[:, 1], name)


def least_distances(contacts: ContactSet) -> list[float]:
    """Of ball and base in every frame [m]."""
    found = []
    for frame in range(contacts.frame_count):
        cell = contacts.cell(frame)
        far = [row for row, path in enumerate(contacts.shapes.path) if "far" in path]
        held = cell.distance[~(np.isin(cell.shape0, far) | np.isin(cell.shape1, far))]
        found.append(float(held.min(initial=np.inf)))
    return found


def test_robomimic_has_a_file_for_each_recording(done, collide):
    gather(collide, "robomimic", "out", *PAIRS)
    assert files_of("out") == {"lift/one.hdf5", "lift/two.hdf5", "gather.json"}
    for stem, demo, contacts in contact_sets():
        with h5py.File(f"out/lift/{stem}.hdf5") as file, h5py.File(f"demos/{stem}.hdf5") as source:
            assert list(file["data"]) == list(source["data"])
            assert file.attrs["recording_sha256"] == file_sha256(f"demos/{stem}.hdf5")
            group = file[f"data/{demo}"]
            assert (
                group.attrs["num_samples"]
                == len(source[f"data/{demo}/states"])
                == contacts.frame_count
            )
            held = group["contacts"]
            np.testing.assert_array_equal(held["contact_start"], contacts.cell_start())
            assert tuple(held["shape_path"].asstr()) == contacts.shapes.path
            for name in contacts.column_names:
                np.testing.assert_array_equal(held[name], contacts.column(name))
                assert held[name].dtype == contacts.column(name).dtype
            assert held["distance"].attrs["unit"] == "m"
            labels = group["pairs"]
            assert list(labels.attrs["names"]) == ["*ball *base", "*far *base"]
            near = np.array(least_distances(contacts))
            # the far one has no contact
            both = np.stack([near, np.full_like(near, np.inf)], axis=1)
            np.testing.assert_array_equal(labels["valid"], np.isfinite(both))
            np.testing.assert_array_equal(
                labels["distance"], np.minimum(both.astype(np.float32), GAP)
            )
            np.testing.assert_array_equal(labels["touching"], both <= 0.0)
            assert (labels["touching"][:, 0].any(), labels["touching"][0, 0]) == (True, False)


STATISTICS = ("min", "q01", "q10", "q50", "q90", "q99", "max")


def nested_table(folder: Path) -> pyarrow.Table:
    """`load_nested_dataset`."""
    return pyarrow.concat_tables(
        [parquet.read_table(path) for path in sorted(folder.glob("*/*.parquet"))]
    )


def load_lerobot(root: Path) -> tuple[dict[str, Any], list[dict[str, np.ndarray]]]:
    """Description and items of a data set, by the rules of LeRobot 0.4.4 (`lerobot_dataset.py`,
    `utils.py`)."""
    info = json.loads((root / "meta/info.json").read_text())
    tasks = pandas.read_parquet(root / "meta/tasks.parquet")
    episodes = nested_table(root / "meta/episodes").to_pylist()
    rows = nested_table(root / "data")
    total = info["total_episodes"]
    features = info["features"]
    assert info["codebase_version"] == "v3.0"
    assert info["splits"] == {"train": f"0:{total}"}
    assert set(rows.column_names) == set(features)
    for name, feature in features.items():  # get_hf_features_from_features
        (width,), kind = feature["shape"], pyarrow.from_numpy_dtype(feature["dtype"])
        assert rows.schema.field(name).type == (
            kind if width == 1 else pyarrow.list_(kind, width)
        ), name
    # _check_cached_episodes_sufficient
    assert set(rows["episode_index"].to_pylist()) == set(range(total))
    # meta.episodes[k] is row k
    assert [one["episode_index"] for one in episodes] == list(range(total))
    assert rows["index"].to_pylist() == list(range(info["total_frames"]))
    for number, one in enumerate(episodes):
        held = rows.slice(one["dataset_from_index"], one["length"])
        assert one["dataset_to_index"] - one["dataset_from_index"] == one["length"]
        assert set(held["episode_index"].to_pylist()) == {number}
        assert held["frame_index"].to_pylist() == list(range(one["length"]))
        np.testing.assert_allclose(
            held["timestamp"], np.arange(one["length"]) / info["fps"], atol=1e-4
        )
        assert {tasks.iloc[index].name for index in held["task_index"].to_pylist()} == set(
            one["tasks"]
        )
        place = {"chunk_index": one["data/chunk_index"], "file_index": one["data/file_index"]}
        file = parquet.read_table(
            root / info["data_path"].format(**place), columns=["episode_index"]
        )
        assert number in file["episode_index"].to_pylist()
    columns = {name: np.array(rows[name].to_pylist()) for name in features}
    check_statistics(json.loads((root / "meta/stats.json").read_text()), columns)
    return info, [
        {name: values[row] for name, values in columns.items()} for row in range(len(rows))
    ]


def check_statistics(found: dict[str, Any], columns: dict[str, np.ndarray]) -> None:
    assert set(found) == set(columns)
    for name, of in found.items():
        values = columns[name].reshape(len(columns[name]), -1).astype(float)
        assert of["count"] == [len(values)]
        for key in ("min", "max", "mean", "std"):
            np.testing.assert_allclose(
                of[key], getattr(values, key)(axis=0), rtol=1e-6, atol=1e-9, err_msg=name
            )
        assert (np.diff([of[key] for key in STATISTICS], axis=0) >= -1e-12).all(), name


def test_lerobot_has_a_row_for_each_frame(batch, collide):
    # a second contact in the first frames
    (batch / "jobs.toml").write_text(JOBS.replace("0.2", "4.10001"))
    compute(collide)
    gather(collide, "lerobot", "out", *PAIRS)
    names = {
        "file-000.parquet",
        "info.json",
        "stats.json",
        "shapes.parquet",
        "tasks.parquet",
        "gather.json",
    }
    assert {name.split("/")[-1] for name in files_of("out")} == names
    info, items = load_lerobot(Path("out"))
    assert info["features"]["contact.pair_touching"]["names"] == ["*ball *base", "*far *base"]
    # `default_collate` of PyTorch
    rows = {name: np.stack([item[name] for item in items]) for name in items[0]}
    shapes = parquet.read_table("out/meta/shapes.parquet")["path"].to_pylist()
    for number, (_, _, contacts) in enumerate(contact_sets()):
        ours = {name: values[rows["episode_index"] == number] for name, values in rows.items()}
        np.testing.assert_allclose(ours["timestamp"], contacts.time, atol=1e-6)
        np.testing.assert_array_equal(ours["contact.count"], np.diff(contacts.cell_start()))
        for frame, count in enumerate(ours["contact.count"]):
            row = {name: values[frame] for name, values in ours.items()}
            cell = contacts.cell(frame)
            np.testing.assert_array_equal(row["contact.distance"][:count], cell.distance)
            np.testing.assert_array_equal(row["contact.normal_z"][:count], cell.normal[:, 2])
            paths = [shapes[index] for index in row["contact.shape0"][:count]]
            assert paths == [contacts.shapes.path[index] for index in cell.shape0]
            assert (row["contact.shape0"][count:] == -1).all()
            assert (row["contact.distance"][count:] == 0.0).all()
        expected = np.asarray(least_distances(contacts), np.float32)
        assert ours["contact.pair_valid"][:, 0].all()
        np.testing.assert_array_equal(ours["contact.pair_distance"][:, 0], expected)
        np.testing.assert_array_equal(ours["contact.pair_touching"][:, 0], expected <= 0.0)


def test_statistics_of_parts_are_those_of_all():
    values = np.random.default_rng(0).normal(size=(900, 3))
    found = statistics_of(values[:1])
    for part in (values[1:400], values[400:]):
        found = joined_statistics(found, statistics_of(part))
    for name, wanted in statistics_of(values).items():
        np.testing.assert_allclose(
            found[name], wanted, rtol=0.2 if name in QUANTILES else 1e-9, atol=0.1
        )


def test_one_job_of_several_is_gathered(here, collide):
    states = falling()
    write_demos(here / "one.hdf5", {"demo_0": states})
    write_demos(here / "two.hdf5", {"demo_0": states[:5], "demo_1": states[:3]})
    entry = "[[job]]\nname = '{0}'\nmotion = '{0}.hdf5'\noptions = {{ gap = 0.2{1} }}\n"
    (here / "jobs.toml").write_text(
        entry.format("one", ", columns = 'friction'") + entry.format("two", "")
    )
    compute(collide)
    collide.refused(
        "batch gather B --to lerobot -o out", told=("columns contact.friction", "--job")
    )
    collide.refused(
        "batch gather B --to lerobot -o out --job three",
        told=("no job 'three'", "its jobs: one, two"),
    )
    assert gather(collide, "lerobot", "out", "--job", "two")["episodes"] == 2
    assert load_lerobot(Path("out"))[0]["total_frames"] == 8
    assert gather(collide, "manifest", "one.parquet", "--job", "one")["episodes"] == 1


def test_merge_has_a_world_for_each_episode(done, collide, monkeypatch):
    gather(collide, "merge")
    assert files_of("out") == {"lift/shard-00000.h5", "gather.json"}
    collide.ok("check out/lift/shard-00000.h5")
    sets = contact_sets()
    with ContactSet.open("out/lift/shard-00000.h5") as merged:
        assert merged.frame_count == 12
        assert merged.episodes.name == tuple(f"{stem}/{demo}" for stem, demo, _ in sets)
        for world, (_, _, contacts) in enumerate(sets):
            assert merged.episodes.frame_count[world] == contacts.frame_count
            for frame in range(merged.frame_count):
                cell = merged.cell(frame, world)
                if frame >= contacts.frame_count:
                    assert cell.contact_count == 0
                    continue
                for name, values in contacts.cell(frame).columns.items():
                    np.testing.assert_array_equal(cell.columns[name], values)
    monkeypatch.setattr(merged_shards, "SHARD_BYTES", 1)
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
    ("--to lerobot --pairs a,b --pairs 'a, b'", "given twice"),
    ("--to lerobot --pairs '*ball *cube'", "'*ball *cube': no scene has shapes that match both"),
    ("--to robomimic --pairs '*ball *cube'", "'*ball *cube': no scene has shapes that match both"),
    ("--to lerobot --pairs '*ball *base' --leave 1m", "only up to"),
    ("--to lerobot --pairs '*ball *base' --enter 2mm --leave 1mm", "below --enter"),
    ("--to parquet --min-frames 2", "there are none"),
    needs="done",
)


@pytest.mark.parametrize("to", ["lerobot", "robomimic"])
@pytest.mark.parametrize(
    ("options", "said"), [("frames = '2:5', ", "some frames"), ("worlds = 2, ", "2 worlds")]
)
def test_rows_that_are_not_recorded_frames_are_refused(here, collide, to, options, said):
    demo = to == "robomimic" and "frames" in options
    if demo:
        write_demos(here / "demo.hdf5", {"demo_0": falling()})
    motion = "demo.hdf5" if demo else "motion.h5"
    job = (
        f"[[job]]\nname = 'a'\nscene = 'scene.xml'\nmotion = '{motion}'\noptions = {{ {options}gap"
        " = 0.1 }\n"
    )
    (here / "jobs.toml").write_text(job)
    compute(collide)
    told = said if to == "lerobot" or demo else "no demonstration of an HDF5 recording"
    collide.refused("batch gather B -o out --to", to, told=told)


@pytest.mark.share(2)
@pytest.mark.parametrize("to", FOLDERS)
def test_failed_episodes_are_left_out(batch, collide, monkeypatch, to):
    made = plan(collide)
    store = open_store("B")
    bad = next(one for one in made.episodes if one.demo == "demo_2")
    store.fail(Failure(bad.key, bad.job, bad.motion, "is damaged", 2, "here", demo=bad.demo))
    collide.refused("batch gather B -o out --to", to, told="have no contact set")
    compute(collide)
    monkeypatch.setattr(parquet_parts, "PART_BYTES", 1)
    answer = gather(collide, to, "out", *(PAIRS[:2] if to == "lerobot" else ()))
    assert (answer["episodes"], answer["failed"]) == (3, 1)
    if to == "parquet":
        assert parquet.read_table("out/episodes.parquet")["episode_index"].to_pylist() == [0, 2, 3]
    if to == "lerobot":
        monkeypatch.setattr(lerobot, "GROUP_BYTES", 1)  # a frame at a time
        gather(collide, to, "out", "--force", *PAIRS[:2])
        items = load_lerobot(Path("out"))[1]
        found = {
            (int(item["episode_index"]), int(item["original_episode_index"])) for item in items
        }
        assert found == {(0, 0), (1, 2), (2, 3)}


@pytest.mark.share(2, 2)
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


@pytest.mark.share(2, 2)
@pytest.mark.parametrize("to", FOLDERS)
def test_force_replaces_only_folders_of_gather(done, collide, to):
    gather(collide, to)
    Path("out/stale").write_text("")
    gather(collide, to, "out", "--force")
    assert "stale" not in files_of("out")
    for output, told in (
        ("demos", "no folder of collide batch gather"),
        ("jobs.toml/folder", "a file has its name"),
    ):
        collide.refused("batch gather B --force --to", to, "-o", output, told=told, code=3)


JOB = (
    '[[job]]\nname = "box"\nscene = "scene.usda"\noptions = { hydro-surface = true, device ='
    ' "cpu" }\n'
)


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
    told = (
        "has hydro patches and hydro faces, and --to lerobot writes contacts of rigid shapes alone"
    )
    collide.refused("batch gather B --to lerobot -o out", told=(told, "--hydro-reduce"))
    Path("jobs.toml").write_text(JOB.replace("hydro-surface", "hydro-reduce"))
    compute(collide, "R")
    collide.ok("batch gather R --to lerobot -o out --pairs", "*box *ground")
    rows = parquet.read_table("out/data/chunk-000/file-000.parquet").to_pydict()
    assert rows["contact.pair_touching"] == [True]
