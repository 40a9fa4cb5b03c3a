"""The verb `audit`: the depths of a motion's penetrations, their limits, and the frames that can be
used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.analysis.deepest import deepest_order
from collidecli.analysis.motion_depths import UNKNOWN_DEPTH, MotionDepths, depths_of
from collidecli.analysis.summary import TimeBins
from collidecli.errors import InputError
from collidecli.exporters.dense_columns import dense_dataset
from collidecli.results.result import Progress, Result
from collidecli.scene.episodes import recorded_cells
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.process_activity import reading
from collidecli.verbs.audit.checks import (
    CHECKS,
    DEPTH,
    GROUND,
    OWN,
    SCHEMA,
    SELF,
    START,
    check_known_depths,
    checked_depths,
    checked_tunnels,
    compared_with_baseline,
    depths_by_name,
    limits_dict,
    read_baseline,
    usable_cells,
    without_unknown_depths,
)
from collidecli.verbs.audit.limits import AuditLimits, PairLimits
from collidecli.verbs.audit.overlap import measure_overlaps
from collidecli.verbs.audit.sources import (
    STEPS_LEFT_OUT,
    AuditSource,
    audited_contact_set,
    audited_scene,
)
from collidecli.verbs.audit.tunnels import tunnel_steps
from collidecli.verbs.audit.words import audit_state
from collidecli.wording import plural

if TYPE_CHECKING:
    import pandas
    import xarray

    from collidecli.verbs.audit.checks import Baseline
    from collidecli.verbs.audit.request import AuditRequest

MAX_BINS = 400


@dataclass(frozen=True, kw_only=True)
class AuditResult(
    Result, schema=SCHEMA, optional=("written", "tunnels", "touch_only"), rows="pairs"
):
    """Penetrations of a motion against limits.

    passed: no limit is exceeded; with a baseline, nothing is worse. reasons: why it is not. checks:
    of each class of pairs. usable: cells without a pair above its limit. series: the greatest
    depths [m] of bins of frames, of all pairs and of two classes, and whether a frame of the bin is
    unusable. pairs: every penetrating pair, the deepest first. depth [m] is the least translation
    that separates a pair. tunnels: pairs that touch between two frames and are apart in both; None
    without a sweep. baseline: the compared audit, or None. touch_only: True for a set of touches,
    whose depths are not known and None; else None.
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
    touch_only: bool | None = None


@dataclass(frozen=True)
class Audit:
    """A result and its arrays; F frames, W worlds.

    usable: bool[F, W], recorded and no pair above its limit. recorded: bool[F, W]. depth,
    self_depth, ground_depth: float32[F, W], the greatest of all pairs and of the two classes [m].
    Those of a pair of a set of touches are infinite. deepest: int32[F, W, 2], rows of shape_path,
    -1 without penetration. frame, step: int64[F]. time: float64[F] [s], or numbers of frames, see
    `collide`.
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
        words = audit_state(vars(self.result))
        return (
            f"<Audit {words} frames={frames} worlds={worlds} usable={int(self.usable.sum())}"
            f" pairs={len(self.pairs)}>"
        )

    def _repr_html_(self) -> str:
        return self.result._repr_html_()

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each penetrating pair, the deepest first. Raises InputError without pandas."""
        return self.result.to_pandas()

    def to_xarray(self) -> xarray.Dataset:
        """The arrays over the dimensions frame and world, with step and time of the frames;
        `deepest` has two rows of `shape_path`.

        Raises InputError without xarray.
        """
        names = ("usable", "recorded", "depth", "self_depth", "ground_depth", "deepest")
        arrays = {name: getattr(self, name) for name in names}
        frames = {"frame": self.frame, "step": self.step, "time": self.time}
        axes = [frames, {"world": np.arange(self.usable.shape[1])}]
        units = {name: "m" for name in names if name.endswith("depth")}
        dataset = dense_dataset(("frame", "world"), axes, arrays, units)
        return dataset.assign_coords(shape_path=("shape", np.array(self.shape_path, object)))


def audit(request: AuditRequest, progress: Progress = None) -> Audit:
    """Audits a contact set, or a scene in motion.

    Raises InputError for inputs that cannot be used, limits that are none, and patterns that match
    nothing.
    """
    request.limits.checked()
    if not 0.0 <= request.tolerance < np.inf:
        raise InputError(
            f"{request.tolerance} is not a length", "--tolerance", "give at least 0, such as 1µm"
        )
    if not request.first and (request.overlap_volume or request.deepest_point):
        name = "--overlap-volume" if request.overlap_volume else "--deepest-point"
        raise InputError(
            "measures the deepest pairs of the table, which has none",
            name,
            "give --first at least 1",
        )
    baseline = read_baseline(request.against) if request.against else None
    with _source(request) as source:
        if request.sweep and source.swept is None:
            if STEPS_LEFT_OUT in source.notes:
                raise InputError(
                    "the frames are not consecutive", "--frames", "select a range of frames"
                )
            raise InputError(
                "the contact set has no contacts between frames", source.name, "run with --sweep"
            )
        return _audited(source, baseline, request, progress)


