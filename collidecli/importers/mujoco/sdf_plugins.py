"""Distance functions of MuJoCo's plugins for signed distance fields: bolt, nut, bowl, gear, torus.

MuJoCo makes a mesh from a plugin's function by marching cubes, and that mesh collides here. The
functions measure how far it is from the plugin's surface. They are those of `plugin/sdf` in
MuJoCo's sources; negative inside, lengths in metres, in the frame of the mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mujoco
import numpy as np

from collidecli.importers.mujoco.spec_elements import bodies_of, geoms_of

THREADS = 12.0
"""Turns of the thread of bolt and nut a metre."""
HEAD = 0.5
"""Half width across the flats of the head of a bolt and of a nut."""
DIAGONAL = np.sqrt(0.5)
"""Scale of the distance to a cone of 45 degrees."""


def torus(point: np.ndarray, radius1: float, radius2: float) -> np.ndarray:
    """Distance of points [n, 3] to a torus around z. radius1: of its circle; radius2: of its
    tube."""
    across = np.hypot(point[:, 0], point[:, 1]) - radius1
    return np.hypot(across, point[:, 2]) - radius2


def bowl(point: np.ndarray, height: float, radius: float, thickness: float) -> np.ndarray:
    """Distance of points [n, 3] to the part of a sphere's surface below a height, thickened on both
    sides."""
    across = np.hypot(point[:, 0], point[:, 1])
    along = point[:, 2]
    rim = np.sqrt(radius * radius - height * height)
    to_rim = np.hypot(across - rim, along - height)
    to_sphere = np.abs(np.hypot(across, along) - radius)
    return np.where(height * across < rim * along, to_rim, to_sphere) - thickness


def bolt(point: np.ndarray, radius: float) -> np.ndarray:
    """Distance of points [n, 3] to a bolt along z, with its head at the top, of the radius of its
    thread."""
    thread, cone = _thread(point, radius)
    along = point[:, 2]
    shaft = np.maximum(thread, np.abs(along + 0.5) - 0.5)
    shaft = np.maximum(shaft, -cone - DIAGONAL)
    return np.minimum(shaft, _head(point, radius))


def nut(point: np.ndarray, radius: float) -> np.ndarray:
    """Distance of points [n, 3] to a nut around z, of the radius of its thread."""
    thread, cone = _thread(point, radius)
    hole = np.maximum(thread, -cone - 0.5 * DIAGONAL)
    hole = np.minimum(hole, -cone - 0.05 * DIAGONAL)
    return np.maximum(_head(point, radius), -hole)


def _thread(point: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Distances to an endless thread, and to a cone that cuts its end."""
    beyond = np.hypot(point[:, 0], point[:, 1]) - radius
    turn = np.arctan2(point[:, 1], point[:, 0]) / (2.0 * np.pi)
    phase = point[:, 2] * THREADS - turn
    wave = np.abs(phase - np.floor(phase) - 0.5)
    return (beyond - wave / THREADS) * DIAGONAL, (point[:, 2] - beyond) * DIAGONAL


def _head(point: np.ndarray, radius: float) -> np.ndarray:
    """Distance to a hexagonal head, whose upper edges a cone cuts."""
    azimuth = np.arctan2(point[:, 1], point[:, 0])
    sector = np.floor(azimuth * 3.0 / np.pi + 0.5) * np.pi / 3.0
    flat = np.cos(sector) * point[:, 0] + np.sin(sector) * point[:, 1] - HEAD
    slab = np.abs(point[:, 2] + 0.25) - 0.25
    beyond = np.hypot(point[:, 0], point[:, 1]) - radius
    return np.maximum(np.maximum(flat, slab), (point[:, 2] + beyond - 0.22) * DIAGONAL)


def gear(
    point: np.ndarray,
    alpha: float,
    diameter: float,
    teeth: float,
    thickness: float,
    innerdiameter: float,
) -> np.ndarray:
    """Distance of points [n, 3] to a gear of involute teeth around z. diameter: of its pitch
    circle; alpha: angle of the first tooth; innerdiameter: of its hole, negative for a default."""
    sides = _gear_outline(point, alpha, diameter, teeth, innerdiameter)
    caps = np.abs(point[:, 2]) - 0.5 * thickness
    inside = np.minimum(np.maximum(sides, caps), 0.0)
    return inside + np.hypot(np.maximum(sides, 0.0), np.maximum(caps, 0.0))


