# drake 1.51.1, box and capsule: normal, wrong by 0.128538 m.
# It needs NumPy and the engine alone: pip install drake==1.51.1
# Frame 340, world 0: step_low and upper_arm_left.
def answer(distance, normal, point):
    normal, point = (" ".join(f"{value:.6f}" for value in each) for each in (normal, point))
    print(f"engine: distance {distance:.9f} m, normal {normal}, point {point}")

import numpy as np
from pydrake.common.eigen_geometry import Quaternion
from pydrake.geometry import *
from pydrake.math import RigidTransform

scene, poses, ids = SceneGraph(), FramePoseVector(), []
source = scene.RegisterSource("pair")
for shape, q, p in ((Box(0.5, 1.6, 0.12), [1.0, 0.0, 0.0, 0.0], [-0.75, 0.0, 0.06]), (Capsule(0.045, 0.25079872407968906), [0.7554883495641085, 0.19630258327418226, -0.5896586728712393, 0.20737719011624944], [-0.5980237128746193, 0.0325501169106442, 0.19152095458761215])):
    frame = scene.RegisterFrame(source, GeometryFrame(f"frame {len(ids)}"))
    ids.append(scene.RegisterGeometry(source, frame, GeometryInstance(RigidTransform(), shape, f"shape {len(ids)}")))
    scene.AssignRole(source, ids[-1], ProximityProperties())
    poses.set_value(frame, RigidTransform(Quaternion(np.array(q)), p))
context = scene.CreateDefaultContext()
scene.get_source_pose_port(source).FixValue(context, poses)
for pair in scene.get_query_output_port().Eval(context).ComputePointPairPenetration():
    normal = -pair.nhat_BA_W if pair.id_A == ids[0] else pair.nhat_BA_W
    answer(-pair.depth, normal, 0.5 * (pair.p_WCa + pair.p_WCb))

print("exact:  distance -0.001870264 m, normal 0.080976 -0.000000 0.996716, point -0.500076 0.100413 0.119068")
# Proof by support functions: both shapes are apart after a translation of 0.001870264 m along the exact normal, and of
# 0.130408535 m along the engine's.
