"""Contacts of MuJoCo: python mujoco.py problem.npz rows.npz [NAME=VALUE ...]. Needs NumPy and
mujoco.

Options are fields of mjOption, as ccd_iterations=100, and flags, as multiccd=0. engine-problem.md
has the files.
"""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from adapter import run
import mujoco

GEOMS = {
    "plane": "PLANE",
    "sphere": "SPHERE",
    "capsule": "CAPSULE",
    "box": "BOX",
    "cylinder": "CYLINDER",
}
GEOMS |= {"ellipsoid": "ELLIPSOID", "convex_mesh": "MESH", "mesh": "MESH", "heightfield": "HFIELD"}


def shape_of(problem, k):
    """The type of the geom, or None, and how the shape is treated."""
    kind = problem.kinds[k]
    if kind not in GEOMS:
        return None, "skipped", f"MuJoCo has no {kind}"
    treated = (
        ("hull", "MuJoCo collides the convex hull of a mesh") if kind == "mesh" else ("exact", "")
    )
    return getattr(mujoco.mjtGeom, f"mjGEOM_{GEOMS[kind]}"), *treated


FLAGS = (("mjtEnableBit", "mjENBL", "enableflags"), ("mjtDisableBit", "mjDSBL", "disableflags"))


def set_options(option, problem):
    """Sets the fields and flags of mjOption that the problem's options name."""
    for name in problem.options:
        for kind, prefix, field in FLAGS:
            bit = getattr(getattr(mujoco, kind), f"{prefix}_{name.upper()}", None)
            if bit is not None:
                is_set = bool(problem.option(name, 0.0)) == (kind == "mjtEnableBit")
                flags = getattr(option, field)
                setattr(option, field, flags | bit.value if is_set else flags & ~bit.value)
        if name not in problem.used and hasattr(option, name):
            setattr(option, name, type(getattr(option, name))(problem.option(name, 0.0)))


def collider(problem):
    """Contacts of a model with a body for each shape, and an explicit pair for each allowed one."""
    spec = mujoco.MjSpec()
    shape = np.array([k for k, item in enumerate(problem.shapes) if item is not None], int)
    for k in shape.tolist():
        kind = problem.kinds[k]
        size = problem.sizes[k]
        geom = spec.worldbody.add_body(mocap=True).add_geom(name=f"s{k}", type=problem.shapes[k])
        geom.contype = geom.conaffinity = 0
        if GEOMS[kind] == "MESH":
            spec.add_mesh(name=f"m{k}", uservert=problem.triangles(k)[0].ravel())
            geom.meshname = f"m{k}"
        elif kind == "heightfield":
            heights, bottom = problem.heights(k)
            low = heights.min()
            span = max(np.ptp(heights), 1e-9)
            values = (heights - low).ravel() / span
            extents = [*size[:2], span, low - bottom]
            spec.add_hfield(
                name=f"h{k}", size=extents, nrow=len(heights), ncol=len(heights.T), userdata=values
            )
            geom.hfieldname = f"h{k}"
            geom.pos = (0.0, 0.0, low)
        else:
            geom.size = (1.0, 1.0, 1.0) if kind == "plane" else size
    for (a, b), gap in zip(
        problem.pair[problem.held].tolist(), problem.gap[problem.held].tolist(), strict=True
    ):
        spec.add_pair(geomname1=f"s{a}", geomname2=f"s{b}", margin=gap)
    model = spec.compile()
    set_options(model.opt, problem)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)

    def collide(pose):
        data.mocap_pos = pose[shape, :3]
        data.mocap_quat = pose[shape][:, [6, 3, 4, 5]]
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_collision(model, data)
        contact = data.contact  # views, which the next cell overwrites
        return np.column_stack(
            [shape[contact.geom], contact.dist, contact.frame[:, :3], contact.pos]
        )

    return collide


if __name__ == "__main__":
    run("mujoco", mujoco.__version__, shape_of, collider, reports_gap=True, least="3.2.5")
