"""Pairs of shapes of every type, with and without a signed distance field, at random poses."""

from __future__ import annotations

import numpy as np

from collidecli.commands.python_api import Contacts, collide
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig
from tests.support.meshes import blob, torus

BLOB = blob(np.random.default_rng(8), 8, 12, 0.25)
RING = torus(20, 10)
HULL = np.random.default_rng(4).normal(size=(24, 3)) * 0.5


def add(builder: ModelBuilder, body: int, name: str, cfg: ShapeConfig | None = None) -> int:
    """A shape of about unit size."""
    if name == "blob":
        return builder.add_shape_mesh(body, *BLOB, cfg=cfg)
    if name == "ring":
        return builder.add_shape_mesh(body, *RING, cfg=cfg)
    if name == "hull":
        return builder.add_shape_convex_hull(body, HULL, cfg=cfg)
    sizes = {
        "sphere": {"radius": 0.7},
        "capsule": {"radius": 0.3, "half_height": 0.6},
        "box": {"hx": 0.8, "hy": 0.6, "hz": 0.4},
        "cylinder": {"radius": 0.5, "half_height": 0.6},
        "cone": {"radius": 0.6, "half_height": 0.7},
        "ellipsoid": {"rx": 0.9, "ry": 0.6, "rz": 0.4},
    }
    return getattr(builder, f"add_shape_{name}")(body, cfg=cfg, **sizes[name])


def pair_model(first: str, second: str, fields: tuple[bool, bool], resolution: int = 32, gap: float = 0.3) -> Model:
    """Two bodies with a shape each. fields: which of the two have a signed distance field."""
    builder = ModelBuilder()
    builder.default_gap = gap
    for name, wanted in zip((first, second), fields, strict=True):
        cfg = ShapeConfig(sdf_max_resolution=resolution) if wanted else None
        add(builder, builder.add_body(), name, cfg)
    return builder.finalize()


def random_poses(count: int, spread: float, seed: int = 0) -> np.ndarray:
    """float64[count, 1, 2, 7]: two bodies, the second within `spread` of the first."""
    rng = np.random.default_rng(seed)
    poses = np.zeros((count, 1, 2, 7))
    turn = rng.normal(size=(count, 1, 2, 4))
    poses[..., 3:] = turn / np.linalg.norm(turn, axis=-1, keepdims=True)
    way = rng.normal(size=(count, 3))
    way /= np.linalg.norm(way, axis=1)[:, None]
    poses[:, 0, 1, :3] = way * rng.uniform(0.6, 1.0, size=(count, 1)) * spread
    return poses


def least(contacts: Contacts, count: int) -> np.ndarray:
    """float64[count]: the least distance of each frame, inf where there is no contact."""
    result = np.full(count, np.inf)
    np.minimum.at(result, np.repeat(np.arange(count), np.diff(contacts.cell_start)), contacts.distance)
    return result


def found(model: Model, poses: np.ndarray, **options: object) -> Contacts:
    return collide(model, poses, device="cpu", **options)
