"""Drawing options of a view."""

from __future__ import annotations

from dataclasses import dataclass

OPACITY, OPACITY_OVER_SURFACES = 0.45, 0.25
"""Initial opacity of shapes; with hydroelastic surfaces, whose faces and forces are seen through the shapes."""


@dataclass(frozen=True)
class Look:
    """Drawing options. pair: the selected shapes. only_pair: draw only its contacts.

    opacity: of shapes. size: of points and arrows, relative to a default for the window. distance: of the camera,
    relative to its first one; points and arrows grow with it. gaps: draw contacts within the gap. arrows: draw normals.
    follow: move the view with the moving shapes. surfaces, particles, self_contacts: draw them.
    """

    pair: tuple[int, int] | None = None
    opacity: float = OPACITY
    gaps: bool = True
    arrows: bool = True
    only_pair: bool = False
    size: float = 1.0
    distance: float = 1.0
    follow: bool = True
    surfaces: bool = True
    particles: bool = True
    self_contacts: bool = True


def first_look(has_surfaces: bool) -> Look:
    """The initial options. has_surfaces: the set has hydroelastic surfaces."""
    return Look(opacity=OPACITY_OVER_SURFACES if has_surfaces else OPACITY)
