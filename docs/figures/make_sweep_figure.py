"""Makes sweep.svg beside this file: a ball that passes through a wall between two frames, as in the
guide to missed contacts."""

from __future__ import annotations

import numpy as np
from matplotlib.patches import Circle, Rectangle

import collidecli
from docs.figures.make_figures import ACCENT, GREY, PLAIN, A, B, arrow, plt, save

RADIUS = 0.02
HALF_THICKNESS = 0.0005
RATE = 60.0
SPEED = 20.0
FRAME_COUNT = 30
FIRST_X = -3.1


def sweep() -> None:
    """The ball in the two frames beside the wall, and where the sweep finds begin and end of the
    touch."""
    builder = collidecli.ModelBuilder()
    builder.add_shape_box(-1, hx=HALF_THICKNESS, hy=1.0, hz=1.0)
    builder.add_shape_sphere(builder.add_body(), radius=RADIUS)
    poses = np.zeros((FRAME_COUNT, 1, 1, 7))
    poses[..., 6] = 1.0
    poses[:, 0, 0, 0] = FIRST_X + np.arange(FRAME_COUNT) / RATE * SPEED
    found = collidecli.sweep(builder.finalize(), poses, fps=RATE)
    (frame,) = found.frame
    before, after = poses[frame : frame + 2, 0, 0, 0]
    figure, axis = plt.subplots(figsize=(8.0, 2.4))
    axis.set_aspect("equal")
    axis.axis("off")
    axis.add_patch(Rectangle((-HALF_THICKNESS, -0.045), 2 * HALF_THICKNESS, 0.1, color=A))
    axis.text(0.0, 0.062, "wall, 1 mm", color=A, ha="center")
    arrow(axis, (before + RADIUS, 0.0), (after - RADIUS, 0.0), GREY, width=0.8)
    for x, name in ((before, f"frame {frame}"), (after, f"frame {frame + 1}")):
        axis.add_patch(Circle((x, 0.0), RADIUS, facecolor=(B, 0.3), edgecolor=B, lw=1.5))
        axis.text(x, -0.045, f"{name}\nx = {x:.3f} m", color=B, ha="center", va="top")
    for part, name, side in ((found.enter[0], "enter", "right"), (found.leave[0], "leave", "left")):
        x = before + part * (after - before)
        axis.add_patch(
            Circle((x, 0.0), RADIUS, facecolor="none", edgecolor=ACCENT, lw=1.2, ls="--")
        )
        seconds = (frame + part) / RATE
        beside = np.copysign(0.006, x)
        axis.text(beside, 0.025, f"{name}\n{seconds:.4f} s", color=ACCENT, ha=side, va="bottom")
    axis.set_xlim(before - 0.05, after + 0.05)
    axis.set_ylim(-0.09, 0.08)
    save(figure, "sweep")


if __name__ == "__main__":
    with plt.rc_context(PLAIN):
        sweep()
