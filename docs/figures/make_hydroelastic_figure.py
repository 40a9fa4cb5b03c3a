"""Makes hydroelastic.svg beside this file from runs of the sample of a gripper."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm
from matplotlib.patches import Circle, PathPatch
from matplotlib.path import Path as Outline
from pxr import Usd, UsdGeom

from docs.figures.make_figures import ACCENT, PLAIN, A, B, plt, save
from docs.figures.runs import SAMPLES, run

GRIPPER = SAMPLES / "05_hydroelastic/gripper.usda"
BALL_RADIUS = 0.03
BALL_CENTER = np.array([0.0, 0.0, 0.06])
PAD_HALF_WIDTH = 0.02
STIFFNESS = {"ball": 2e7, "left_pad": 6e7}  # N/m3
OPTIONS = ("--hydro-surface", "--hydro-resolution")
LEVELS = np.arange(20e3, 121e3, 20e3)  # Pa


def position_at_end(scene: Path, prim: str) -> np.ndarray:
    """World position of a prim at the end of the stage's time."""
    stage = Usd.Stage.Open(str(scene))
    time = Usd.TimeCode(stage.GetEndTimeCode())
    pose = UsdGeom.Xformable(stage.GetPrimAtPath(prim)).ComputeLocalToWorldTransform(time)
    return np.array(pose.ExtractTranslation())


def polygons_of(
    contacts: h5py.File, shapes: tuple[str, str]
) -> tuple[list[np.ndarray], np.ndarray]:
    """Corners [m] and pressure [Pa] of the faces between two shapes in the last frame."""
    paths = contacts["model/shape/path"].asstr()[:]
    patches = contacts["hydro_patches"]
    faces = contacts["hydro_faces"]
    first = patches["cell_start"][-2]
    pair = [
        row
        for row in range(first, len(patches["area"]))
        if {paths[patches[name][row]] for name in ("shape0", "shape1")} == set(shapes)
    ]
    rows = np.flatnonzero(np.isin(faces["patch"][:], pair))
    starts = faces["vertex_start"][:]
    corners = [faces["vertices"][starts[row] : starts[row + 1]] for row in rows]
    return corners, faces["pressure"][:][rows]


def cut_at(corners: list[np.ndarray], y: float) -> np.ndarray:
    """The points in x and z at which edges of faces cross a plane of constant y, by z."""
    points: list[np.ndarray] = []
    for face in corners:
        ahead = np.roll(face, -1, axis=0)
        crossing = (face[:, 1] - y) * (ahead[:, 1] - y) < 0
        part = (y - face[crossing, 1]) / (ahead[crossing, 1] - face[crossing, 1])
        points += list(face[crossing] + part[:, None] * (ahead[crossing] - face[crossing]))
    cut = np.unique(np.round(np.array(points)[:, [2, 0]], 9), axis=0)
    return cut[:, ::-1]


def hydroelastic() -> None:
    """Ball and pad of the sample's gripper: equal pressures in a section, and the faces from the
    side."""
    pad = position_at_end(GRIPPER, "/World/left_pad")
    with tempfile.TemporaryDirectory() as folder:
        names = ("/World/ball", "/World/left_pad")
        fine, _ = polygons_of(run(Path(folder), GRIPPER, *OPTIONS, "32"), names)
        coarse, pressure = polygons_of(run(Path(folder), GRIPPER, *OPTIONS, "16"), names)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.8), width_ratios=[1.0, 1.15])
    side = pad[0] + PAD_HALF_WIDTH
    draw_pressures(left, side)
    left.plot(*(1e3 * cut_at(fine, 1e-4).T), color=ACCENT, lw=3)
    left.text(-27.6, 45.0, "surface", color=ACCENT, ha="right", fontsize=10)
    left.set_xticks([-32, -29, -26, -23])
    for axis in (left, right):
        axis.set_yticks([45, 60, 75])
    left.set_title("section: equal pressures, every 20 kPa")
    drawn = draw_faces(right, [1e3 * face[:, [1, 2]] for face in coarse], 1e-3 * pressure)
    right.set_aspect("equal")
    right.autoscale_view()
    right.set_xticks([-15, 0, 15])
    right.set_xlabel("y [mm]")
    right.set_ylabel("z [mm]")
    right.set_title("faces of the surface, from the side of the pad")
    figure.colorbar(drawn, ax=right, label="pressure [kPa]")
    figure.tight_layout()
    save(figure, "hydroelastic")


def draw_faces(axis: plt.Axes, faces: list[np.ndarray], pressure: np.ndarray) -> ScalarMappable:
    """Faces in seven colours by pressure [kPa], one path for each colour."""
    edges = np.linspace(0.0, 70.0, 8)
    scale = ScalarMappable(BoundaryNorm(edges, 256), "YlOrRd")
    if pressure.max() >= edges[-1]:
        raise ValueError(f"{pressure.max()} kPa is beyond the scale")
    for low, high in pairwise(edges):
        here = np.flatnonzero((pressure >= low) & (pressure < high))
        closed = [Outline(np.vstack([faces[k], faces[k][:1]]), closed=True) for k in here]
        if closed:
            colour = scale.to_rgba(0.5 * (low + high))
            outline = Outline.make_compound_path(*closed)
            axis.add_patch(PathPatch(outline, facecolor=colour, edgecolor="white", lw=0.4))
    return scale


def draw_pressures(axis: plt.Axes, side: float) -> None:
    """Lines of equal pressure of the ball and of a pad whose right side is at x = `side`."""
    for pressure in (0.0, *LEVELS):
        inside = {name: 1e3 * pressure / stiffness for name, stiffness in STIFFNESS.items()}
        width = 0.8 if pressure else 1.8
        radius = 1e3 * BALL_RADIUS - inside["ball"]
        middle = 1e3 * BALL_CENTER[[0, 2]]
        axis.add_patch(Circle(middle, radius, facecolor="none", edgecolor=B, lw=width))
        axis.axvline(1e3 * side - inside["left_pad"], color=A, lw=width)
    axis.add_patch(Circle(1e3 * BALL_CENTER[[0, 2]], 1e3 * BALL_RADIUS, facecolor=(B, 0.15)))
    axis.axvspan(-40.0, 1e3 * side, facecolor=(A, 0.15))
    axis.set_xlim(-33.5, -20.5)
    axis.set_ylim(44.0, 76.0)
    axis.text(-33.0, 73.8, "pad", color=A, fontsize=11)
    axis.text(-21.0, 73.8, "ball", color=B, fontsize=11, ha="right")
    axis.set_xlabel("x [mm]")
    axis.set_ylabel("z [mm]")


if __name__ == "__main__":
    with plt.rc_context(PLAIN):
        hydroelastic()
