"""collide merge: however a set is parted, its parts make it again, to the bit of its content hash."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collidecli.commands import merge as merging
from collidecli.commands.check import check
from collidecli.commands.merge import MergeRequest, merge
from collidecli.scene.tables import ContactBlock, groups_of_cells
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.writer import ContactWriter
from tests.support.contact_groups import OF_CELLS, block_with_groups
from tests.support.contact_sets import ATTRIBUTES, small_model

FRAMES, WORLDS = 9, 4
STEP = 5


@cache
def every_contact() -> ContactBlock:
    return block_with_groups(small_model(WORLDS), FRAMES)


def write_part(
    path: Path, frames: list[int], worlds: list[int], config: dict | None = None, recording: str = "cd" * 32
) -> str:
    """Some frames and worlds of one made-up set, as a run of them alone would write it."""
    block = every_contact()
    start = np.concatenate([[0], np.cumsum(block.cell_counts)])
    cells = [frame * WORLDS + world for frame in frames for world in worlds]
    rows = np.concatenate([np.arange(start[cell], start[cell + 1]) for cell in cells] or [np.zeros(0, np.intp)])
    columns = {name: values[rows] for name, values in block.columns.items()}
    groups = groups_of_cells(block.groups, np.array(cells, np.intp))
    part = ContactBlock(0, block.cell_counts[cells], columns, groups)
    attributes = {**ATTRIBUTES, "trajectory_sha256": recording, "config": json.dumps(config or {"gap": 0.1})}
    at = np.array(frames)
    times = at * 0.01, at * STEP, np.dtype(np.float64), attributes
    with ContactWriter(path, small_model(len(worlds)), len(frames), *times, force=True, groups=OF_CELLS) as writer:
        writer.append(part)
        writer.end_contacts()
        writer.write_timing({"wall_seconds": 0.5, "contact_count": part.contact_count, "device": f"d{frames[0] % 2}"})
        writer.finish()
        return writer.content_sha256


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("merge")


@pytest.fixture(scope="module")
def whole(folder) -> str:
    return write_part(folder / "whole.h5", list(range(FRAMES)), list(range(WORLDS)))


SLOW = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@SLOW
@given(owner=st.lists(st.integers(0, 2), min_size=FRAMES, max_size=FRAMES), rows=st.sampled_from([1, 40, 10**6]))
def test_frames_parted_in_any_way(folder, whole, owner, rows):
    """Slices, every second frame, anything: in whatever order the parts are given."""
    parts = [[f for f in range(FRAMES) if owner[f] == k] for k in (2, 0, 1)]
    names = []
    for k, frames in enumerate(parts):
        if frames:
            names.append(str(folder / f"f{k}.h5"))
            write_part(Path(names[-1]), frames, list(range(WORLDS)), config={"frames": f"part {k}"})
    if len(names) < 2:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging.merged_blocks, "__defaults__", (rows,))
        result = merge(MergeRequest(names, str(folder / "out.h5"), force=True)).as_dict()
    assert result["content_sha256"] == whole
    assert (result["frames"], result["worlds"]) == (FRAMES, WORLDS)


@SLOW
@given(cut=st.lists(st.integers(1, WORLDS - 1), min_size=1, max_size=2, unique=True), rows=st.sampled_from([1, 10**6]))
def test_worlds_parted_in_any_way(folder, whole, cut, rows):
    names = []
    for k, worlds in enumerate(np.split(np.arange(WORLDS), sorted(cut))):
        names.append(str(folder / f"w{k}.h5"))
        write_part(
            Path(names[-1]),
            list(range(FRAMES)),
            worlds.tolist(),
            recording=hashlib.sha256(f"r{k}".encode()).hexdigest(),
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging.merged_blocks, "__defaults__", (rows,))
        result = merge(MergeRequest(names, str(folder / "out.h5"), worlds=True, force=True)).as_dict()
    assert result["content_sha256"] == whole


def test_the_result_is_good_and_says_where_it_is_from(folder, whole):
    for name, frames in (("a", range(4)), ("b", range(4, FRAMES))):
        write_part(folder / f"{name}.h5", list(frames), list(range(WORLDS)), config={"frames": name, "gap": 0.1})
    merge(MergeRequest([str(folder / f"{name}.h5") for name in "ba"], str(folder / "ab.h5"), force=True))
    assert check(folder / "ab.h5").findings == []
    with ContactSet.open(folder / "ab.h5") as merged:
        assert merged.content_sha256 == whole
        assert merged.config == {"frames": "a, b", "gap": 0.1}
        assert merged.trajectory_sha256 == "cd" * 32
        timing = merged.file["timing"].attrs
        assert timing["wall_seconds"] == 1.0
        assert timing["contact_count"] == merged.contact_count
        assert timing["device"] == "d0"
        assert timing["merged_runs"] == 2
