"""Makes particles.svg beside this file from a run of the sample of a cloth."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from matplotlib.patches import Circle
from pxr import Usd, UsdGeom

from docs.figures.make_figures import ACCENT, GREY, PLAIN, A, B, arrow, plt, save
from docs.figures.runs import SAMPLES, run

CLOTH = SAMPLES / "06_cloth/cloth.usda"
FRAME = 16
ROW = 17
"""Vertices of a row of the cloth, which is a square of as many rows."""
BALL_RADIUS = 0.3
PARTICLE_RADIUS = 0.01
ARROW = 0.06
WINDOW = 0.27
"""Half of the width of the view from above [m]."""
KINDS = (("vertices", A, "o"), ("edges", B, "s"), ("triangles", ACCENT, "^"))


def cloth_at(frame: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices [m] and triangles of the cloth."""
    stage = Usd.Stage.Open(str(CLOTH))
    mesh = UsdGeom.Mesh(stage.GetPrimAtPath("/World/cloth"))
    corners = np.array(mesh.GetFaceVertexIndicesAttr().Get()).reshape(-1, 3)
    return np.array(mesh.GetPointsAttr().Get(Usd.TimeCode(frame))), corners


def particles() -> None:
    """A cloth on a ball: its middle row from the side with the contacts of its vertices, and all
    contacts from above."""
    vertices, corners = cloth_at(FRAME)
    with tempfile.TemporaryDirectory() as folder:
        contacts = run(Path(folder), CLOTH)["soft_contacts"]
        first, end = contacts["cell_start"][FRAME : FRAME + 2]
        columns = ("kind", "indices", "normal", "point_world")
        found = {name: contacts[name][first:end] for name in columns}
    of_cloth = found["indices"][:, 0] < len(vertices)  # the stage's other particles come after
    found = {name: column[of_cloth] for name, column in found.items()}
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.2), width_ratios=[1.5, 1.0])
    for axis in (left, right):
        axis.set_aspect("equal")
        axis.axis("off")
    middle = np.arange(ROW) * ROW + ROW // 2
    draw_row(left, vertices[middle][:, [0, 2]])
    of_row = (found["kind"] == 0) & np.isin(found["indices"][:, 0], middle)
    for place, normal in zip(found["point_world"][of_row], found["normal"][of_row], strict=True):
        left.plot(*place[[0, 2]], "o", color=ACCENT, ms=3)
        arrow(left, place[[0, 2]], (place + ARROW * normal)[[0, 2]], width=1.0)
    left.set_title("middle row of the cloth from the side")
    shown = corners[(np.abs(vertices[corners][..., :2]) < WINDOW).all(axis=(1, 2))]
    right.triplot(*vertices[:, :2].T, shown, color=GREY, lw=0.4)
    for kind, (name, color, marker) in enumerate(KINDS):
        here = found["kind"] == kind
        places = found["point_world"][here][:, :2].T
        label = f"{np.count_nonzero(here)} of {name}"
        right.plot(*places, marker, color=color, ms=4, mew=0, label=label)
    right.set_title("the contacts from above")
    right.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncol=3)
    save(figure, "particles")


def draw_row(axis: plt.Axes, row: np.ndarray) -> None:
    """The ball, and a row of particles [m] in x and z."""
    axis.add_patch(Circle((0.0, 0.0), BALL_RADIUS, facecolor=(B, 0.2), edgecolor=B, lw=1.5))
    axis.text(0.0, 0.2, "ball", color=B, ha="center", fontsize=11)
    axis.plot(*row.T, color=A, lw=1.0)
    for x, z in row:
        axis.add_patch(Circle((x, z), PARTICLE_RADIUS, facecolor=(A, 0.4), edgecolor=A, lw=0.8))
    axis.text(-0.34, 0.365, "particles of the cloth", color=A, ha="left", fontsize=9)
    axis.set_xlim(-0.35, 0.35)
    axis.set_ylim(0.1, 0.4)


if __name__ == "__main__":
    with plt.rc_context(PLAIN):
        particles()
