"""Hydroelastic surfaces in the outputs of a batch: a file of their own, or a refusal."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest

from collidecli.batch.plan import read_plan
from collidecli.batch.store import Store
from collidecli.batch.work import work_shard
from collidecli.storage.contact_sets.reader import ContactSet
from tests.cli.test_hydroelastic import scene, stiffness

JOB = '[[job]]\nname = "box"\nscene = "scene.usda"\noptions = { hydro-surface = true, device = "cpu" }\n'


@pytest.fixture
def done(here: Path, collide) -> str:
    """The contact set of the one episode of the batch B."""
    scene(here, stiffness("3e6"), stiffness("7e6"))
    Path("jobs.toml").write_text(JOB)
    assert collide("batch", "plan", "jobs.toml", "-o", "B").code == 0
    work_shard("B", 0)
    (episode,) = read_plan(Store("B")).episodes
    return Store("B").result_location(episode.key)


def test_parquet_has_a_file_for_each_group(done, collide):
    assert collide("batch", "gather", "B", "--to", "parquet", "-o", "out").code == 0
    assert len(parquet.read_table("out/contacts-00000.parquet")) == 0
    with ContactSet.open(done) as contacts:
        held = contacts.cell(0).groups
    for name, groups in held.items():
        rows = parquet.read_table(f"out/{name}-00000.parquet").to_pydict()
        assert rows["episode_index"] == [0] * groups.row_count
        np.testing.assert_array_equal(rows["area"], groups.columns["area"])
        assert {rows["shape0"][0], rows["shape1"][0]} == {"/ground", "/box"}
    assert set(held) == {"hydro_patches", "hydro_faces"}
    counts = {name: groups.row_count for name, groups in held.items()}
    answer = collide("batch", "gather", "B", "-o", "B.parquet", "--json")
    assert json.loads(answer.out)["groups"] == counts
    for table in ("B.parquet", "out/episodes.parquet"):
        (row,) = parquet.read_table(table).to_pylist()
        assert {name: row[name] for name in counts} == counts
        assert row["contacts"] == 0
    assert f"hydro faces    {counts['hydro_faces']:,}" in collide("batch", "gather", "B", "-o", "C.parquet").out


def test_a_row_for_each_frame_refuses_surfaces_that_no_contact_replaces(done, collide):
    refused = collide("batch", "gather", "B", "--to", "lerobot", "-o", "out")
    assert refused.code == 2
    assert "has hydro patches and hydro faces, and --to lerobot writes contacts of rigid shapes alone" in refused.err
    assert "--hydro-reduce" in refused.err
    Path("jobs.toml").write_text(JOB.replace("hydro-surface", "hydro-reduce"))
    assert collide("batch", "plan", "jobs.toml", "-o", "R").code == 0
    work_shard("R", 0)
    assert collide("batch", "gather", "R", "--to", "lerobot", "-o", "out", "--pairs", "*box *ground").code == 0
    rows = parquet.read_table("out/data/chunk-000/file-000.parquet").to_pydict()
    assert rows["contact.pair_touching"] == [True]
