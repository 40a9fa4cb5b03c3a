"""Makes reduction.svg beside this file: contacts of a crate on a bumpy floor, all and reduced."""

from __future__ import annotations

import numpy as np
from matplotlib.patches import Rectangle

import collidecli
from docs.figures.make_figures import ACCENT, GREY, PLAIN, B, panels, plt, save

CORNERS = 31
MIDDLE = 1.5
HALF = (1.0, 0.8, 0.2)


def crate_on_floor() -> collidecli.Model:
    """The scene of the guide to the reduction of contacts."""
    x, y = np.meshgrid(*[np.arange(CORNERS) / 10.0] * 2, indexing="ij")
    corner = np.arange(CORNERS**2).reshape(CORNERS, CORNERS)
    a = corner[:-1, :-1]
    b = corner[1:, :-1]
    c = corner[1:, 1:]
    d = corner[:-1, 1:]
    triangles = [np.stack(each, axis=-1).reshape(-1, 3) for each in ((a, b, c), (a, c, d))]
    vertices = np.stack([x, y, 0.05 * np.sin(4.0 * x) * np.cos(3.0 * y)], axis=-1).reshape(-1, 3)
    builder = collidecli.ModelBuilder()
    builder.add_shape_mesh(-1, vertices, np.concatenate(triangles))
    crate = builder.add_body(xform=(MIDDLE, MIDDLE, HALF[2], 0, 0, 0, 1))
    builder.add_shape_box(crate, hx=HALF[0], hy=HALF[1], hz=HALF[2])
    return builder.finalize()


def reduction() -> None:
    """Contacts from above, coloured by depth, before and after the reduction."""
    model = crate_on_floor()
    figure, axes = panels(2, 3.9, 3.4)
    drawn = None
    for axis, reduced in zip(axes, (False, True), strict=True):
        found = collidecli.collide(model, gap=0.0, device="cpu", reduce_contacts=reduced)
        low = (MIDDLE - HALF[0], MIDDLE - HALF[1])
        axis.add_patch(
            Rectangle(low, 2 * HALF[0], 2 * HALF[1], facecolor=(B, 0.12), edgecolor=B, lw=1.5)
        )
        depth = -1e3 * found.distance
        drawn = axis.scatter(
            *found.point0[:, :2].T, c=depth, s=26, cmap="YlOrRd", vmin=0.0, edgecolors=GREY, lw=0.5
        )
        deepest = found.point0[np.argmax(depth), :2]
        axis.plot(*deepest, "o", mfc="none", mec=ACCENT, ms=11, mew=1.5)
        name = "with --reduce-contacts" if reduced else "all contacts"
        axis.set_title(f"{name}: {len(depth)}")
        axis.set_xlim(low[0] - 0.1, low[0] + 2 * HALF[0] + 0.1)
        axis.set_ylim(low[1] - 0.1, low[1] + 2 * HALF[1] + 0.1)
    figure.colorbar(drawn, ax=axes, label="depth [mm]", shrink=0.8)
    save(figure, "reduction")


if __name__ == "__main__":
    with plt.rc_context(PLAIN):
        reduction()
