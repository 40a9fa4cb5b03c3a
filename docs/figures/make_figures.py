"""Makes the SVG figures of the documentation beside this file: `make docs-figures`."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, Polygon, Rectangle
from scipy.spatial import ConvexHull

FOLDER = Path(__file__).parent
A = "#2b6cb0"
B = "#c05621"
ACCENT = "#b83280"
GREY = "#718096"
LIGHT = "#e2e8f0"
PLAIN = {
    "svg.hashsalt": "collide",
    "svg.fonttype": "path",
    "font.size": 9,
    "font.family": "DejaVu Sans",
}


def panels(count: int, width: float = 3.4, height: float = 2.8) -> tuple[plt.Figure, list[Axes]]:
    """A figure of `count` panels without axes and with equal scales."""
    figure, axes = plt.subplots(1, count, figsize=(width * count, height), squeeze=False)
    for axis in axes[0]:
        axis.set_aspect("equal")
        axis.axis("off")
    return figure, list(axes[0])


def _shorter(text: str) -> str:
    """An SVG without comments, metadata and indentation, with coordinates of paths to a tenth of a
    point."""
    text = re.sub(r"<!-- .*? -->|<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r"\n\s*", "\n", text)
    return re.sub(r' d="[^"]*"', lambda found: _rounded(found[0]), text)


def _rounded(outline: str) -> str:
    numbers = re.sub(r"(\d\.\d)\d+", r"\1", outline)
    return re.sub(r" *\n", " ", numbers)


def save(figure: plt.Figure, name: str) -> None:
    """Writes NAME.svg without a date, so that the same figure gives the same file."""
    path = FOLDER / f"{name}.svg"
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    path.write_text(_shorter(path.read_text(encoding="utf-8")), encoding="utf-8")


def arrow(
    axis: Axes, start, end, color: str = ACCENT, style: str = "-|>", width: float = 1.4
) -> None:
    """An arrow from `start` to `end`."""
    axis.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle=style,
            mutation_scale=10,
            color=color,
            lw=width,
            shrinkA=0,
            shrinkB=0,
        )
    )


def hull(points: np.ndarray) -> np.ndarray:
    """Corners of the convex hull, counterclockwise."""
    return points[ConvexHull(points).vertices]


def _cross(u: np.ndarray, v: np.ndarray) -> float:
    return u[0] * v[1] - u[1] * v[0]


def difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Corners of the Minkowski difference a - b of two convex polygons."""
    return hull((a[:, None] - b[None]).reshape(-1, 2))


def nearest_on_boundary(polygon: np.ndarray) -> np.ndarray:
    """Point of the polygon's boundary nearest to the origin."""
    side = np.roll(polygon, -1, axis=0) - polygon
    t = np.clip(-np.sum(polygon * side, axis=1) / np.sum(side * side, axis=1), 0, 1)
    points = polygon + t[:, None] * side
    return points[np.argmin(np.sum(points * points, axis=1))]


SQUARE = np.array([[-1, -0.7], [1, -0.7], [1, 0.7], [-1, 0.7]])
TRIANGLE = np.array([[-0.7, -0.5], [0.8, -0.3], [0.1, 0.9]])


def draw_pair(axis: Axes, a: np.ndarray, b: np.ndarray) -> None:
    """Two polygons with their names."""
    for shape, color, name in ((a, A, "a"), (b, B, "b")):
        axis.add_patch(Polygon(shape, facecolor=(color, 0.25), edgecolor=color, lw=1.5))
        axis.text(*shape.mean(axis=0), name, color=color, ha="center", va="center", fontsize=11)


