# coal 3.0.3, heightfield and sphere: depth, wrong by 0.98 m. At the height 0 in place of 1 it is right.
# It needs NumPy and the engine alone: pip install coal==3.0.3
def answer(distance, normal, point):
    normal, point = (" ".join(f"{value:.6f}" for value in each) for each in (normal, point))
    print(f"engine: distance {distance:.9f} m, normal {normal}, point {point}")


import coal
import numpy as np

heights, z = np.array([[0.0, 0.0, 0.0, 0.1]] * 2), 1.0
place_0 = coal.Transform3s(np.eye(3), np.array([0.0, 0.0, z]))
place_1 = coal.Transform3s(np.eye(3), np.array([-0.25, 0.01, z + 0.09]))
request, result = coal.CollisionRequest(), coal.CollisionResult()
request.num_max_contacts, request.enable_contact = 1000, True
coal.collide(coal.HeightFieldOBBRSS(1.2, 0.4, heights, -0.1), place_0, coal.Sphere(0.1), place_1, request, result)
for k in range(result.numContacts()):
    answer(result.getContact(k).penetration_depth, result.getContact(k).normal, result.getContact(k).pos)

print("exact:  distance -0.010000000 m, normal 0.000000 0.000000 1.000000, point -0.250000 0.010000 0.995000")
