"""Contacts of MuJoCo: python mujoco.py problem.npz rows.npz [NAME=VALUE ...]. Needs NumPy and mujoco.

Options are fields of mjOption, as ccd_iterations=100, and flags, as multiccd=0. engine-problem.md has the files.
"""

import json
import os
import platform
import sys
import time

import numpy as np

# As a script, this file is first on the path, and has the name of the package.
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != os.path.dirname(os.path.abspath(__file__))]
import mujoco  # noqa: E402

GEOMS = {"plane": "PLANE", "sphere": "SPHERE", "capsule": "CAPSULE", "box": "BOX", "cylinder": "CYLINDER"}
GEOMS |= {"ellipsoid": "ELLIPSOID", "convex_mesh": "MESH", "mesh": "MESH"}


def compiled(problem):
    """The model of the shapes, a pair for each allowed one, how shapes are treated, and the pairs that are held."""
    spec = mujoco.MjSpec()
    kinds, names = problem["shape_type"].tolist(), [f"s{k}" for k in range(len(problem["shape_type"]))]
    treated, reason = np.full(len(kinds), "exact", "<U12"), np.full(len(kinds), "", "<U60")
    for k, kind in enumerate(kinds):
        if kind not in GEOMS:
            treated[k], reason[k] = (
                "skipped",
                f"MuJoCo has no {kind}" if kind == "cone" else f"no {kind} in the adapter",
            )
            continue
        body = spec.worldbody.add_body(name=names[k], mocap=True)
        geom = body.add_geom(name=names[k], type=getattr(mujoco.mjtGeom, f"mjGEOM_{GEOMS[kind]}"))
        geom.contype = geom.conaffinity = 0
        if GEOMS[kind] == "MESH":
            number = problem["shape_geometry"][k]
            first, end = problem["vertex_start"][number : number + 2]
            geom.meshname = f"m{k}"
            spec.add_mesh(name=f"m{k}", uservert=problem["vertex"][first:end].ravel())
            if kind == "mesh":
                treated[k], reason[k] = "hull", "MuJoCo collides the convex hull of a mesh"
        else:
            geom.size = (1.0, 1.0, 1.0) if kind == "plane" else problem["shape_size"][k]
    held = (treated[problem["pair"]] != "skipped").all(axis=1)
    held &= ~(problem["shape_type"][problem["pair"]] == "plane").all(axis=1)
    for (a, b), gap in zip(problem["pair"][held].tolist(), problem["pair_gap"][held].tolist(), strict=True):
        spec.add_pair(geomname1=names[a], geomname2=names[b], margin=max(gap, 0.0))
    model = spec.compile()
    return model, treated, reason, held


FLAGS = (("mjtEnableBit", "mjENBL", "enableflags"), ("mjtDisableBit", "mjDSBL", "disableflags"))


def with_options(option, texts):
    """Sets fields and flags of mjOption from texts NAME=VALUE; returns those that it has."""
    used = {}
    for name, _, value in (text.partition("=") for text in texts):
        for kind, prefix, field in FLAGS:
            bit = getattr(getattr(mujoco, kind), f"{prefix}_{name.upper()}", None)
            if bit is not None:
                is_set = bool(float(value)) == (kind == "mjtEnableBit")
                flags = getattr(option, field)
                setattr(option, field, flags | bit.value if is_set else flags & ~bit.value)
                used[name] = float(value)
        if name not in used and hasattr(option, name):
            setattr(option, name, type(getattr(option, name))(float(value)))
            used[name] = float(value)
    return used


def main(source, target, *options):
    """Reads the problem and writes the rows."""
    start = time.perf_counter()
    with np.load(source) as file:
        problem = dict(file)
    model, treated, reason, held = compiled(problem)
    used = with_options(model.opt, options)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    shape = np.flatnonzero(treated != "skipped")
    pair_of = {tuple(pair): k for k, pair in enumerate(problem["pair"].tolist())}
    rows = {name: [] for name in ("cell", "pair", "distance", "normal", "point")}
    begin = time.perf_counter()
    for cell, pose in enumerate(problem["pose"]):
        data.mocap_pos, data.mocap_quat = pose[shape, :3], pose[shape][:, [6, 3, 4, 5]]
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_collision(model, data)
        found = shape[data.contact.geom]
        swapped = found[:, 0] > found[:, 1]
        rows["cell"].append(np.full(len(found), cell))
        rows["pair"].append(np.array([pair_of[tuple(sorted(pair))] for pair in found.tolist()], np.int64))
        rows["distance"].append(data.contact.dist.copy())  # views, which the next frame overwrites
        rows["normal"].append(np.where(swapped[:, None], -1.0, 1.0) * data.contact.frame[:, :3])
        rows["point"].append(data.contact.pos.copy())
    end = time.perf_counter()
    np.savez(
        target,
        format="collide.engine_rows/1",
        engine="mujoco",
        version=mujoco.__version__,
        options=json.dumps(used),
        reports_gap=True,
        interpreter=platform.python_version(),
        point_rule="midpoint",
        stateful=False,
        shape_treated=treated,
        shape_reason=reason,
        pair_asked=held,
        seconds=np.array([begin - start, end - begin]),
        **{name: np.concatenate(parts) for name, parts in rows.items()},
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
