"""The Python function `audit`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from collidecli.analysis.frame_texts import frames_text
from collidecli.errors import InputError
from collidecli.motions.requests import EngineRequest
from collidecli.python.contact_set import Contacts, ContactSet
from collidecli.python.contacts import set_of
from collidecli.python.option_parameters import (
    SCENE_PARAMETERS,
    option_parameters,
    with_options,
)
from collidecli.python.progress import ShowProgress, shown_progress
from collidecli.python.scenes import MotionSource, SceneSource, source_request
from collidecli.results.result import PathLike
from collidecli.scene.arguments import checked_metres, python_call
from collidecli.scene.options import ContactOptions, EngineOptions, pair_texts, split_pairs
from collidecli.scene.patterns import listed
from collidecli.storage.contact_sets.header import FORMAT
from collidecli.storage.h5_files import format_of_path
from collidecli.verbs.audit.audit import Audit
from collidecli.verbs.audit.audit import audit as run_audit
from collidecli.verbs.audit.limits import AuditLimits, read_limits
from collidecli.verbs.audit.option_names import OF_SELF_CONTACTS
from collidecli.verbs.audit.request import AuditRequest

OF_SCENES = {
    **SCENE_PARAMETERS,
    **option_parameters(
        ContactOptions,
        names=["margin", "static_pairs", *OF_SELF_CONTACTS, "sweep", "sweep_tolerance"],
    ),
    **option_parameters(EngineOptions),
}
"""Options of `run` that have an effect on an audit."""


def _checked_limits(
    lengths: dict[str, float | str | None],
    allow: str | Sequence[str | tuple[str, str]],
    ground_shapes: str | Sequence[str],
    self_bodies: str | Sequence[str],
    limits: PathLike,
) -> AuditLimits:
    """The limits of the arguments over those of the file `limits`. Raises InputError."""
    depths: dict[str, Any] = {
        k: None if value is None else checked_metres(value, k) for k, value in lengths.items()
    }
    given = AuditLimits(
        **depths,
        allow=split_pairs(pair_texts("allow", allow)),
        ground_shapes=listed(ground_shapes),
        self_bodies=listed(self_bodies),
    ).checked()
    return given.over(read_limits(os.fspath(limits))) if limits else given


def _with_source(
    request: AuditRequest,
    scene: SceneSource | ContactSet | Contacts,
    recording: MotionSource,
    options: dict[str, Any],
) -> AuditRequest:
    """The request with its contact set, or with its scene in motion. Raises InputError for options
    that the source does not have."""
    scene = set_of(scene)
    if isinstance(scene, ContactSet):
        scene = scene.path
    is_path = isinstance(scene, (str, os.PathLike))
    if recording is None and is_path and format_of_path(scene) == FORMAT:
        if options.keys() - {"frames", "sweep"}:
            what = "are options for scenes, and a contact set has its motion and its contacts"
            raise InputError(what, ", ".join(options), "leave them out")
        frames = frames_text(options.get("frames", ""))
        return replace(
            request,
            contacts=os.fspath(scene),
            frames=frames,
            sweep=bool(options.get("sweep")),
        )
    return replace(request, scene=source_request(EngineRequest, scene, recording, options))


@python_call
@with_options(OF_SCENES)
def audit(
    scene: SceneSource | ContactSet | Contacts,
    recording: MotionSource = None,
    *,
    max_depth: float | str | None = None,
    self: float | str | None = None,
    max_ground: float | str | None = None,
    max_start: float | str | None = None,
    allow: str | Sequence[str | tuple[str, str]] = (),
    ground_shapes: str | Sequence[str] = (),
    self_bodies: str | Sequence[str] = (),
    limits: PathLike = "",
    against: PathLike = "",
    tolerance: float | str = 1e-6,
    overlap_volume: bool = False,
    deepest_point: bool = False,
    first: int = 20,
    progress: ShowProgress = False,
    **options: Any,
) -> Audit:
    """The penetrations of a motion against limits, and the frames that can be used.

    Args:
        scene, recording: as of `run`; or a contact set, its path, or contacts in memory, alone.
        max_depth, self, max_ground, max_start: limits of depth, in metres or as a text such as
            "2mm"; None for none.
        allow: pairs of patterns without a limit, as [("hand*", "cup*")], or texts, as "hand*,cup*".
            ground_shapes, self_bodies: patterns, a sequence
            or a text with commas.
        limits: a file of limits. against: the JSON of an earlier audit; tolerance: greater depths
            than its are worse.
        overlap_volume, deepest_point: measure these of the deepest overlaps of the `first` deepest
            pairs [m^3, m].
        progress: show a bar, or a function of the frames done and of all.
        options: of `collide audit` for scenes, with underscores: frames="0:100", margin=0.0,
            threads=2.
    Returns:
        `Audit`: `passed`, `usable` bool[frames, worlds], `depth`, `self_depth`, `ground_depth` [m],
            `pairs`, `result`.
    Raises:
        InputError: as `collide audit` does.
    """
    lengths = {
        "max_depth": max_depth,
        "self": self,
        "max_ground": max_ground,
        "max_start": max_start,
    }
    given = _checked_limits(lengths, allow, ground_shapes, self_bodies, limits)
    request = AuditRequest(
        "",
        None,
        "",
        given,
        os.fspath(against),
        checked_metres(tolerance, "tolerance"),
        overlap_volume,
        deepest_point,
        first,
    )
    request = _with_source(request, scene, recording, options)
    with shown_progress(progress, "auditing") as advance:
        outcome = run_audit(request, advance)
    for note in outcome.result.warnings:
        warnings.warn(note, stacklevel=3)
    return outcome
