# bullet 3.2.7, capsule and box: missed, wrong by 0.000678634 m.
# It needs NumPy and the engine alone: pip install pybullet==3.2.7
# Frame 45, world 0: robot0:C_rfproximal and object.
def answer(distance, normal, point):
    normal, point = (" ".join(f"{value:.6f}" for value in each) for each in (normal, point))
    print(f"engine: distance {distance:.9f} m, normal {normal}, point {point}")

import pybullet

pybullet.connect(pybullet.DIRECT)
first, second = pybullet.createMultiBody(1.0, pybullet.createCollisionShape(pybullet.GEOM_CAPSULE, radius=0.01, height=0.045)), pybullet.createMultiBody(1.0, pybullet.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.025, 0.025, 0.025]))
pybullet.resetBasePositionAndOrientation(first, [1.037487229784141, 0.8524099909237501, 0.1267323508273854], [0.04297349989015672, -0.5212913935561425, 0.8501791870727073, -0.06003258431782024])
pybullet.resetBasePositionAndOrientation(second, [1.0073468007598365, 0.8773109973332758, 0.16174512207910094], [0.10807832134397931, -0.042504325250377, -0.04901488549882086, 0.9920231851070898])
for contact in pybullet.getClosestPoints(first, second, 0.0):
    answer(contact[8], [-n for n in contact[7]], [0.5 * (p + q) for p, q in zip(contact[5], contact[6])])

print("exact:  distance -0.000678634 m, normal -0.550918 0.312773 0.773733, point 1.032121 0.855717 0.134060")
