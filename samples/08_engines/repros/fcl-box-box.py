# fcl 0.7.0.11, box and box: point, wrong by 0.275001 m.
# It needs NumPy and the engine alone: pip install python-fcl==0.7.0.11
# Frame 483, world 0: step_low and ribs.
def answer(distance, normal, point):
    normal, point = (" ".join(f"{value:.6f}" for value in each) for each in (normal, point))
    print(f"engine: distance {distance:.9f} m, normal {normal}, point {point}")

import fcl
import numpy as np


def hull(points, faces):
    return fcl.Convex(np.array(points), len(faces), np.array([[3, *face] for face in faces]).ravel())


first = fcl.CollisionObject(fcl.Box(0.5, 1.6, 0.12), fcl.Transform(np.array([1.0, 0.0, 0.0, 0.0]), np.array([-0.75, 0.0, 0.06])))
second = fcl.CollisionObject(fcl.Box(0.18, 0.3, 0.26), fcl.Transform(np.array([0.7835508631814657, 0.10634870890770287, -0.6065790689488346, 0.08246108193814622]), np.array([-0.4893465558382316, -0.21063238825508035, 0.2088432170900376])))
result = fcl.CollisionResult()
fcl.collide(first, second, fcl.CollisionRequest(num_max_contacts=1000, enable_contact=True), result)
for contact in result.contacts:
    answer(-contact.penetration_depth, contact.normal, contact.pos)

print("exact:  distance -0.001353931 m, normal 0.250579 0.000000 0.968096, point -0.500170 -0.051709 0.119345")
# Proof by support functions: both shapes are apart after a translation of 0.001353931 m along the exact normal, and of
# 0.001413025 m along the engine's.
