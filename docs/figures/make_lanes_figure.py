"""Makes lanes.svg beside this file: blocks of cells as the engine divides a chunk."""

from __future__ import annotations

import numpy as np
from matplotlib.patches import Rectangle

from collidecli.engine.cells import FULL_BLOCKS, block_shape, cell_blocks
from docs.figures.make_figures import ACCENT, GREY, PLAIN, A, B, plt, save

FRAMES = 8
TEMPLATES = np.array([0, 0, 1], np.int32)
"""Template of each world: the first two are copies of each other."""
COLORS = (A, B)


def lanes() -> None:
    """Cells of a chunk of two templates, their lanes in two blocks, and the threads that compute a
    shape in a block."""
    count = FRAMES * len(TEMPLATES)
    world = (np.arange(count) % len(TEMPLATES)).astype(np.int32)
    shape = block_shape(count, TEMPLATES, FULL_BLOCKS)
    blocks = cell_blocks(TEMPLATES[world], world, shape)
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(8.0, 4.6), height_ratios=[1.0, 1.5])
    for axis in (upper, lower):
        axis.axis("off")
    for cell in range(count):
        color = COLORS[TEMPLATES[world[cell]]]
        place = (cell // len(TEMPLATES), -world[cell])
        upper.add_patch(Rectangle(place, 1, 1, facecolor=(color, 0.25), edgecolor="white"))
        upper.text(place[0] + 0.5, place[1] + 0.5, str(cell), ha="center", va="center")
    for row, template in enumerate(TEMPLATES):
        name = f"world {row}, template {template}"
        upper.text(-0.15, 0.5 - row, name, ha="right", va="center", color=COLORS[template])
    upper.set_xlim(-2.6, FRAMES + 0.1)
    upper.set_ylim(-2.05, 1.05)
    upper.set_title("cells of a chunk of 8 frames")
    for row, used in enumerate(blocks.block_size):
        color = COLORS[blocks.block_template[row]]
        of_block = blocks.lane_cell[row * shape.lanes : (row + 1) * shape.lanes]
        draw_block(lower, -3.4 * row, of_block, int(used), color)
    lower.set_xlim(-4.0, shape.lanes + 0.1)
    lower.set_ylim(-5.6, 1.1)
    lower.set_title(f"the same cells as lanes of two blocks of {shape.lanes}")
    save(figure, "lanes")


def draw_block(axis: plt.Axes, y: float, cells: np.ndarray, used: int, color: str) -> None:
    """The lanes of a block with their cells, and below them threads of a CPU and of a GPU."""
    for lane, cell in enumerate(cells):
        is_used = lane < used
        face = (color, 0.25) if is_used else "none"
        axis.add_patch(Rectangle((lane, y), 1, 1, facecolor=face, edgecolor="white"))
        if is_used:
            axis.text(lane + 0.5, y + 0.5, str(cell), ha="center", va="center")
        else:
            axis.add_patch(
                Rectangle((lane + 0.06, y + 0.06), 0.88, 0.88, fc="none", ec=GREY, lw=0.5, ls=":")
            )
        axis.plot([lane + 0.2, lane + 0.8], [y - 0.95] * 2, color=ACCENT, lw=3)
    axis.plot([0.2, len(cells) - 0.2], [y - 0.4] * 2, color=GREY, lw=3)
    axis.text(-0.15, y + 0.5, "lanes", ha="right", va="center", color=color)
    axis.text(-0.15, y - 0.4, "CPU: one thread", ha="right", va="center", color=GREY)
    axis.text(-0.15, y - 0.95, "GPU: a thread a lane", ha="right", va="center", color=ACCENT)


if __name__ == "__main__":
    with plt.rc_context(PLAIN):
        lanes()
