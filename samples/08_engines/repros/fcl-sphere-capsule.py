# fcl 0.7.0.11, sphere and capsule: point, wrong by 0.0699227 m.
# It needs NumPy and the engine alone: pip install python-fcl==0.7.0.11
# Frame 291, world 0: hand_left and thigh_left.
def answer(distance, normal, point):
    normal, point = (" ".join(f"{value:.6f}" for value in each) for each in (normal, point))
    print(f"engine: distance {distance:.9f} m, normal {normal}, point {point}")

import fcl
import numpy as np


def hull(points, faces):
    return fcl.Convex(np.array(points), len(faces), np.array([[3, *face] for face in faces]).ravel())


first = fcl.CollisionObject(fcl.Sphere(0.05), fcl.Transform(np.array([0.7830933298855732, 0.13713583291362916, -0.5829889153271197, 0.16757841336376983]), np.array([-0.2413075439881584, 0.20818153479806303, 0.07614549532061897])))
second = fcl.CollisionObject(fcl.Capsule(0.07, 0.34), fcl.Transform(np.array([0.150038138158017, 0.16291126622535881, -0.8600460894181107, 0.4596402946996066]), np.array([-0.21287743339216858, 0.18262490438995777, 0.19924801603019188])))
result = fcl.CollisionResult()
fcl.collide(first, second, fcl.CollisionRequest(num_max_contacts=1000, enable_contact=True), result)
for contact in result.contacts:
    answer(-contact.penetration_depth, contact.normal, contact.pos)

print("exact:  distance -0.000038643 m, normal 0.194403 -0.543137 0.816829, point -0.231591 0.181035 0.116971")
# Proof by support functions: both shapes are apart after a translation of 0.000038643 m along the exact normal, and of
# 0.000038643 m along the engine's.
