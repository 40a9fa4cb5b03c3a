"""Colours of the viewer: cool greys and blues for shapes, in contrast to the warm colours of
contacts."""

from __future__ import annotations

import numpy as np

STATIC = (128, 136, 148)
BODIES = (
    (38, 78, 128),
    (36, 108, 98),
    (82, 70, 146),
    (30, 62, 96),
    (66, 108, 148),
    (40, 98, 72),
    (70, 54, 118),
    (24, 88, 122),
)
"""Colours of bodies, used cyclically."""
PICKED = ((29, 90, 200), (12, 140, 110))
"""Colours of the two shapes of the selected pair."""
GAP = (20, 190, 235)
"""Colour of contacts within the gap."""
AGAINST = (16, 16, 24)
"""Colour of the contacts of a second set, of any depth."""
PARTICLES = (168, 158, 226)
"""Colour of particles, cloths and soft bodies."""
SELF_COLOUR = (22, 150, 76)
"""Colour of contacts of cloths and soft bodies with themselves, which have no depth."""
DEPTHS = ((255, 214, 64), (250, 140, 30), (226, 55, 40), (146, 10, 70))
"""Colour gradient of touching contacts, from depth 0 to the greatest depth of all."""


def depth_colours(depth: np.ndarray, deepest: float) -> np.ndarray:
    """Colours uint8[n, 3] of depths [m]; the first colour for all if `deepest` is 0."""
    fraction = np.clip(depth / deepest, 0.0, 1.0) if deepest > 0.0 else np.zeros(len(depth))
    stops = np.linspace(0.0, 1.0, len(DEPTHS))
    return np.stack(
        [np.interp(fraction, stops, channel) for channel in zip(*DEPTHS, strict=True)], axis=-1
    ).astype(np.uint8)


def shape_colours(body: np.ndarray) -> np.ndarray:
    """Colours uint8[n, 3] of shapes by their bodies, -1 for static shapes."""
    palette = np.array([*BODIES, STATIC], np.uint8)
    return palette[np.where(body < 0, len(BODIES), body % len(BODIES))]


def css(colour: tuple[int, int, int]) -> str:
    """A colour in CSS."""
    return f"rgb({colour[0]}, {colour[1]}, {colour[2]})"


OPACITY = 0.45
OPACITY_OVER_SURFACES = 0.25
"""Initial opacity of shapes; with hydroelastic surfaces, whose faces and forces are seen through
the shapes."""
NO_COLOURS = np.zeros((0, 3), np.uint8)