def _gear_outline(
    point: np.ndarray, alpha: float, diameter: float, teeth: float, innerdiameter: float
) -> np.ndarray:
    rho = np.hypot(point[:, 0], point[:, 1])
    addendum = diameter / teeth
    outer = 0.5 * diameter + addendum
    root = outer - 2.2 * addendum
    inner = 0.5 * innerdiameter if innerdiameter >= 0.0 else root - 0.14 * diameter
    pressure_angle = 3.096e-5 * teeth * teeth - 6.557e-3 * teeth + 0.551
    base = 0.5 * diameter * np.cos(pressure_angle)
    stride = 2.0 * np.pi / teeth
    unrolled = np.arccos(base / (0.5 * diameter))
    shift = 0.5 * stride - 2.0 * (np.tan(unrolled) - unrolled)
    azimuth = np.arctan2(point[:, 1], point[:, 0]) + alpha
    flanks = [
        _modulo(start + 0.5 * shift, stride) - 0.5 * shift for start in (azimuth, -azimuth - shift)
    ]
    tangent = np.sqrt(np.maximum(rho * rho - base * base, 0.0))
    angle = np.arccos(np.minimum(base / np.maximum(rho, base), 1.0))
    involutes = [np.where(rho > base, tangent - base * (flank + angle), -1.0e6) for flank in flanks]
    walls = np.maximum(flanks[0], flanks[1]) - (stride - shift)
    teeth_outline = np.maximum(walls, np.maximum(involutes[0], involutes[1]))
    outline = _smooth_intersection(rho - outer, teeth_outline, 0.0035 * diameter)
    outline = _smooth_union(rho - root, outline, base - root)
    outline = np.maximum(outline, inner - rho)
    outline = np.where(rho - outer > 0.2, rho - outer, outline)
    return np.where(inner > rho, inner - rho, outline)


def _modulo(value: np.ndarray, period: float) -> np.ndarray:
    return value - period * np.floor(value / period)


def _smooth_union(a: np.ndarray, b: np.ndarray, width: float) -> np.ndarray:
    share = np.clip(0.5 + 0.5 * (b - a) / width, 0.0, 1.0)
    return b * (1.0 - share) + a * share - width * share * (1.0 - share)


def _smooth_intersection(a: np.ndarray, b: np.ndarray, width: float) -> np.ndarray:
    either = _smooth_union(np.maximum(a, -b), np.maximum(b, -a), width)
    return np.maximum(np.maximum(a, b), -either)


PLUGINS: dict[str, tuple[Callable[..., np.ndarray], Sequence[float]]] = {
    "mujoco.sdf.bolt": (bolt, (0.26,)),
    "mujoco.sdf.bowl": (bowl, (0.4, 1.0, 0.02)),
    "mujoco.sdf.gear": (gear, (0.0, 2.8, 25.0, 0.2, -1.0)),
    "mujoco.sdf.nut": (nut, (0.26,)),
    "mujoco.sdf.torus": (torus, (0.35, 0.15)),
}
"""Distance function of each plugin, and the defaults of its attributes, in MuJoCo's order."""


def plugins_of_geoms(spec: mujoco.MjSpec) -> dict[int, str]:
    """Name of the plugin of each sdf geom that has one, by the geom's id, of a compiled spec."""
    of_instance = {plugin.name: plugin.plugin_name for plugin in spec.plugins}
    plugins = {}
    for geom in geoms_of(bodies_of(spec)):
        if geom.type == mujoco.mjtGeom.mjGEOM_SDF and geom.plugin.active:
            name = geom.plugin.plugin_name or of_instance.get(geom.plugin.name, "")
            plugins[int(geom.id)] = name
    return plugins


def plugin_attributes(mj_model: mujoco.MjModel, geom: int, plugin: str) -> list[float]:
    """Values of the attributes of a geom's plugin, its defaults where they are not given."""
    instance = int(mj_model.geom_plugin[geom])
    texts = mj_model.plugin_attr[int(mj_model.plugin_attradr[instance]) :].tobytes().split(b"\0")
    defaults = PLUGINS[plugin][1]
    return [
        float(text) if text.strip() else default
        for text, default in zip(texts, defaults, strict=False)
    ]


def deviation(
    point: np.ndarray, triangle: np.ndarray, plugin: str, attributes: Sequence[float]
) -> float:
    """Largest distance of a mesh's vertices and of the centres of its triangles from a plugin's
    surface [m]."""
    sample = np.concatenate([point, point[triangle].mean(axis=1)])
    return float(np.abs(PLUGINS[plugin][0](sample, *attributes)).max())
