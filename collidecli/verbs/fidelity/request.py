"""What `fidelity` is asked."""

from __future__ import annotations

from dataclasses import dataclass

from collidecli.motions.requests import EnginesRequest


@dataclass(frozen=True, kw_only=True)
class FidelityRequest(EnginesRequest):
    """A scene in motion and the engines, or files of their rows: NAME=rows.npz or NAME=set.h5.

    band: pairs nearer to contact than this may be reported or not [m]. max_missed, max_phantom:
    number for each engine and pair of types; max_depth_error, max_normal_excess,
    max_distance_error, of shapes that are apart [m]; max_depth_error_relative: part of the depth.
    None is no limit. first: worst answers of each engine. view: file of a view of their pairs; ""
    is none.
    """

    band: float = 1e-4
    max_missed: int | None = None
    max_phantom: int | None = None
    max_depth_error: float | None = None
    max_depth_error_relative: float | None = None
    max_distance_error: float | None = None
    max_normal_excess: float | None = None
    first: int = 10
    view: str = ""
    force: bool = False
