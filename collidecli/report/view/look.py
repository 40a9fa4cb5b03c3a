"""Drawing options of a view."""

from __future__ import annotations

from dataclasses import dataclass

OPACITY = 0.45


@dataclass(frozen=True)
class Look:
    """Drawing options. pair: the selected shapes. only_pair: draw only its contacts.

    opacity: of shapes. size: of points and arrows, relative to a default for the window. distance: of the camera,
    relative to its first one; points and arrows grow with it. gaps: draw contacts within the gap. arrows: draw normals.
    follow: move the view with the moving shapes. surfaces, particles: draw them.
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
