# fcl 0.7.0.11, box and capsule: normal, wrong by 0.123829 m.
# It needs NumPy and the engine alone: pip install python-fcl==0.7.0.11
# Frame 341, world 0: step_low and upper_arm_left.
def answer(distance, normal, point):
    normal, point = (" ".join(f"{value:.6f}" for value in each) for each in (normal, point))
    print(f"engine: distance {distance:.9f} m, normal {normal}, point {point}")

import fcl
import numpy as np


def hull(points, faces):
    return fcl.Convex(np.array(points), len(faces), np.array([[3, *face] for face in faces]).ravel())


first = fcl.CollisionObject(fcl.Box(0.5, 1.6, 0.12), fcl.Transform(np.array([1.0, 0.0, 0.0, 0.0]), np.array([-0.75, 0.0, 0.06])))
second = fcl.CollisionObject(fcl.Capsule(0.045, 0.25079872407968906), fcl.Transform(np.array([0.7622322848450688, 0.19720726570408095, -0.583292274657096, 0.19970318129348114]), np.array([-0.5970179022971086, 0.032351782002980334, 0.19166844275850722])))
result = fcl.CollisionResult()
fcl.collide(first, second, fcl.CollisionRequest(num_max_contacts=1000, enable_contact=True), result)
for contact in result.contacts:
    answer(-contact.penetration_depth, contact.normal, contact.pos)

print("exact:  distance -0.003391669 m, normal 0.110821 -0.000000 0.993840, point -0.500188 0.099266 0.118315")
# Proof by support functions: both shapes are apart after a translation of 0.003391669 m along the exact normal, and of
# 0.127221164 m along the engine's.
