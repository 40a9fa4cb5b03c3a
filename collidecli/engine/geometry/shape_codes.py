"""`ShapeType` values as Warp constants."""

import warp as wp

from collidecli.scene.shape_types import ShapeType

PLANE = wp.constant(int(ShapeType.PLANE))
SPHERE = wp.constant(int(ShapeType.SPHERE))
CAPSULE = wp.constant(int(ShapeType.CAPSULE))
BOX = wp.constant(int(ShapeType.BOX))
CYLINDER = wp.constant(int(ShapeType.CYLINDER))
CONE = wp.constant(int(ShapeType.CONE))
ELLIPSOID = wp.constant(int(ShapeType.ELLIPSOID))
CONVEX_MESH = wp.constant(int(ShapeType.CONVEX_MESH))
MESH = wp.constant(int(ShapeType.MESH))
HEIGHTFIELD = wp.constant(int(ShapeType.HEIGHTFIELD))
