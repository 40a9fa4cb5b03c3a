# fcl 0.7.0.11, cone and plane: depth, wrong by 0.0630768 m.
# It needs NumPy and the engine alone: pip install python-fcl==0.7.0.11
# Frame 60, world 0: /World/Objects/cone_04 and /World/ground.
def answer(distance, normal, point):
    normal, point = (" ".join(f"{value:.6f}" for value in each) for each in (normal, point))
    print(f"engine: distance {distance:.9f} m, normal {normal}, point {point}")

import fcl
import numpy as np


def hull(points, faces):
    return fcl.Convex(np.array(points), len(faces), np.array([[3, *face] for face in faces]).ravel())


first = fcl.CollisionObject(fcl.Cone(0.11410531353922626, 0.228178809593177), fcl.Transform(np.array([0.413520395755768, 0.850079015637238, -0.03161305992357284, -0.32460308672205535]), np.array([0.0041913921013474464, 0.04698346182703972, 0.05098065361380577])))
second = fcl.CollisionObject(fcl.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0), fcl.Transform(np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0])))
result = fcl.CollisionResult()
fcl.collide(first, second, fcl.CollisionRequest(num_max_contacts=1000, enable_contact=True), result)
for contact in result.contacts:
    answer(-contact.penetration_depth, contact.normal, contact.pos)

print("exact:  distance -0.000047822 m, normal -0.000000 -0.000000 -1.000000, point -0.061755 -0.030886 -0.000024")
