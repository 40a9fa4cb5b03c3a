"""Meaning of MuJoCo's margin and gap, which changed with its version 3.9.

With `dist` the distance of the plain surfaces:

| meaning | a contact is reported at | a contact can have a force at |
|---|---|---|
| since 3.9, "included" | dist < margin + gap | dist < margin |
| 3.5 to 3.8, "legacy" | dist < margin | dist < margin - gap |

A shape of this program is inflated by its margin, and reported up to its gap beyond that: the first
meaning. The second one is that of the margin `margin - gap` and the unchanged gap, as MuJoCo's
change log of 3.9.0 has it. Surfaces are not deflated here: where a geom's `gap > margin`, its
margin is 0 and its gap is the legacy margin, so that equal contacts are reported, at the distances
of its plain surface. Beside a geom with a margin above its gap the pair stays inflated by that
one's difference, where MuJoCo subtracted the sum of the gaps.
"""

from __future__ import annotations

from collidecli.scene.option_values import LEGACY_MARGIN

SINCE = "MuJoCo 3.9"
"""The version with the first meaning."""
DEFLATED = (
    "the gap exceeds the margin: surfaces are not deflated here, and distances are those of the"
    " plain surfaces"
)


def margin_and_gap(margin: float, gap: float, meaning: str) -> tuple[float, float]:
    """Inflation of a surface, and how far beyond it a contact is reported, of authored values [m].

    meaning: of `--mjcf-margin`; "" is that of MuJoCo since 3.9.
    """
    if meaning != LEGACY_MARGIN:
        return margin, gap
    return (margin - gap, gap) if gap <= margin else (0.0, margin)


def may_be_legacy(margin: float, gap: float, meaning: str) -> bool:
    """Whether authored values are such as have a use in the legacy meaning, and no meaning is
    given."""
    return not meaning and 0.0 < margin <= gap


def is_deflated(margin: float, gap: float, meaning: str) -> bool:
    """Whether the legacy meaning of authored values is a surface inside of the shape."""
    return meaning == LEGACY_MARGIN and gap > margin


def legacy_note(margin: float) -> str:
    """What a user must know of the first shape for which `may_be_legacy` is true. margin: of it
    [m]."""
    inflated = f"the surface is {margin:g} m further out since {SINCE}"
    return (
        f"0 < margin <= gap: {inflated}, and before it such contacts had no force; "
        "--mjcf-margin legacy has the old meaning, --mjcf-margin included confirms the new one"
    )
