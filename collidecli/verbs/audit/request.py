"""What `audit` is asked."""

from __future__ import annotations

from dataclasses import dataclass, field

from collidecli.motions.requests import EngineRequest
from collidecli.verbs.audit.limits import AuditLimits


@dataclass(frozen=True)
class AuditRequest:
    """What is audited, and how. contacts: a contact set; else `scene`. frames: of the contact set.

    limits: given limits. against: a baseline, as JSON of an earlier audit; "" for none. tolerance:
    a depth is worse than that of the baseline if it is greater by more than this [m].
    overlap_volume, deepest_point: measure these of the deepest overlaps of the `first` deepest
    pairs. sweep: refuse a contact set without contacts between frames.
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
