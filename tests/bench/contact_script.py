"""What a user would write in place of `collide run`: contacts of recorded coordinates by MuJoCo, in
a file of HDF5.

python contact_script.py SCENE RECORDING OUTPUT
"""

import sys

import h5py
import mujoco
import numpy as np

scene, recording, output = sys.argv[1:]
model = mujoco.MjModel.from_xml_path(scene)
data = mujoco.MjData(model)
with h5py.File(recording) as file:
    coordinates = file["joint_q"][:, 0]
names = ("geom", "dist", "pos", "frame")
found: dict[str, list[np.ndarray]] = {name: [] for name in names}
counts = np.zeros(len(coordinates), np.int64)
for number, qpos in enumerate(coordinates):
    data.qpos[:] = qpos
    mujoco.mj_kinematics(model, data)
    mujoco.mj_collision(model, data)
    counts[number] = data.ncon
    if data.ncon:
        for name in names:
            found[name].append(getattr(data.contact, name).copy())
with h5py.File(output, "w") as file:
    file["count"] = counts
    for name in names:
        if found[name]:
            file[name] = np.concatenate(found[name])
