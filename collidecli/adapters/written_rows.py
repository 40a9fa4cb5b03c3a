"""The contact set file of an engine's rows."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.adapters.logged_rows import ENGINE_FIELDS
from collidecli.adapters.rows import EngineRows
from collidecli.analysis.summary import ContactCounts, Tally
from collidecli.analysis.touches import Names
from collidecli.motions.collision import contact_writer
from collidecli.numerics import inverse_poses, moved_points
from collidecli.scene.motion import episodes_in
from collidecli.scene.tables import RIGID_COLUMNS, ROW_ORDER, ContactBlock
from collidecli.storage.contact_sets.schema import ENGINE_ATTRIBUTES, EngineRecord

if TYPE_CHECKING:
    from collidecli.adapters.problem import Problem


def about_engine(problem: Problem, rows: EngineRows) -> dict[str, Any]:
    """What results say of an engine: version, interpreter, treatment of shapes, and times [s], None if unknown."""
    setup, cells = (None if np.isnan(seconds) else float(seconds) for seconds in rows.seconds)
    return {
        **{name: getattr(rows, name) for name in ENGINE_FIELDS},
        "shapes": {state: int(number) for state, number in sorted(Counter(rows.treated.tolist()).items())},
        "reasons": sorted({reason for reason in rows.reason.tolist() if reason}),
        "setup_seconds": setup,
        "frame_seconds": None if cells is None else cells / max(1, problem.shape[0]),
    }


def write_rows(problem: Problem, rows: EngineRows, path: str, force: bool, **options: Any) -> tuple[ContactCounts, str]:
    """Writes the contact set; returns its counts and content hash. Raises OutputError; then no file is left."""
    model, motion, request = problem.model, problem.motion, problem.request
    block = contact_block(problem, rows)
    tally = Tally(Names.of(model.shapes.path, model.shapes.template))
    tally.add(block)
    importing = {**asdict(request.scene_options), **asdict(request.recording)}
    config = {**request.contact.stored, **{name: value for name, value in importing.items() if value}}
    config = json.dumps({**config, "frames": request.frames, "worlds": request.worlds}, sort_keys=True)
    unheld = problem.arrays["pair"][~rows.asked & (rows.treated[problem.arrays["pair"]] != "skipped").all(axis=1)]
    values: dict[str, Any] = {name: getattr(rows, name) for name in ENGINE_ATTRIBUTES if name != "name"}
    tables = (tuple(rows.treated.tolist()), tuple(rows.reason.tolist()), unheld[:, 0], unheld[:, 1])
    values |= dict(zip(("treated", "reason", "not_asked0", "not_asked1"), tables, strict=True))
    record = EngineRecord(name=rows.engine, **values)
    scene = problem.scene.name, problem.scene.sha256
    with contact_writer(path, model, motion, scene, config, force=force, engine=record, **options) as writer:
        writer.append(block)
        writer.end_contacts()
        if np.isfinite(rows.seconds).all():
            calls = np.array([1, problem.shape[0]])
            writer.write_timing({"stage": ["set-up", "engine"], "seconds": rows.seconds, "calls": calls})
        writer.finish()
        return tally.counts(model.world_count, episodes_in(motion, model.world_count)), writer.content_sha256


@np.errstate(invalid="ignore", over="ignore")
def contact_block(problem: Problem, rows: EngineRows) -> ContactBlock:
    """The rows as contacts of all cells, in the order of a contact set. Nothing is corrected."""
    shapes = problem.arrays["pair"][rows.pair].astype(np.int64) if rows.shapes is None else rows.shapes
    number = problem.numbers[rows.cell]
    points = (rows.point0, rows.point1)
    offsets = [moved_points(inverse_poses(problem.body_poses(rows.cell, shapes[:, k])), points[k]) for k in (0, 1)]
    values = {
        "shape0": shapes[:, 0],
        "shape1": shapes[:, 1],
        "distance": rows.distance - problem.margins(shapes),
        "normal": rows.normal,
        **{f"point{k}": points[k] for k in (0, 1)},
        **{f"offset{k}": offsets[k] for k in (0, 1)},
    }
    kind, count = problem.motion.float_type, len(number)
    values |= {c.name: c.filled(count) for c in RIGID_COLUMNS if c.name not in values}
    columns = {c.name: values[c.name].astype(c.dtype_for(kind)) for c in RIGID_COLUMNS}
    keys = [number, columns["shape0"], columns["shape1"], *(columns[name].T for name in ROW_ORDER)]
    order = np.lexsort(np.vstack([np.atleast_2d(key).astype(np.float64) for key in keys])[::-1])
    counts = np.bincount(number, minlength=problem.frames * problem.model.world_count)
    return ContactBlock(0, counts, {name: column[order] for name, column in columns.items()})
