"""A plan of any number of episodes: each in one shard, the longest shards first, read as it was
written."""

import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.verbs.batch import episodes as episodes_module
from collidecli.verbs.batch import plan as plan_module
from collidecli.verbs.batch.episodes import Episode, EpisodeTable
from collidecli.verbs.batch.jobs import Job
from collidecli.verbs.batch.plan import make_plan, read_plan, write_plan
from collidecli.verbs.batch.store import PLAN, Store
from collidecli.verbs.run.run import RunRequest
from tests.support.forged_parquet import forge

parquet = pytest.importorskip("pyarrow.parquet")

RATES = {"a": (0.5, 1e-3), "b": (0.0, 2e-3)}


def episodes(job: str, count: int, seed: int) -> list[Episode]:
    random = np.random.default_rng(seed)
    return [
        Episode(
            f"{random.integers(1 << 60):064x}",
            job,
            f"{job}/{n % 7}é.h5",
            f"demo_{n}",
            int(size),
            "0" * 64,
        )
        for n, size in enumerate(random.integers(0, 3000, count))
    ]


@pytest.fixture
def plan(monkeypatch):
    monkeypatch.setattr(episodes_module, "ROWS_AT_ONCE", 64)
    monkeypatch.setattr(plan_module, "ROWS_AT_ONCE", 64)  # so that tables have several blocks
    jobs = [Job(name, (), RunRequest(scenes=("s.xml",), output="")) for name in RATES]
    inputs = {"a": episodes("a", 500, 1), "b": episodes("b", 77, 2)}
    return inputs, make_plan(
        jobs, {name: EpisodeTable.of(held) for name, held in inputs.items()}, RATES, 10.0
    )


def test_every_episode_is_in_one_shard_of_its_job(plan):
    inputs, made = plan
    shards = [made.shard(number) for number in range(made.shard_count)]
    found = [one for shard in shards for one in shard]
    given = [one for held in inputs.values() for one in held]
    assert sorted(one.demo + one.job for one in found) == sorted(
        one.demo + one.job for one in given
    )
    assert found == list(made.episodes)
    assert all(len({one.job for one in shard}) == 1 for shard in shards)
    totals = [sum(one.seconds for one in shard) for shard in shards]
    assert totals == sorted(totals, reverse=True)
    assert max(totals) <= 10.0
    for one in found[:20]:
        assert one.seconds == RATES[one.job][0] + RATES[one.job][1] * one.bytes
    for shard in shards:
        assert [one.seconds for one in shard] == sorted(
            (one.seconds for one in shard), reverse=True
        )


def test_an_episode_longer_than_a_shard_has_one_of_its_own():
    long = [Episode("1", "b", "x.h5", "", 10_000, ""), Episode("2", "b", "y.h5", "", 20_000, "")]
    made = make_plan(
        [Job("b", (), RunRequest(scenes=(), output=""))], {"b": EpisodeTable.of(long)}, RATES, 10.0
    )
    assert [[one.motion for one in made.shard(n)] for n in range(made.shard_count)] == [
        ["y.h5"],
        ["x.h5"],
    ]


def test_a_plan_is_read_as_it_was_written(plan, tmp_path):
    store = Store(str(tmp_path))
    write_plan(plan[1], store)
    there = read_plan(store)
    assert list(there.episodes) == list(plan[1].episodes)
    assert there.requests == plan[1].requests
    assert (there.episodes[-1], there.episodes[70]) == (
        plan[1].episodes[-1],
        list(there.episodes)[70],
    )


def test_a_changed_plan_is_refused(plan, tmp_path):
    store = Store(str(tmp_path))
    write_plan(plan[1], store)
    there = read_plan(store)
    changed = [
        one if n else Episode("0" * 64, *list(map(one.__getattribute__, episodes_module.NAMES))[1:])
        for n, one in enumerate(there.episodes)
    ]
    metadata = parquet.ParquetFile(tmp_path / PLAN).schema_arrow.metadata
    table = EpisodeTable.of(changed).table.replace_schema_metadata(metadata)
    (tmp_path / PLAN).write_bytes(episodes_module.parquet_bytes(table, "test", 64))
    with pytest.raises(InputError, match="changed after it was written"):
        read_plan(store)


@pytest.mark.parametrize("number", [577, 64])
def test_a_plan_that_declares_other_sizes_is_refused(plan, tmp_path, number):
    """577 episodes in groups of 64."""
    store = Store(str(tmp_path))
    write_plan(plan[1], store)
    assert forge(tmp_path / PLAN, number, 2**40)
    with pytest.raises(InputError, match=r"is damaged|is not the plan"):
        read_plan(store)


def test_a_worker_reads_the_row_groups_of_its_shard(plan, tmp_path):
    store = Store(str(tmp_path))
    whole = plan[1]
    write_plan(whole, store)
    for shard in range(whole.shard_count):
        part = read_plan(store, shard)
        assert (part.shard(shard), part.requests) == (whole.shard(shard), whole.requests)
        assert part.total == len(whole.episodes)
        assert len(part.episodes) <= 64 * (2 + len(whole.shard(shard)) // 64)
    assert len(read_plan(store, whole.shard_count).episodes) == 0


def test_the_same_recordings_in_another_order(plan):
    here = plan[1].episodes
    assert here.same_recordings(here.sorted_by(("motion", "descending"), ("bytes", "ascending")))
    assert not here.same_recordings(EpisodeTable.of(list(here)[1:]))
    assert not here.same_recordings(
        EpisodeTable.of((*list(here)[1:], Episode("0", "a", "", "", 0, "")))
    )


def test_a_plan_without_episodes(tmp_path):
    made = make_plan([], {}, {}, 10.0)
    assert (made.shard_count, list(made.episodes)) == (0, [])


def test_the_size_of_a_recording_is_that_of_all_its_files(tmp_path):
    for name, size in (("bag_0.mcap", 5), ("metadata.yaml", 7)):
        (tmp_path / name).write_bytes(bytes(size))
    assert plan_module._hashed(str(tmp_path), {}, {})[2] == 12
