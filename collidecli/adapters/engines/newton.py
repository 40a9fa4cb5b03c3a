"""Contacts of Newton: python newton.py problem.npz rows.npz. Needs NumPy and newton;
docs/reference/engine-problem.md.

Contacts are not reduced. Newton computes in float32.
"""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from adapter import run
import newton
import warp as wp

MOST_CONTACTS = 1 << 18
"""Of a cell."""


def shape_of(problem, k):
    """A function that adds the shape to a builder, and how it is treated."""
    kind, (x, y, z) = problem.kinds[k], problem.sizes[k]
    shape = {
        "plane": {"width": 0.0, "length": 0.0},
        "sphere": {"radius": x},
        "box": {"hx": x, "hy": y, "hz": z},
        "ellipsoid": {"rx": x, "ry": y, "rz": z},
    }.get(kind, {"radius": x, "half_height": y})
    name = f"add_shape_{kind}"
    if kind in ("convex_mesh", "mesh"):
        vertices, faces = problem.triangles(k)
        shape = {"mesh": newton.Mesh(vertices, faces.ravel())}
        name = "add_shape_mesh" if kind == "mesh" else "add_shape_convex_hull"
    elif kind == "heightfield":
        heights, _ = problem.heights(k)
        shape = {
            "type": newton.GeoType.HFIELD,
            "src": newton.Heightfield(heights, *heights.shape, x, y),
        }
        name = "add_shape"
    return (lambda builder, **more: getattr(builder, name)(**shape, **more)), "exact", ""


def turned(pose, local):
    """Vectors [n, 3] in world of those in the frames of poses [n, 7]."""
    axis = pose[:, 3:6]
    twice = 2.0 * np.cross(axis, local)
    return local + pose[:, 6:] * twice + np.cross(axis, twice)


def collider(problem):
    """Contacts of a model with a body for each shape."""
    builder = newton.ModelBuilder()
    gap = 0.5 * float(problem.gap.max(initial=0.0))
    for add in problem.shapes:
        config = newton.ModelBuilder.ShapeConfig(gap=gap, margin=0.0)
        add(builder, body=builder.add_body(), cfg=config)
    with wp.ScopedDevice("cpu"):
        model = builder.finalize()
        pipeline = newton.CollisionPipeline(
            model,
            reduce_contacts=False,
            broad_phase="explicit",
            shape_pairs_filtered=wp.array(problem.pair[problem.held], dtype=wp.vec2i),
            rigid_contact_max=MOST_CONTACTS,
        )
        contacts = pipeline.contacts()
        state = model.state()

    def collide(pose):
        state.body_q.assign(pose.astype(np.float32))
        pipeline.collide(state, contacts)
        count = int(contacts.rigid_contact_count.numpy()[0])
        assert count <= MOST_CONTACTS, f"{count} contacts"

        def column(name):
            return getattr(contacts, f"rigid_contact_{name}").numpy()[:count].astype(float)

        shapes = [column(f"shape{side}").astype(int) for side in (0, 1)]
        points = [
            pose[row, :3] + turned(pose[row], column(f"point{side}"))
            for side, row in enumerate(shapes)
        ]
        surface = [
            points[side] + turned(pose[row], column(f"offset{side}"))
            for side, row in enumerate(shapes)
        ]
        distance = (
            ((points[1] - points[0]) * column("normal")).sum(axis=1)
            - column("margin0")
            - column("margin1")
        )
        return np.column_stack(
            [*shapes, distance, column("normal"), 0.5 * (surface[0] + surface[1])]
        )

    collide(problem.poses[0])  # compiles the kernels
    return collide


if __name__ == "__main__":
    rules = {"reports_gap": True, "unbounded": ("plane", "heightfield")}
    run("newton", newton.__version__, shape_of, collider, least="1.4.0", **rules)
