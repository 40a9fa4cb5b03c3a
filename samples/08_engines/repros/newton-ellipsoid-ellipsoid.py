# newton 1.8.0, ellipsoid and ellipsoid: unusable, wrong by 0.00970033 m.
# It needs NumPy and the engine alone: pip install newton==1.8.0
# Frame 35, world 0: /World/Objects/ellipsoid_05 and /World/Objects/ellipsoid_41.
def answer(distance, normal, point):
    normal, point = (" ".join(f"{value:.6f}" for value in each) for each in (normal, point))
    print(f"engine: distance {distance:.9f} m, normal {normal}, point {point}")

import newton
import numpy as np
import warp as wp

builder, config = newton.ModelBuilder(), newton.ModelBuilder.ShapeConfig(gap=0.5 * 0.009999999776482582, margin=0.0)
builder.add_body(xform=wp.transform([0.3472203016281128, 0.08609743416309357, 0.05577947199344635], [-0.059743955824277176, 0.05078702427892232, 0.9265967025857725, 0.367790549993515])), builder.add_body(xform=wp.transform([0.37725725769996643, -0.12490028142929077, 0.07784957438707352], [0.6950678182736808, -0.66851090936739, -0.25627648658614116, -0.06554581969976425]))
builder.add_shape_ellipsoid(0, rx=0.13953091204166415, ry=0.10033548623323442, rz=0.05259878933429719, cfg=config)
builder.add_shape_ellipsoid(1, rx=0.14624725282192233, ry=0.10726222395896916, rz=0.05273746326565744, cfg=config)
model = builder.finalize(device="cpu")
pipeline = newton.CollisionPipeline(model, reduce_contacts=False, broad_phase="nxn")
contacts, state = pipeline.contacts(), model.state()
pipeline.collide(state, contacts)
for k in range(int(contacts.rigid_contact_count.numpy()[0])):
    points, surface, margin = [], [], 0.0
    shapes = [int(getattr(contacts, f"rigid_contact_shape{side}").numpy()[k]) for side in (0, 1)]
    for side in (0, 1):
        point, offset, radius = (getattr(contacts, f"rigid_contact_{name}{side}").numpy()[k] for name in ("point", "offset", "margin"))
        pose = wp.transform(*state.body_q.numpy()[shapes[side]])
        points.append(np.array(wp.transform_point(pose, wp.vec3(*point))))
        surface.append(points[side] + np.array(wp.transform_vector(pose, wp.vec3(*offset))))
        margin += radius
    normal = contacts.rigid_contact_normal.numpy()[k]
    distance = np.dot(points[1] - points[0], normal) - margin
    answer(distance, normal * (1 if shapes[0] < shapes[1] else -1), 0.5 * (surface[0] + surface[1]))

print("exact:  distance -0.009700327 m, normal 0.074055 -0.714539 0.695665, point 0.397364 -0.021204 0.086917")