def draw_difference(axis: Axes, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The Minkowski difference, the origin and the vector v from it to the nearest boundary
    point."""
    polygon = difference(a, b)
    v = nearest_on_boundary(polygon)
    axis.add_patch(Polygon(polygon, facecolor=LIGHT, edgecolor=GREY, lw=1.5))
    axis.plot(0, 0, "k+", ms=9, mew=1.6)
    axis.text(0.08, -0.28, "origin", fontsize=8)
    axis.set_xlim(min(polygon[:, 0].min(), 0) - 0.3, max(polygon[:, 0].max(), 0) + 0.3)
    axis.set_ylim(min(polygon[:, 1].min(), 0) - 0.4, max(polygon[:, 1].max(), 0) + 0.3)
    return v


def gjk() -> None:
    """GJK: two polygons that are apart, and v on their Minkowski difference."""
    figure, (left, right) = panels(2)
    a = SQUARE - np.array([1.6, 0.2])
    b = TRIANGLE + np.array([1.3, 0.3])
    draw_pair(left, a, b)
    v = draw_difference(right, a, b)
    arrow(right, (0, 0), v)
    right.text(*(v / 2 + [0, 0.12]), "v", color=ACCENT, fontsize=11)
    # The witness points: a's boundary point nearest to b is on its right side at the height of b's
    # nearest corner.
    corner = b[np.argmin(b[:, 0])]
    left.plot(
        *zip((a[1, 0], corner[1]), corner, strict=True), color=ACCENT, lw=1.4, marker="o", ms=3.5
    )
    left.text((a[1, 0] + corner[0]) / 2, corner[1] - 0.3, "|v|", color=ACCENT, ha="center")
    left.set_xlim(-2.8, 2.4)
    left.set_ylim(-1.3, 1.5)
    left.set_title("shapes and witness points")
    right.set_title("Minkowski difference a − b")
    save(figure, "gjk")


def epa() -> None:
    """EPA: the polytope in the difference grows at the face nearest to the origin."""
    figure, axes = panels(3, 3.0)
    angle = np.linspace(0, 2 * np.pi, 200)
    surface = np.column_stack([1.6 * np.cos(angle) + 0.5, 1.0 * np.sin(angle) + 0.15])
    chosen = [10, 75, 140]
    upper = np.inf
    for step, axis in enumerate(axes):
        axis.add_patch(Polygon(surface, facecolor=LIGHT, edgecolor=GREY, lw=1.2))
        polytope = surface[sorted(chosen)]
        axis.add_patch(Polygon(polytope, facecolor=(A, 0.2), edgecolor=A, lw=1.4))
        v = nearest_on_boundary(polytope)
        axis.plot(0, 0, "k+", ms=8, mew=1.5)
        arrow(axis, (0, 0), v)
        farthest = int(np.argmax(surface @ v))
        axis.plot(*surface[farthest], "o", color=B, ms=5)
        lower = np.linalg.norm(v)
        upper = min(upper, surface[farthest] @ v / lower)
        axis.set_title(f"step {step}: {lower:.2f} ≤ depth ≤ {upper:.2f}", fontsize=9)
        axis.set_xlim(-1.4, 2.4)
        axis.set_ylim(-1.1, 1.4)
        chosen.append(farthest)
    save(figure, "epa")


def manifold() -> None:
    """Clipping of two facing faces: the corners of the common part are the contacts."""
    figure, (left, right) = panels(2)
    bottom = np.array([[-1.6, -1.2], [1.2, -1.2], [1.2, 1.0], [-1.6, 1.0]])
    turn = np.deg2rad(25)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    top = np.array([[-1, -0.8], [1, -0.8], [1, 0.8], [-1, 0.8]]) @ rotation.T + [0.75, 0.45]
    common = top
    for k in range(4):  # Sutherland-Hodgman
        p = bottom[k]
        q = bottom[(k + 1) % 4]
        clipped: list[np.ndarray] = []
        for u, w in zip(common, np.roll(common, -1, axis=0), strict=True):
            side_u = _cross(q - p, u - p)
            side_w = _cross(q - p, w - p)
            if side_u >= 0:
                clipped.append(u)
            if side_u * side_w < 0:
                clipped.append(u + (w - u) * side_u / (side_u - side_w))
        common = np.array(clipped)
    for shape, color in ((bottom, A), (top, B)):
        left.add_patch(Polygon(shape, facecolor="none", edgecolor=color, lw=1.5))
    left.add_patch(Polygon(common, facecolor=(ACCENT, 0.2), edgecolor="none"))
    left.plot(*common.T, "o", color=ACCENT, ms=5)
    left.set_xlim(-1.9, 2.3)
    left.set_ylim(-1.5, 1.9)
    left.set_title("along the normal: common part of two faces")
    right.add_patch(Rectangle((-1.6, -0.8), 2.8, 0.8, facecolor=(A, 0.25), edgecolor=A))
    tilted = np.array([[-1.2, 0.05], [1.0, -0.2], [1.1, 0.7], [-1.1, 0.95]])
    right.add_patch(Polygon(tilted, facecolor=(B, 0.25), edgecolor=B))
    for x, y in tilted[:2]:
        right.plot([x, x], [0, y], color=ACCENT, lw=1.2)
        right.plot([x, x], [0, y], "o", color=ACCENT, ms=4)
        right.text(x, -0.42, f"{y:+.2f}", color=ACCENT, ha="center", fontsize=8)
    arrow(right, (-0.1, 0.0), (-0.1, 0.7), GREY)
    right.text(0.0, 0.5, "normal", color=GREY, fontsize=8)
    right.set_xlim(-1.9, 1.5)
    right.set_ylim(-1.0, 1.2)
    right.set_title("from the side: one separation per contact")
    save(figure, "manifold")


def mesh_depth() -> None:
    """Depth of a box in a mesh with a dent: single triangles against the least translation of the
    region."""
    figure, (left, right) = panels(2)
    mesh = np.array([[-2, -1], [2, -1], [2, 0.4], [0.7, 0.4], [0.35, -0.2], [0.0, 0.4], [-2, 0.4]])
    box = np.array([[-0.55, -0.1], [0.45, -0.1], [0.45, 0.8], [-0.55, 0.8]])
    for axis in (left, right):
        axis.add_patch(Polygon(mesh, facecolor=(A, 0.2), edgecolor=A, lw=1.5))
        axis.set_xlim(-2.1, 2.1)
        axis.set_ylim(-1.1, 1.5)
    left.add_patch(Polygon(box, facecolor=(B, 0.25), edgecolor=B, lw=1.5))
    edge = mesh[4] - mesh[5]
    normal = np.array([-edge[1], edge[0]]) / np.linalg.norm(edge)
    low = min(box, key=lambda corner: corner @ normal)
    depth = -(low - mesh[5]) @ normal
    arrow(left, low, low + normal * depth, ACCENT)
    shifted = box + normal * depth
    left.add_patch(Polygon(shifted, facecolor="none", edgecolor=B, lw=1, ls=":"))
    left.set_title("exit of one triangle: still overlaps")
    moved = box + np.array([0, 0.5])
    right.add_patch(Polygon(box, facecolor="none", edgecolor=B, lw=1, ls=":"))
    right.add_patch(Polygon(moved, facecolor=(B, 0.25), edgecolor=B, lw=1.5))
    arrow(right, (-0.25, -0.1), (-0.25, 0.4), ACCENT)
    right.text(-0.18, 0.1, "depth", color=ACCENT)
    right.set_title("region: least translation that separates")
    save(figure, "mesh-depth")


def heightfield() -> None:
    """A heightfield from the side, with the exits of its interior, and the min-max pyramid."""
    figure, (left, right) = panels(2)
    x = np.linspace(-2, 2, 9)
    height = np.array([0.5, 0.7, 0.3, 0.1, 0.35, 0.8, 0.9, 0.5, 0.4])
    for axis in (left, right):
        axis.fill_between(x, -0.9, height, color=A, alpha=0.2, lw=0)
        axis.plot(x, height, color=A, lw=1.5, marker="o", ms=3)
        axis.plot([-2, -2], [-0.9, height[0]], color=A, lw=1.5)
        axis.plot([2, 2], [-0.9, height[-1]], color=A, lw=1.5)
        axis.plot([-2, 2], [-0.9, -0.9], color=GREY, lw=1.5, ls="--")
        axis.set_xlim(-2.5, 2.5)
        axis.set_ylim(-1.25, 1.7)
    for center, tip in (((-0.5, -0.35), (-0.5, 0.1)), ((-1.7, -0.3), (-2.25, -0.3))):
        left.add_patch(Circle(center, 0.13, facecolor=(B, 0.4), edgecolor=B))
        arrow(left, center, tip)
    left.text(0.2, -1.15, "base: no exit", color=GREY, fontsize=8)
    left.set_title("exits of the interior: surface and walls")
    for level, (step, color) in enumerate(((1, A), (2, B), (4, ACCENT))):
        for k in range(0, 8, step):
            part = height[k : k + step + 1]
            inset = 0.03 * level
            size = (x[k + step] - x[k] - 2 * inset, np.ptp(part) + 0.02)
            right.add_patch(
                Rectangle(
                    (x[k] + inset, part.min()), *size, facecolor="none", edgecolor=color, lw=1.1
                )
            )
    right.set_title("pyramid of height ranges (3 levels)")
    save(figure, "heightfield")


def sdf() -> None:
    """Blocks of a sparse signed distance field of a disc: full near the surface, corners
    elsewhere."""
    figure, (axis,) = panels(1, 3.4, 3.2)
    size = 0.5
    count = 8
    for i in range(count):
        for k in range(count):
            low = np.array([i, k]) * size - count * size / 2
            near = np.linalg.norm(np.clip(0, low, low + size))
            far = max(
                np.linalg.norm(low + size * np.array(c)) for c in ((0, 0), (0, 1), (1, 0), (1, 1))
            )
            full = near - 1.2 < 0.15 and far - 1.2 > -0.15
            axis.add_patch(
                Rectangle(
                    low, size, size, facecolor="#ebf4ff" if full else "none", edgecolor=GREY, lw=0.8
                )
            )
            if full:
                for t in np.arange(1, 4) * size / 4:
                    axis.plot([low[0] + t] * 2, [low[1], low[1] + size], color=A, lw=0.3)
                    axis.plot([low[0], low[0] + size], [low[1] + t] * 2, color=A, lw=0.3)
    for radius, style in ((1.2, "-"), (1.05, ":"), (1.35, ":")):
        axis.add_patch(
            Circle(
                (0, 0),
                radius,
                facecolor="none",
                edgecolor=B,
                lw=1.6 if style == "-" else 1.1,
                ls=style,
            )
        )
    axis.text(0, 0, "values at\nblock corners", ha="center", va="center", fontsize=8, color=GREY)
    axis.set_xlim(-2.05, 2.05)
    axis.set_ylim(-2.05, 2.05)
    axis.set_title("blocks in the band (dotted) have every voxel")
    save(figure, "sdf")


def sweep() -> None:
    """Sweep along x within columns along y; a pair in two columns is reported in one."""
    figure, axis = plt.subplots(figsize=(6.8, 3.2))
    boxes = [(0.3, 0.3, 1.6, 0.7), (1.3, 0.6, 1.2, 0.9), (3.0, 0.2, 1.2, 0.5), (3.6, 1.3, 1.3, 1.1)]
    boxes += [
        (4.4, 1.7, 1.4, 0.9),
        (0.8, 2.4, 1.4, 0.5),
        (6.0, 0.4, 1.0, 0.8),
        (5.9, 2.3, 1.1, 0.6),
    ]
    for y in (0, 1, 2, 3):
        axis.axhline(y, color=GREY, lw=0.8, ls="--")
    for k, (x, y, w, h) in enumerate(boxes):
        pair = k in (0, 1, 3, 4)
        axis.add_patch(
            Rectangle(
                (x, y), w, h, facecolor=B if pair else A, alpha=0.3, edgecolor=B if pair else A
            )
        )
        axis.text(x + w / 2, y + h / 2, str(k), ha="center", va="center")
        for column in range(int(y), int(y + h) + 1):
            axis.plot([x, x + w], [column + 0.06] * 2, color=B if pair else A, lw=2)
    axis.set_xlim(0, 7.4)
    axis.set_ylim(0, 3.1)
    axis.set_yticks([0.5, 1.5, 2.5], ["column 0", "column 1", "column 2"])
    axis.tick_params(left=False)
    axis.set_xticks([])
    axis.set_xlabel("sweep axis: intervals of each column, sorted by lower bound")
    axis.set_title("candidates: 0–1 in column 0, 3–4 in column 1 only (its higher lower corner)")
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    save(figure, "sweep-and-prune")


def batching() -> None:
    """Cells of frames and worlds, cut into chunks."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 2.9), width_ratios=[1.25, 1])
    colors = (A, B, ACCENT)
    for frame in range(6):
        for world in range(4):
            left.add_patch(
                Rectangle(
                    (frame, 3 - world),
                    1,
                    1,
                    facecolor=(colors[frame // 2], 0.25),
                    edgecolor="white",
                )
            )
            left.text(frame + 0.5, 3.5 - world, frame * 4 + world, ha="center", va="center")
    left.set_xlim(0, 6)
    left.set_ylim(0, 4)
    left.set_xticks(np.arange(6) + 0.5, [f"frame {k}" for k in range(6)], fontsize=7)
    left.set_yticks(np.arange(4) + 0.5, [f"world {3 - k}" for k in range(4)], fontsize=7)
    left.tick_params(length=0)
    left.set_title("cell = frame · worlds + world; chunks by colour", fontsize=9)
    counts = np.array([2, 0, 3, 1])
    start = np.concatenate([[0], np.cumsum(counts)])
    for k, n in enumerate(counts):
        right.text(k + 0.5, 2.5, str(n), ha="center", va="center")
        right.add_patch(Rectangle((k, 2.1), 1, 0.8, facecolor="none", edgecolor=GREY))
        right.text(
            k + 0.5, 1.45, f"start {start[k]}", ha="center", va="center", fontsize=7, color=GREY
        )
        for i in range(n):
            low = (start[k] + i) * 4 / 6
            right.add_patch(
                Rectangle((low, 0.2), 4 / 6, 0.7, facecolor=(colors[k % 3], 0.3), edgecolor="w")
            )
            right.text(low + 2 / 6, 0.55, f"cell {k}", ha="center", va="center", fontsize=6)
    for y, name in ((2.5, "count"), (1.45, "scan"), (0.55, "write")):
        right.text(-0.15, y, name, ha="right", va="center")
    right.set_xlim(-0.9, 4.05)
    right.set_ylim(0, 3.1)
    right.axis("off")
    right.set_title("each cell writes at its own offset", fontsize=9)
    for side in left.spines.values():
        side.set_visible(False)
    save(figure, "batching")


def distance() -> None:
    """Distance, margins and gap of two spheres."""
    figure, (axis,) = panels(1, 6.4, 2.9)
    for x, name, color in ((-1.5, "shape0", A), (1.6, "shape1", B)):
        axis.add_patch(Circle((x, 0), 0.9, facecolor=(color, 0.25), edgecolor=color, lw=1.5))
        axis.add_patch(Circle((x, 0), 1.1, facecolor="none", edgecolor=color, lw=1, ls="--"))
        axis.text(x, 0.2, name, ha="center", color=color)
    axis.plot([-0.6, 0.7], [0, 0], color=GREY, lw=0.8)
    axis.plot([-0.6, 0.7], [0, 0], "o", color=ACCENT, ms=4)
    axis.text(-0.72, -0.1, "point0", ha="right", va="top", fontsize=8, color=ACCENT)
    axis.text(0.82, -0.1, "point1", ha="left", va="top", fontsize=8, color=ACCENT)
    arrow(axis, (-0.6, 0.0), (-0.1, 0.0))
    axis.text(-0.3, 0.12, "normal", fontsize=8, color=ACCENT, ha="center")
    arrow(axis, (-0.4, -1.25), (0.5, -1.25), "black", "<|-|>", 1)
    axis.text(0.05, -1.53, "distance", ha="center", fontsize=9)
    axis.text(-0.62, -1.2, "margin0", ha="right", fontsize=8)
    axis.text(0.72, -1.2, "margin1", ha="left", fontsize=8)
    for x in (-0.6, -0.4, 0.5, 0.7):
        axis.plot([x, x], [-1.35, 0], color=GREY, lw=0.5, ls=":")
    axis.set_xlim(-2.8, 2.9)
    axis.set_ylim(-1.7, 1.2)
    save(figure, "distance")


def accuracy() -> None:
    """What limits the numbers of a contact set."""
    figure, axis = plt.subplots(figsize=(6.4, 2.4))
    rows = [
        ("GJK and EPA, share of the size (bound of the tests)", 1e-7),
        ("float32 column `distance` at 1 m", 6e-8),
        ("poses in float64, 10 km from the origin [m]", 2e-12),
        ("poses in float32, 10 km from the origin [m]", 1e-3),
        ("signed distance field, half a voxel of 1/64", 0.5 / 64),
    ]
    for k, (_, value) in enumerate(rows):
        axis.barh(k, np.log10(value) + 16, left=-16, color=A, alpha=0.6, height=0.6)
    axis.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=8)
    axis.invert_yaxis()
    axis.set_xlim(-16, 0)
    axis.set_xticks(range(-16, 1, 4), [f"1e{k}" for k in range(-16, 1, 4)])
    axis.set_xlabel("largest error")
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    save(figure, "accuracy")


def pipeline() -> None:
    """The stages of a run."""
    figure, axis = plt.subplots(figsize=(7.8, 2.2))
    stages = [
        "read\nposes",
        "transforms,\nbounds",
        "broad\nphase",
        "narrow\nphase",
        "reduction",
        "canonical\norder",
        "write\nHDF5",
    ]
    for k, name in enumerate(stages):
        color = GREY if k in (0, 6) else A
        axis.add_patch(Rectangle((k * 1.15, 0), 0.95, 0.8, facecolor=(color, 0.2), edgecolor=color))
        axis.text(k * 1.15 + 0.475, 0.4, name, ha="center", va="center", fontsize=8)
        if k:
            arrow(axis, (k * 1.15 - 0.2, 0.4), (k * 1.15, 0.4), GREY)
    workers = "worker threads: one chunk of cells each, scratch memory of their own"
    for k, name, color in ((0, "main thread", GREY), (3, workers, A), (6, "writer thread", GREY)):
        axis.text(k * 1.15 + 0.475, 1.0, name, ha="center", fontsize=8, color=color)
    for k, name in ((2, "candidates"), (3, "contact buffer")):
        axis.text(k * 1.15 + 1.05, -0.2, name, ha="center", fontsize=7, color=GREY)
    axis.set_xlim(-0.1, 8.0)
    axis.set_ylim(-0.35, 1.2)
    axis.axis("off")
    save(figure, "pipeline")


def main() -> None:
    """Makes every figure."""
    plt.rcParams.update(PLAIN)
    for make in (
        gjk,
        epa,
        manifold,
        mesh_depth,
        heightfield,
        sdf,
        sweep,
        batching,
        distance,
        accuracy,
        pipeline,
    ):
        make()


if __name__ == "__main__":
    main()
