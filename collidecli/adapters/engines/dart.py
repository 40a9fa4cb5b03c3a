"""Contacts of DART: python dart.py problem.npz rows.npz [detector=NAME]. Needs NumPy and dartpy:
engine-problem.md.

NAME: fcl (DART's default), dart, bullet or ode.
"""

import importlib.metadata
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from adapter import run
import dartpy

DETECTORS = {"fcl": "FCL", "dart": "DART", "bullet": "Bullet", "ode": "Ode"}
REPLACED = {("fcl", "capsule"), ("ode", "ellipsoid"), ("ode", "cone")}
"""Shapes in place of which DART gives a detector a sphere."""
MOST_CONTACTS = 1000
"""Of a pair."""


def detector_of(problem):
    """Name of the detector."""
    return problem.option("detector", "fcl", DETECTORS)


def shape_of(problem, k):
    """The shape, or None, and how it is treated."""
    shapes = dartpy.dynamics
    kind = problem.kinds[k]
    size = problem.sizes[k]
    is_replaced = (detector_of(problem), kind) in REPLACED
    treated = ("approximated", f"a sphere in place of the {kind}") if is_replaced else ("exact", "")
    if kind == "plane":
        return shapes.PlaneShape([0.0, 0.0, 1.0], 0.0), *treated
    if kind == "sphere":
        return shapes.SphereShape(size[0]), *treated
    if kind in ("box", "ellipsoid"):
        return getattr(shapes, f"{kind.capitalize()}Shape")([2.0 * half for half in size]), *treated
    if kind in ("capsule", "cylinder", "cone"):
        return getattr(shapes, f"{kind.capitalize()}Shape")(size[0], 2.0 * size[1]), *treated
    return None, "skipped", f"dartpy makes no {kind} from arrays"


def collider(problem):
    """Contacts of each near pair."""
    detector = getattr(dartpy.collision, f"{DETECTORS[detector_of(problem)]}CollisionDetector")()
    frames = []
    groups = []
    for k, shape in enumerate(problem.shapes):
        frames.append(dartpy.dynamics.SimpleFrame(dartpy.dynamics.Frame.World(), str(k)))
        groups.append(detector.createCollisionGroup())
        if shape is not None:
            frames[k].setShape(shape)
            groups[k].addShapeFrame(frames[k])
    option = dartpy.collision.CollisionOption(True, MOST_CONTACTS)
    result = dartpy.collision.CollisionResult()
    near = problem.near_pairs()

    def collide(pose):
        for frame, (x, y, z, qx, qy, qz, qw) in zip(frames, pose.tolist(), strict=True):
            place = dartpy.math.Isometry3()
            place.set_translation([x, y, z])
            place.set_quaternion(dartpy.math.Quaternion(qw, qx, qy, qz))
            frame.setRelativeTransform(place)
        for a, b, _ in near(pose):
            result.clear()  # ODE adds to it
            groups[a].collide(groups[b], option, result)
            for (
                contact
            ) in result.getContacts():  # the normal is from the second object to the first
                second, first = (
                    int(side.getShapeFrame().getName())
                    for side in (contact.collisionObject1, contact.collisionObject2)
                )
                yield first, second, -contact.penetrationDepth, *contact.normal, *contact.point

    return lambda pose: list(collide(pose))


if __name__ == "__main__":
    run(
        "dart",
        importlib.metadata.version("dartpy"),
        shape_of,
        collider,
        lambda problem: "midpoint" if detector_of(problem) == "fcl" else "unspecified",
        python_loop="pairs",
        least="6.16.2",
    )
