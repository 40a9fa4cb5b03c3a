"""The verb `audit`: the depths of a motion's penetrations, their limits, and the frames that can be used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from collidecli.analysis.summary import MotionDepths, TimeBins, depths_of, leading_run
from collidecli.commands import audit_sources
from collidecli.commands.audit_sources import AuditLimits, AuditSource, PairLimits
from collidecli.commands.results import HDF5_ENDINGS, Progress, Result
from collidecli.commands.scenes import EngineRequest
from collidecli.errors import InputError
from collidecli.exporters.rows import held, texts, write_npz
from collidecli.scene.motion import recorded_cells
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.process_activity import reading
from collidecli.storage.result_files import AUDIT_FORMAT, TableColumn, arrays_h5, cell_columns, csv_table, read_result
from collidecli.texts import plural

# Measures of overlaps beside the depth: the volume of the intersection, and the depth of the deepest point.


def measure_overlaps(source: AuditSource, pairs: list[dict[str, Any]], volume: bool, point: bool) -> None:
    """Adds measures of the overlap in each pair's deepest frame, without margins: overlap_volume [m^3] and
    deepest_point [m], each with the bound of its error, and overlap_note, the reason if there is no volume.
    """
    if not (volume or point) or source.loaded is None or source.motion is None:
        return
    from collidecli.analysis.overlap_volume import overlap_volume
    from collidecli.commands.audit_sources import deepest_point

    model = source.loaded.model
    named = zip(model.shapes.template.tolist(), model.shapes.path, strict=True)
    row = {key: number for number, key in enumerate(named)}
    for pair in pairs:
        template = int(model.world_template[pair["world"]])
        names = pair["shape0"], pair["shape1"]
        shape0, shape1 = (row[(template, name) if (template, name) in row else (-1, name)] for name in names)
        with reading("motion"):
            bodies = source.motion.read(range(pair["frame"], pair["frame"] + 1))[0]
        poses = model.placed_shapes(bodies, pair["world"])
        if volume:
            overlap = overlap_volume(model, poses, shape0, shape1)
            pair["overlap_volume"] = None if overlap.reason else overlap.volume
            pair["overlap_volume_error"] = None if overlap.reason else overlap.error
            pair["overlap_note"] = overlap.reason
        if point:
            pair["deepest_point"], pair["deepest_point_error"] = deepest_point(model, poses, shape0, shape1)


Baseline = dict[str, Any] | None
"""The result of an earlier audit, as JSON."""
DEPTH, SELF, GROUND, OWN, START, TUNNEL = "depth", "self", "ground", "own", "start", "tunnel"
CHECKS = (DEPTH, SELF, GROUND, OWN, START)
"""Names of the checks: of all other pairs, of two bodies of one robot, of pairs with the ground, of pairs with a limit
of their own, of first frames. The second one is there only if robots are known, the fourth only with such limits."""
MAX_RUNS_LISTED = 20
MAX_BINS = 400
SCHEMA = "collide.audit/1"


@dataclass(frozen=True)
class AuditRequest:
    """What is audited, and how. contacts: a contact set; else `scene`. frames: of the contact set.

    limits: given limits. against: a baseline, as JSON of an earlier audit; "" for none. tolerance: a depth is worse
    than that of the baseline if it is greater by more than this [m]. overlap_volume, deepest_point: measure these of
    the deepest overlaps of the `first` deepest pairs. sweep: refuse a contact set without contacts between frames.
    """

    contacts: str = ""
    scene: EngineRequest | None = None
    frames: str = ""
    limits: AuditLimits = field(default_factory=AuditLimits)
    against: str = ""
    tolerance: float = 1e-6
    overlap_volume: bool = False
    deepest_point: bool = False
    first: int = 20
    sweep: bool = False


@dataclass(frozen=True, kw_only=True)
class AuditResult(Result, schema=SCHEMA, optional=("written", "tunnels")):
    """Penetrations of a motion against limits.

    passed: no limit is exceeded; with a baseline, nothing is worse. reasons: why it is not. checks: of each class of
    pairs. usable: cells without a pair above its limit. series: the greatest depths [m] of bins of frames, of all pairs
    and of two classes, and whether a frame of the bin is unusable. pairs: every penetrating pair, the deepest first.
    depth [m] is the least translation that separates a pair. tunnels: pairs that touch between two frames and are apart
    in both; None without a sweep. baseline: the compared audit, or None.
    """

    input: str
    scene: str
    scene_sha256: str
    trajectory: str
    trajectory_sha256: str
    passed: bool
    reasons: list[str]
    limits: dict[str, Any]
    frames: int
    worlds: int
    cells: int
    time: dict[str, Any]
    checks: list[dict[str, Any]]
    usable: dict[str, Any]
    series: dict[str, Any]
    pairs: list[dict[str, Any]]
    tunnels: list[dict[str, Any]] | None
    baseline: dict[str, Any] | None
    warnings: list[str]
    written: dict[str, str] | None = None


@dataclass(frozen=True)
class Audit:
    """A result and its arrays; F frames, W worlds.

    usable: bool[F, W], recorded and no pair above its limit. recorded: bool[F, W]. depth, self_depth, ground_depth:
    float32[F, W], the greatest of all pairs and of the two classes [m]. deepest: int32[F, W, 2], rows of shape_path,
    -1 without penetration. frame, step: int64[F]. time: float64[F] [s], or numbers of frames, see `collide`.
    """

    result: AuditResult
    usable: np.ndarray
    recorded: np.ndarray
    depth: np.ndarray
    self_depth: np.ndarray
    ground_depth: np.ndarray
    deepest: np.ndarray
    shape_path: tuple[str, ...]
    frame: np.ndarray
    step: np.ndarray
    time: np.ndarray

    @property
    def passed(self) -> bool:
        """Whether no limit is exceeded."""
        return self.result.passed

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """Every penetrating pair as a dictionary, the deepest first."""
        return self.result.pairs

    def __repr__(self) -> str:
        frames, worlds = self.usable.shape
        words = "passed" if self.passed else "failed"
        return (
            f"<Audit {words} frames={frames} worlds={worlds} usable={int(self.usable.sum())} pairs={len(self.pairs)}>"
        )


def audit(request: AuditRequest, progress: Progress = None) -> Audit:
    """Audits a contact set, or a scene in motion.

    Raises InputError for inputs that cannot be used, limits that are none, and patterns that match nothing.
    """
    request.limits.checked()
    if not 0.0 <= request.tolerance < np.inf:
        raise InputError(f"{request.tolerance} is not a length", "--tolerance", "give at least 0, such as 1µm")
    if not request.first and (request.overlap_volume or request.deepest_point):
        name = "--overlap-volume" if request.overlap_volume else "--deepest-point"
        raise InputError("measures the deepest pairs of the table, which has none", name, "give --first at least 1")
    baseline = _read_baseline(request.against) if request.against else None
    with _source(request) as source:
        if request.sweep and source.swept is None:
            if audit_sources.STEPS_LEFT_OUT in source.notes:
                raise InputError("the frames are not consecutive", "--frames", "select a range of frames")
            raise InputError("the contact set has no contacts between frames", source.name, "run with --sweep")
        return _audited(source, baseline, request, progress)


@contextmanager
def _source(request: AuditRequest) -> Iterator[AuditSource]:
    names = request.limits.self_bodies
    if request.scene is not None:
        with audit_sources.audited_scene(request.scene, names) as source:
            yield source
        return
    if request.overlap_volume or request.deepest_point:
        name = "--overlap-volume" if request.overlap_volume else "--deepest-point"
        raise InputError("a contact set has no geometry", f"{request.contacts}: {name}", "audit the scene in its place")
    if request.limits.self is not None and not names:
        what = "a contact set has no joints, so that bodies of one robot are not known"
        raise InputError(what, "--self", "name them with --self-bodies, or audit the scene")
    with reading("contact set", request.contacts), ContactSet.open(request.contacts) as contacts:
        yield audit_sources.audited_contact_set(contacts, request.frames, names)


def _audited(source: AuditSource, baseline: Baseline, request: AuditRequest, progress: Progress) -> Audit:
    limits = request.limits
    of_pairs = PairLimits(limits, source.shapes, source.name)
    shape = len(source.frames), source.world_count
    recorded, is_start = _recorded(source)
    depths, count = MotionDepths(is_start.ravel()), len(source.shapes.path)
    for done, cell, shape0, shape1, distance in source.rows():
        key = shape0.astype(np.int64) * count + shape1
        key, cell, depth = depths_of(key, cell, distance)
        pair = key // count, key % count
        depths.add(key, cell, depth, of_pairs.limit(*pair), of_pairs.classes(*pair))
        if progress is not None:
            progress(done, shape[0])
    pairs = _pairs(source, request, of_pairs, depths, baseline)
    measure_overlaps(source, pairs[: request.first], request.overlap_volume, request.deepest_point)
    tunnels = _tunnels(source, of_pairs, depths.usable)
    usable = depths.usable.reshape(shape) & recorded
    deepest = np.where(depths.deepest[:, None] < 0, -1, np.stack(np.divmod(depths.deepest, count), axis=1))
    by_class = {name: depths.by_class.get(name, np.zeros(len(depths.depth), np.float32)) for name in (SELF, GROUND)}
    arrays = [of_class.reshape(shape) for of_class in (depths.depth, by_class[SELF], by_class[GROUND])]
    names = ("depth", "self_depth", "ground_depth")
    series = _series(source, {**dict(zip(names, arrays, strict=True)), "unusable": recorded & ~usable})
    optional = {SELF: of_pairs.has_robot, OWN: bool(limits.pairs)}
    known = [name for name in CHECKS if optional.get(name, True)]
    checks = [_check(name, limits, pairs, baseline is not None) for name in known]
    if tunnels is not None:
        checks.append(_check_tunnels(tunnels, baseline))
    reasons = [check["reason"] for check in checks if check["reason"]]
    time = source.frames.time
    result = AuditResult(
        input=source.name,
        scene=source.scene,
        scene_sha256=source.scene_sha256,
        trajectory=source.trajectory,
        trajectory_sha256=source.trajectory_sha256,
        passed=not reasons,
        reasons=reasons,
        limits=_limits(limits),
        frames=len(time),
        worlds=source.world_count,
        cells=int(recorded.sum()),
        time={"first": float(time[0]), "last": float(time[-1])} if len(time) else {"first": None, "last": None},
        checks=checks,
        usable=_usable(source, usable, recorded),
        series=series,
        pairs=pairs,
        tunnels=tunnels,
        baseline=None if baseline is None else _compared(request, baseline, source, pairs),
        warnings=source.notes,
    )
    return Audit(
        result, usable, recorded, arrays[0], arrays[1], arrays[2], deepest.astype(np.int32).reshape(*shape, 2),
        tuple(source.shapes.path), source.frames.number, source.step, time,
    )  # fmt: skip


def _series(source: AuditSource, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    bins = TimeBins(len(source.frames), MAX_BINS)
    greatest = {name: bins.greatest(values.max(axis=1)) for name, values in arrays.items()}
    return {**bins.axis(source.frames.time, source.frames.number), **greatest}


def _recorded(source: AuditSource) -> tuple[np.ndarray, np.ndarray]:
    """bool[F, W] twice: recorded cells, and first frames of worlds or demonstrations."""
    frames, worlds = len(source.frames), source.world_count
    episodes = source.frames.episodes
    is_start = np.zeros((frames, worlds), bool)
    if episodes is None:
        is_start[:1] = True
    else:
        recorded = np.flatnonzero(episodes.frame_count > 0)
        is_start[episodes.first_frame[recorded], episodes.world[recorded]] = True
    return recorded_cells(episodes, frames, worlds), is_start


def _pairs(
    source: AuditSource, request: AuditRequest, of_pairs: PairLimits, depths: MotionDepths, baseline: Baseline
) -> list[dict[str, Any]]:
    """Check and limit of a pair of names are those of its deepest pair of shapes."""
    pairs, names, count = depths.pairs, source.shapes.names, len(source.shapes.path)
    name0, name1 = names.pair(pairs.key // count, pairs.key % count)
    pairs = pairs.merged(name0 * count + name1)
    pairs = pairs.take(np.lexsort((pairs.key, -pairs.depth)))
    shape0, shape1 = pairs.key // count, pairs.key % count
    limit, allowed = of_pairs.limit(shape0, shape1), of_pairs.allowed(shape0, shape1)
    has_own = of_pairs.has_own(shape0, shape1)
    classes, tolerance, max_start = of_pairs.classes(shape0, shape1), request.tolerance, request.limits.max_start
    before = None if baseline is None else _depths_by_name(baseline)
    rows = []
    for n in range(len(pairs)):
        frame, world = divmod(int(pairs.cell[n]), source.world_count)
        pair: dict[str, Any] = {
            "shape0": names.text[shape0[n]], "shape1": names.text[shape1[n]],
            "check": OWN if has_own[n] else SELF if classes[SELF][n] else GROUND if classes[GROUND][n] else DEPTH,
            "allowed": bool(allowed[n]), "limit": None if np.isinf(limit[n]) else float(limit[n]),
            "depth": float(pairs.depth[n]), "frame": int(source.frames.number[frame]), "world": world,
            "time": float(source.frames.time[frame]), "cells": int(pairs.cells[n]), "cells_over": int(pairs.over[n]),
            "start_depth": float(pairs.start[n]),
        }  # fmt: skip
        if source.frames.episodes is not None:
            pair["episode"] = source.frames.episodes.name_at(world, frame)
        over_start = max_start is not None and np.float32(pair["start_depth"]) > np.float32(max_start)
        pair["exceeds"] = [pair["check"]] * (pair["cells_over"] > 0) + [START] * bool(over_start and not allowed[n])
        if before is not None:
            depth, start = before.get((pair["shape0"], pair["shape1"]), (0.0, 0.0))
            pair["baseline_depth"] = depth
            pair["worse"] = pair["depth"] > depth + tolerance or pair["start_depth"] > start + tolerance
        rows.append(pair)
    return rows


def _tunnels(source: AuditSource, of_pairs: PairLimits, usable: np.ndarray) -> list[dict[str, Any]] | None:
    """Pairs that tunnel; None without a sweep. The frames before and after such a step become unusable."""
    tunnels = source.tunnels()
    if tunnels is None:
        return None
    allowed = of_pairs.allowed(tunnels.shape0, tunnels.shape1)
    bad = tunnels.cell[~allowed]
    both = np.concatenate([bad, bad + source.world_count])
    usable[both[both < len(usable)]] = False
    if tunnels.undecided:
        source.notes.append(f"{plural(tunnels.undecided, 'touch', 'touches')} between frames could not be decided")
    return audit_sources.tunnel_steps(tunnels, source.shapes.names, source.frames, source.world_count, allowed)


def _check_tunnels(tunnels: list[dict[str, Any]], baseline: Baseline) -> dict[str, Any]:
    """The check of tunnelling: every pair that is not allowed; with a baseline those with more steps than there."""
    before = {} if baseline is None else _steps_by_name(baseline)
    for row in tunnels:
        row["exceeds"] = not row["allowed"] and row["steps"] > before.get((row["shape0"], row["shape1"]), 0)
    failing = [row for row in tunnels if row["exceeds"]]
    reason = ""
    if failing:
        first = failing[0]
        pair = f"{first['shape0']} and {first['shape1']}, after frame {first['frame']}"
        touch = "touches" if len(failing) == 1 else "touch"
        reason = f"{plural(len(failing), 'pair')} {touch} only between two frames: {pair}"
    deepest = max((row["depth"] for row in tunnels), default=0.0)
    check = {"name": TUNNEL, "limit": None, "pairs": len(tunnels), "failing": len(failing)}
    return check | {"deepest": deepest, "reason": reason}


def _depths_by_name(baseline: dict[str, Any]) -> dict[tuple[str, str], tuple[float, float]]:
    """Depth and start depth of each pair of a baseline; of equal names the greatest."""
    depths: dict[tuple[str, str], tuple[float, float]] = {}
    for pair in baseline["pairs"]:
        names = pair["shape0"], pair["shape1"]
        before = depths.get(names, (0.0, 0.0))
        depths[names] = max(before[0], float(pair["depth"])), max(before[1], float(pair["start_depth"]))
    return depths


def _steps_by_name(baseline: dict[str, Any]) -> dict[tuple[str, str], int]:
    return {(tunnel["shape0"], tunnel["shape1"]): int(tunnel["steps"]) for tunnel in baseline.get("tunnels") or ()}


def _read_baseline(path: str) -> dict[str, Any]:
    fix = "give the output of an earlier collide audit --json"
    baseline = read_result(path, SCHEMA, {}, fix)
    try:
        _depths_by_name(baseline)
        _steps_by_name(baseline)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError("has a list of pairs that is damaged", path, fix) from None
    return baseline


def _limits(limits: AuditLimits) -> dict[str, Any]:
    values = asdict(limits)
    values["pairs"] = [{"between": list(pattern), "max_depth": limit} for pattern, limit in limits.pairs]
    return values | {name: [list(v) if isinstance(v, tuple) else v for v in values[name]] for name in ("allow",)}


def _check(name: str, limits: AuditLimits, pairs: list[dict[str, Any]], is_compared: bool) -> dict[str, Any]:
    """One check: its pairs, the deepest, those that exceed a limit, and the reason to fail, or ""."""
    value = "start_depth" if name == START else "depth"
    checked = [row for row in pairs if row[value] > 0.0 and (name in (START, row["check"]))]
    checked.sort(key=lambda row: -row[value])
    failing = [row for row in checked if name in row["exceeds"]]
    if is_compared:
        without_limits = not limits.has_any and name != START
        failing = [row for row in (checked if without_limits else failing) if row["worse"] and not row["allowed"]]
    limit = _limit_of(name, limits)
    reason = ""
    if failing:
        deepest, words = failing[0], {SELF: " of one robot", GROUND: " with the ground", START: " in a first frame"}
        words[OWN] = " with a limit of their own"
        what = "worse than in the baseline" if is_compared else "deeper than allowed"
        pair = f"{deepest[value]:.4g} m deep: {deepest['shape0']} and {deepest['shape1']}"
        reason = f"{plural(len(failing), 'pair')}{words.get(name, '')} {what}, up to {pair}"
    return {
        "name": name,
        "limit": limit,
        "pairs": len(checked),
        "failing": len(failing),
        "deepest": checked[0][value] if checked else 0.0,
        "reason": reason,
    }


def _limit_of(name: str, limits: AuditLimits) -> float | None:
    """The limit of every pair of a check [m]; None for none, and for pairs whose own limits differ."""
    if name == OWN:
        own = {limit for _, limit in limits.pairs}
        return own.pop() if len(own) == 1 else None
    if name == START:
        return limits.max_start
    limit = {DEPTH: limits.max_depth, SELF: limits.self, GROUND: limits.max_ground}[name]
    return limits.max_depth if limit is None else limit


def _usable(source: AuditSource, usable: np.ndarray, recorded: np.ndarray) -> dict[str, Any]:
    """Counts of usable cells, the runs of unusable frames, and the longest unusable beginning of a world."""
    bad = recorded & ~usable
    runs = []
    for world in np.flatnonzero(bad.any(axis=0)).tolist():
        edges = np.flatnonzero(np.diff(np.concatenate([[0], bad[:, world].astype(np.int8), [0]])))
        for first, end in edges.reshape(-1, 2).tolist():
            frames = source.frames.number[first], source.frames.number[end - 1]
            runs.append({"world": world, "first_frame": int(frames[0]), "last_frame": int(frames[1])})
    return {
        "cells": int(usable.sum()),
        "share": float(usable.sum() / max(1, recorded.sum())),
        "unusable_from_start": int(leading_run(bad.T).max(initial=0)),
        "runs": len(runs),
        "listed": runs[:MAX_RUNS_LISTED],
    }


def _compared(
    request: AuditRequest, baseline: dict[str, Any], source: AuditSource, pairs: list[dict[str, Any]]
) -> dict[str, Any]:
    is_same = baseline.get("trajectory_sha256") == source.trajectory_sha256
    named_pairs = {(pair["shape0"], pair["shape1"]) for pair in pairs}
    return {
        "file": request.against,
        "tolerance": request.tolerance,
        "worse": sum(pair["worse"] for pair in pairs),
        "gone": len(_depths_by_name(baseline).keys() - named_pairs),
        "note": "" if is_same else "the baseline is of another recording",
    }


# The mask of usable frames of an audit, with the depths of every frame, as NPZ, HDF5 or CSV.

MASK_ENDINGS = (".npz", *HDF5_ENDINGS, ".csv")
UNITS = {"time": "s", "depth": "m", "self_depth": "m", "ground_depth": "m"}


def write_mask(path: str, audit: Audit, force: bool) -> None:
    """Writes the arrays of an audit. Raises OutputError; then there is no file."""
    with AtomicOutput(path, force) as output:
        ending = os.path.splitext(path)[1].lower()
        if ending == ".csv":
            words, (frame, world) = ("", *audit.shape_path), np.nonzero(audit.recorded)
            columns = (
                *cell_columns(None),
                TableColumn("usable", np.dtype(bool)),
                *(TableColumn(name, np.dtype(np.float32), "m") for name in ("depth", "self_depth", "ground_depth")),
                *(TableColumn(name, np.dtype(np.int32), words=words) for name in ("shape0", "shape1")),
            )
            rows = {name: getattr(audit, name)[frame] for name in ("frame", "step", "time")} | {"world": world}
            dense = [name for name in OF_CELLS if name not in ("recorded", "deepest")]
            rows |= {name: getattr(audit, name)[frame, world] for name in dense}
            rows["shape0"], rows["shape1"] = audit.deepest[frame, world].T + 1
            with csv_table(output, columns) as append:
                if len(frame):
                    append(rows)
        elif ending == ".npz":
            arrays = [held(name, values) for name, values in _arrays(audit).items()]
            write_npz(output, (*arrays, texts("shape_path", audit.shape_path)))
        else:
            about = {"scene": audit.result.scene, "limits": audit.result.limits}
            tables = _arrays(audit) | {"shape_path": np.array(audit.shape_path, object)}
            with arrays_h5(output, AUDIT_FORMAT, about, tables, UNITS):
                pass
        output.commit()


OF_CELLS = ("usable", "recorded", "depth", "self_depth", "ground_depth", "deepest")


def _arrays(audit: Audit) -> dict[str, np.ndarray]:
    arrays = {name: getattr(audit, name) for name in OF_CELLS}
    return arrays | {"frame_index": audit.frame.astype(np.int64), "step": audit.step, "time": audit.time}
