"""The verb `batch gather`: the contact sets of a batch in other formats."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from collidecli.analysis.labelled_runs import LabelRule
from collidecli.errors import InputError, OutputError
from collidecli.results.outputs import check_ending
from collidecli.results.result import Progress, Result
from collidecli.scene.contact_columns import GROUPS_BY_NAME
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.files import is_url
from collidecli.storage.flat_tables import require_pyarrow
from collidecli.storage.regular_files import require_text_path
from collidecli.temporary_folders import TemporaryFolder
from collidecli.verbs.batch.episodes import parquet_bytes
from collidecli.verbs.batch.gathered_episodes import Gathered
from collidecli.verbs.batch.lerobot import write_lerobot
from collidecli.verbs.batch.log import dataset_hash
from collidecli.verbs.batch.merged_shards import write_merged_shards
from collidecli.verbs.batch.output_folders import RECORD, output_folder, read_record, write_record
from collidecli.verbs.batch.parquet import EPISODES, READ_ME, write_parquet, write_tables
from collidecli.verbs.batch.plan import Plan
from collidecli.verbs.batch.robomimic import write_robomimic
from collidecli.verbs.batch.store import Store
from collidecli.verbs.label.contact_labels import LabelOptions
from collidecli.verbs.label.named_pairs import NamedPairs


@dataclass(frozen=True)
class GatherRequest:
    """to: MANIFEST or one of FORMATS. pairs: see `NamedPairs`. job: only its episodes, else all.

    enter, leave, min_frames: when a pair touches, see `LabelOptions`. slot: k and n, the k-th of n
    parts of a folder of Parquet; None is all of it.
    """

    to: str
    output: str
    force: bool = False
    pairs: tuple[tuple[str, str], ...] = ()
    job: str = ""
    slot: tuple[int, int] | None = None
    enter: float = 0.0
    leave: float | None = None
    min_frames: int = 1


@dataclass(frozen=True, kw_only=True)
class GatherResult(Result):
    """The output of `gather`. dataset_sha256: over the sorted keys and content hashes of all
    contact sets.

    failed: number of episodes without a contact set, which the output lacks. groups: rows of each
    group of contacts beside the rigid ones; None without them. slots_left: number of slots whose
    parts are missing, and the other values are those of one part; 0 where all are there, and the
    values are those of all; None without --slot.
    """

    SCHEMA: ClassVar[str] = "collide.batch_gather/1"
    OPTIONAL: ClassVar[tuple[str, ...]] = ("groups", "slots_left")

    output: str
    episodes: int
    failed: int
    contacts: int
    dataset_sha256: str
    groups: dict[str, int] | None = None
    slots_left: int | None = None


def gather(
    store: Store, plan: Plan, request: GatherRequest, progress: Progress = None
) -> GatherResult:
    """Writes the contact sets of a batch in a format.

    Raises InputError where an episode has neither a contact set nor a failure, or does not fit the
    format; OutputError for an output that cannot be written. Then no output is left, and one that
    was there is unchanged.
    """
    to = request.to
    output = request.output
    rule = LabelOptions(
        enter=request.enter, leave=request.leave, min_frames=request.min_frames
    ).rule
    named = NamedPairs(request.pairs, rule)
    if not named.names and rule != LabelRule():
        raise InputError(
            "define labels, and there are none", "--enter, --leave, --min-frames", "name --pairs"
        )
    if named.names and to not in LABELLED:
        raise InputError(
            "has no effect", "--pairs", f"only --to {' and '.join(LABELLED)} have columns of pairs"
        )
    if request.slot and to != "parquet":
        raise InputError(
            f"has no parts of --to {to}", "--slot", "only --to parquet is divided into slots"
        )
    if to == MANIFEST:
        check_ending(output, (".parquet",), "a manifest")
    elif is_url(output):
        raise OutputError(
            "is the URL of an object store", output, "gather to a local folder, and copy it"
        )
    gathered = Gathered(store, plan, progress, request.job, request.slot or (0, 1))
    if to == MANIFEST:
        return _write_manifest(gathered, output, request.force)
    if request.slot:
        return _gather_slot(gathered, output, request.force, *request.slot)
    with output_folder(output, request.force) as folder:
        FORMATS[to](folder, gathered, named)
        named.check()
        result = _result(gathered.table, gathered, output)
        write_record(folder, {"to": to, "dataset_sha256": result.dataset_sha256})
    return result


def _gather_slot(
    gathered: Gathered, output: str, force: bool, slot: int, count: int
) -> GatherResult:
    """Writes the part of a slot, unless it is there. The slot that ends last adds the tables of
    all, and RECORD."""
    parts = [os.path.join(output, f"slot-{k:05d}-of-{count:05d}") for k in range(count)]
    before = read_record(output)
    if before and before.get("slots") != count:
        raise OutputError("has an output of other slots", output, "choose another folder")
    os.makedirs(output, exist_ok=True)
    if force or read_record(parts[slot]).get("keys_sha256") != gathered.keys_sha256:
        with output_folder(parts[slot], force) as folder:
            write_parquet(folder, gathered)
            write_record(folder, {"to": "parquet", "keys_sha256": gathered.keys_sha256})
    written = [
        part for part in parts if read_record(part).get("keys_sha256") == gathered.keys_sha256
    ]
    left = count - len(written)
    tables = [
        require_pyarrow("batch").parquet.ParquetFile(os.path.join(part, EPISODES)).read()
        for part in ([parts[slot]] if left else parts)
    ]
    table = require_pyarrow("batch").concat_tables(tables, promote_options="default")
    result = _result(table, gathered, parts[slot] if left else output, left)
    if not left:
        with TemporaryFolder("gather", output) as folder:
            write_tables(folder, table, f"slot-*-of-{count:05d}/")
            write_record(
                folder, {"to": "parquet", "slots": count, "dataset_sha256": result.dataset_sha256}
            )
            # the record last: an output without it is not complete
            for name in (EPISODES, READ_ME, RECORD):
                os.replace(os.path.join(folder, name), os.path.join(output, name))
    return result


MANIFEST = "manifest"
FORMATS: dict[str, Callable[[str, Gathered, NamedPairs], None]] = {
    "merge": lambda folder, gathered, pairs: write_merged_shards(folder, gathered),
    "parquet": lambda folder, gathered, pairs: write_parquet(folder, gathered),
    "lerobot": write_lerobot,
    "robomimic": write_robomimic,
}
"""Functions that write a folder, by format."""
LABELLED = ("lerobot", "robomimic")
"""Formats with columns of named pairs."""


def _result(
    table: Any, gathered: Gathered, output: str, slots_left: int | None = None
) -> GatherResult:
    groups = {
        name: sum(filter(None, table[name].to_pylist()))
        for name in GROUPS_BY_NAME
        if name in table.column_names
    }
    contents = zip(table["key"].to_pylist(), table["content_sha256"].to_pylist(), strict=True)
    return GatherResult(
        output=output,
        episodes=len(table),
        failed=gathered.failed,
        contacts=sum(table["contacts"].to_pylist()),
        dataset_sha256=dataset_hash(dict(contents)),
        groups=groups or None,
        slots_left=slots_left,
    )


def _write_manifest(gathered: Gathered, output: str, force: bool) -> GatherResult:
    with AtomicOutput(output, force) as file:
        gathered.measure()
        table = gathered.table
        location = gathered.store.location.rstrip("/")
        require_text_path(location, "the table of its files")
        if not is_url(location):
            location = os.path.relpath(location, os.path.dirname(os.path.abspath(output)))
        folder = "" if location == "." else f"{location}/"
        files = [f"{folder}{gathered.store.result_name(key)}" for key in table["key"].to_pylist()]
        table = table.drop_columns(["episode_index"]).append_column("file", [files])
        result = _result(table, gathered, output)
        about = {"collide.dataset_sha256": result.dataset_sha256}
        file.write(parquet_bytes(table.replace_schema_metadata(about), "batch gather"))
        file.commit()
    return result
