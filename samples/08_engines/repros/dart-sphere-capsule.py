# dart 6.20.0, sphere and capsule: missed, wrong by 0.00953059 m.
# It needs NumPy and the engine alone: pip install dartpy==6.20.0
# Frame 66, world 0: hand_right and shin_right.
def answer(distance, normal, point):
    normal, point = (" ".join(f"{value:.6f}" for value in each) for each in (normal, point))
    print(f"engine: distance {distance:.9f} m, normal {normal}, point {point}")

import dartpy
from dartpy.dynamics import *

detectors = {"fcl": "FCL", "dart": "DART", "bullet": "Bullet", "ode": "Ode"}
detector, groups, frames = getattr(dartpy.collision, detectors["fcl"] + "CollisionDetector")(), [], []
for shape, q, p in ((SphereShape(0.05), [0.8843591006170659, 0.18840977108427706, -0.42707171036264757, 0.004526977321313332], [0.2395642903074642, -0.11241115064249724, 0.23040765214752945]), (CapsuleShape(0.05, 0.32), [0.6989588250020476, 0.04540706496442425, 0.7134913316937134, -0.01802440015659297], [0.35707803038937674, -0.07377285727737692, 0.151788097799565])):
    frames.append(SimpleFrame(Frame.World(), str(len(frames))))
    place = dartpy.math.Isometry3()
    place.set_translation(p), place.set_quaternion(dartpy.math.Quaternion(*q))
    frames[-1].setRelativeTransform(place), frames[-1].setShape(shape)
    groups.append(detector.createCollisionGroup())
    groups[-1].addShapeFrame(frames[-1])
result = dartpy.collision.CollisionResult()
groups[0].collide(groups[1], dartpy.collision.CollisionOption(True, 1000), result)
for contact in result.getContacts():
    sign = 1 if contact.collisionObject1.getShapeFrame().getName() == "1" else -1
    answer(-contact.penetrationDepth, sign * contact.normal, contact.point)

print("exact:  distance -0.009530586 m, normal 0.029646 0.540783 -0.840639, point 0.240905 -0.087949 0.192382")