@contextmanager
def _source(request: AuditRequest) -> Iterator[AuditSource]:
    names = request.limits.self_bodies
    if request.scene is not None:
        with audited_scene(request.scene, names) as source:
            yield source
        return
    if request.overlap_volume or request.deepest_point:
        name = "--overlap-volume" if request.overlap_volume else "--deepest-point"
        raise InputError(
            "a contact set has no geometry",
            f"{request.contacts}: {name}",
            "audit the scene in its place",
        )
    if request.limits.self is not None and not names:
        what = "a contact set has no joints, so that bodies of one robot are not known"
        raise InputError(what, "--self", "name them with --self-bodies, or audit the scene")
    with reading("contact set", request.contacts), ContactSet.open(request.contacts) as contacts:
        yield audited_contact_set(contacts, request.frames, names)


def _measured_depths(
    source: AuditSource, of_pairs: PairLimits, is_start: np.ndarray, progress: Progress
) -> MotionDepths:
    """The depths of all rows of a source. is_start: bool[F, W], first frames of worlds or
    demonstrations."""
    depths = MotionDepths(is_start.ravel())
    count = len(source.shapes.path)
    for done, cell, shape0, shape1, distance in source.rows():
        key = shape0.astype(np.int64) * count + shape1
        key, cell, depth = depths_of(key, cell, distance)
        pair = key // count, key % count
        classes = of_pairs.classes(*pair)
        name = _named_keys(source, key)
        depths.add(key, cell, depth, of_pairs.limit(*pair), classes, name)
        if progress is not None:
            progress(done, len(source.frames))
    return depths


