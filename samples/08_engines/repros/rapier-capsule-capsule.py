# rapier 0.36.1, capsule and capsule: missed, wrong by 0.00456821 m.
# It needs NumPy and the engine alone: pip install rapier3d==0.36.1
# Frame 43, world 0: robot0:C_rfdistal and robot0:C_lfmiddle.
def answer(distance, normal, point):
    normal, point = (" ".join(f"{value:.6f}" for value in each) for each in (normal, point))
    print(f"engine: distance {distance:.9f} m, normal {normal}, point {point}")

import numpy as np
import rapier3d

as_is, upright = rapier3d.Rotation3(1, 0, 0, 0), rapier3d.Rotation3(0.5**0.5, 0.5**0.5, 0, 0)
colliders, handles, placed = rapier3d.ColliderSet(), [], []
for (shape, turn), xyz, wxyz in (((rapier3d.Collider.capsule_y(0.012, 0.00705), upright), [1.0406523226794169, 0.8219521661123221, 0.15477331056024243], [-0.05399419512027859, 0.009334430052251099, 0.09836733508022255, 0.9936404594711953]), ((rapier3d.Collider.capsule_y(0.0125, 0.00805), upright), [1.0445656640481835, 0.8380815325857582, 0.15796727748473027], [-0.056651232953502946, -0.1624763659115085, -0.13883584483829292, 0.9752521092071912])):
    handles.append(colliders.insert(shape))
    placed.append(rapier3d.Isometry3(xyz, rapier3d.Rotation3(*wxyz)) * rapier3d.Isometry3((0, 0, 0), turn))
    colliders[handles[-1]].position = placed[-1]
    colliders[handles[-1]].active_collision_types = rapier3d.ActiveCollisionTypes.all()
narrow, step = rapier3d.NarrowPhase(), rapier3d.CollisionPipeline().step
step(0.0, rapier3d.IslandManager(), rapier3d.BroadPhaseBvh(), narrow, rapier3d.RigidBodySet(), colliders)
for pair in narrow.contact_pairs():
    sign = 1 if pair.collider1 == handles[0] else -1
    first, second = placed[::sign]
    for manifold in pair.manifolds:
        normal = sign * np.array(list(first.rotation * manifold.local_n1))
        for contact in manifold.points:
            points = first.transform_point(contact.local_p1), second.transform_point(contact.local_p2)
            answer(contact.dist, normal, 0.5 * np.sum([each.to_tuple() for each in points], axis=0))

print("exact:  distance -0.004568207 m, normal 0.005076 0.964352 0.264574, point 1.040772 0.828906 0.167800")
