"""MJCF of piles: mixed primitives above a plane, between four walls."""

from __future__ import annotations

import numpy as np

TYPES = ("sphere", "capsule", "box", "cylinder", "ellipsoid")
SPACING = 0.25
OPTION = '<option timestep="0.004" solver="CG" iterations="40" integrator="implicitfast" density="50" viscosity="0.5"/>'


def pile_xml(shape_count: int, gap: float = 0.0) -> str:
    """MJCF of `shape_count` free bodies of one geom each, `g0`, `g1`, ..., on a grid that falls to a pile.

    gap: of every geom; MuJoCo adds those of a pair [m].
    """
    rng = np.random.default_rng(shape_count)
    side = int(np.ceil((shape_count / 2) ** (1 / 3)))
    bodies = []
    for index in range(shape_count):
        place = np.array([index % side, index // side % side, index // side**2], float)
        x, y, z = SPACING * (place - [side / 2 - 0.5, side / 2 - 0.5, -0.8]) + [*rng.uniform(-0.02, 0.02, 2), 0]
        a, b, c, d = rng.normal(size=4)
        kind = TYPES[index % len(TYPES)]
        bodies.append(
            f'<body pos="{x} {y} {z}" quat="{a} {b} {c} {d}"><freejoint/>'
            f'<geom name="g{index}" type="{kind}" size="{_size(kind, *rng.uniform(0.06, 0.11, 3))}"/></body>'
        )
    default = f'<default><geom gap="{gap}"/></default>' if gap else ""
    world = f'<geom type="plane" size="0 0 1"/>{_walls(0.52 * side * SPACING)}{"".join(bodies)}'
    return f'<mujoco>{OPTION}{default}<size memory="4G"/><worldbody>{world}</worldbody></mujoco>'


def _size(kind: str, r: float, s: float, t: float) -> str:
    return {
        "sphere": f"{r}",
        "capsule": f"{0.7 * r} {0.7 * s}",
        "box": f"{0.8 * r} {0.8 * s} {0.8 * t}",
        "cylinder": f"{0.8 * r} {s}",
        "ellipsoid": f"{r} {s} {t}",
    }[kind]


def _walls(half: float) -> str:
    places = (
        (0.5, half + 1, half + 0.5, 0),
        (0.5, half + 1, -half - 0.5, 0),
        (half + 1, 0.5, 0, half + 0.5),
        (half + 1, 0.5, 0, -half - 0.5),
    )
    return "".join(f'<geom type="box" size="{a} {b} 50" pos="{x} {y} 50"/>' for a, b, x, y in places)