def _named_keys(source: AuditSource, key: np.ndarray) -> np.ndarray:
    """int64[n]: of pairs of shapes, those of the first shapes of their names."""
    count = len(source.shapes.path)
    one, other = source.shapes.names.pair(key // count, key % count)
    return one.astype(np.int64) * count + other


def _greatest_depths(depths: MotionDepths, shape: tuple[int, int]) -> dict[str, np.ndarray]:
    """float32[F, W] by name: the greatest depths of all pairs and of the two classes [m]."""
    none = np.zeros(len(depths.depth), np.float32)
    greatest = {
        "depth": depths.depth,
        "self_depth": depths.by_class.get(SELF, none),
        "ground_depth": depths.by_class.get(GROUND, none),
    }
    return {name: values.reshape(shape) for name, values in greatest.items()}


def _deepest_pairs(depths: MotionDepths, shape_count: int) -> np.ndarray:
    """int32[cells, 2]: the shapes of the deepest pair of each cell; -1 without penetration."""
    shapes = np.stack(np.divmod(depths.deepest, shape_count), axis=1)
    return np.where(depths.deepest[:, None] < 0, -1, shapes).astype(np.int32)


def _checks(
    limits: AuditLimits,
    of_pairs: PairLimits,
    pairs: list[dict[str, Any]],
    tunnels: list[dict[str, Any]] | None,
    baseline: Baseline,
) -> list[dict[str, Any]]:
    """The checks of each class of pairs that the source has, and of tunnels."""
    optional = {SELF: of_pairs.has_robot, OWN: bool(limits.pairs)}
    known = [name for name in CHECKS if optional.get(name, True)]
    checks = [checked_depths(name, limits, pairs, baseline is not None) for name in known]
    if tunnels is not None:
        checks.append(checked_tunnels(tunnels, baseline))
    return checks


def _audited(
    source: AuditSource, baseline: Baseline, request: AuditRequest, progress: Progress
) -> Audit:
    limits = request.limits
    check_known_depths(limits, source, baseline, request.against)
    of_pairs = PairLimits(limits, source.shapes, source.name)
    shape = len(source.frames), source.world_count
    recorded, is_start = _recorded(source)
    depths = _measured_depths(source, of_pairs, is_start, progress)
    pairs = _pairs(source, request, of_pairs, depths, baseline)
    measure_overlaps(source, pairs[: request.first], request.overlap_volume, request.deepest_point)
    tunnels = _tunnels(source, of_pairs, depths.usable)
    usable = depths.usable.reshape(shape) & recorded
    greatest = _greatest_depths(depths, shape)
    checks = _checks(limits, of_pairs, pairs, tunnels, baseline)
    reasons = [check["reason"] for check in checks if check["reason"]]
    for row in (*pairs, *checks):
        without_unknown_depths(row)
    time = source.frames.time
    result = AuditResult(
        input=source.name,
        scene=source.scene,
        scene_sha256=source.scene_sha256,
        trajectory=source.trajectory,
        trajectory_sha256=source.trajectory_sha256,
        passed=not reasons,
        reasons=reasons,
        limits=limits_dict(limits),
        frames=len(time),
        worlds=source.world_count,
        cells=int(recorded.sum()),
        time=_ends(time),
        checks=checks,
        usable=usable_cells(source, usable, recorded),
        series=_series(source, {**greatest, "unusable": recorded & ~usable}),
        pairs=pairs,
        tunnels=tunnels,
        baseline=(
            None if baseline is None else compared_with_baseline(request, baseline, source, pairs)
        ),
        warnings=source.notes,
        touch_only=source.touch_only or None,
    )
    return Audit(
        result,
        usable,
        recorded,
        greatest["depth"],
        greatest["self_depth"],
        greatest["ground_depth"],
        _deepest_pairs(depths, len(source.shapes.path)).reshape(*shape, 2),
        tuple(source.shapes.path),
        source.frames.number,
        source.step,
        time,
    )


def _ends(time: np.ndarray) -> dict[str, float | None]:
    """First and last time of the frames [s]."""
    first, last = (float(time[0]), float(time[-1])) if len(time) else (None, None)
    return {"first": first, "last": last}


def _series(source: AuditSource, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    bins = TimeBins(len(source.frames), MAX_BINS)
    greatest = {
        name: [None if value == UNKNOWN_DEPTH else value for value in bins.greatest(most)]
        for name, most in ((name, values.max(axis=1)) for name, values in arrays.items())
    }
    return {**bins.axis(source.frames.time, source.frames.number), **greatest}


def _recorded(source: AuditSource) -> tuple[np.ndarray, np.ndarray]:
    """bool[F, W] twice: recorded cells, and first frames of worlds or demonstrations."""
    frames = len(source.frames)
    worlds = source.world_count
    episodes = source.frames.episodes
    is_start = np.zeros((frames, worlds), bool)
    if episodes is None:
        is_start[:1] = True
    else:
        recorded = np.flatnonzero(episodes.frame_count > 0)
        is_start[episodes.first_frame[recorded], episodes.world[recorded]] = True
    return recorded_cells(episodes, frames, worlds), is_start


def _check_of(has_own: bool, is_self: bool, is_ground: bool) -> str:
    """The check whose limit a pair has: its own, else that of its class."""
    if has_own:
        return OWN
    if is_self:
        return SELF
    return GROUND if is_ground else DEPTH


def _pairs(
    source: AuditSource,
    request: AuditRequest,
    of_pairs: PairLimits,
    depths: MotionDepths,
    baseline: Baseline,
) -> list[dict[str, Any]]:
    """Check and limit of a pair of names are those of its deepest pair of shapes."""
    pairs = depths.pairs
    names = source.shapes.names
    count = len(source.shapes.path)
    pairs = pairs.merged(_named_keys(source, pairs.key))
    order = deepest_order(-pairs.depth, pairs.cell, _named_keys(source, pairs.key))
    pairs = pairs.take(order)
    name0, name1 = np.divmod(_named_keys(source, pairs.key), count)
    shape0 = pairs.key // count
    shape1 = pairs.key % count
    limit = of_pairs.limit(shape0, shape1)
    allowed = of_pairs.allowed(shape0, shape1)
    has_own = of_pairs.has_own(shape0, shape1)
    classes = of_pairs.classes(shape0, shape1)
    tolerance = request.tolerance
    max_start = request.limits.max_start
    before = None if baseline is None else depths_by_name(baseline)
    rows = []
    for n in range(len(pairs)):
        frame, world = divmod(int(pairs.cell[n]), source.world_count)
        pair: dict[str, Any] = {
            "shape0": names.text[name0[n]],
            "shape1": names.text[name1[n]],
            "check": _check_of(has_own[n], classes[SELF][n], classes[GROUND][n]),
            "allowed": bool(allowed[n]),
            "limit": None if np.isinf(limit[n]) else float(limit[n]),
            "depth": float(pairs.depth[n]),
            "frame": int(source.frames.number[frame]),
            "world": world,
            "time": float(source.frames.time[frame]),
            "cells": int(pairs.cells[n]),
            "cells_over": int(pairs.over[n]),
            "start_depth": float(pairs.start[n]),
        }
        if source.frames.episodes is not None:
            pair["episode"] = source.frames.episodes.name_at(world, frame)
        over_start = max_start is not None and np.float32(pair["start_depth"]) > np.float32(
            max_start
        )
        pair["exceeds"] = [pair["check"]] * (pair["cells_over"] > 0) + [START] * bool(
            over_start and not allowed[n]
        )
        if before is not None:
            depth, start = before.get((pair["shape0"], pair["shape1"]), (0.0, 0.0))
            pair["baseline_depth"] = depth
            pair["worse"] = (
                pair["depth"] > depth + tolerance or pair["start_depth"] > start + tolerance
            )
        rows.append(pair)
    return rows


def _tunnels(
    source: AuditSource, of_pairs: PairLimits, usable: np.ndarray
) -> list[dict[str, Any]] | None:
    """Pairs that tunnel; None without a sweep. The frames before and after such a step become
    unusable."""
    tunnels = source.tunnels()
    if tunnels is None:
        return None
    allowed = of_pairs.allowed(tunnels.shape0, tunnels.shape1)
    bad = tunnels.cell[~allowed]
    both = np.concatenate([bad, bad + source.world_count])
    usable[both[both < len(usable)]] = False
    if tunnels.undecided:
        source.notes.append(
            f"{plural(tunnels.undecided, 'touch', 'touches')} between frames could not be decided"
        )
    return tunnel_steps(tunnels, source.shapes.names, source.frames, source.world_count, allowed)
