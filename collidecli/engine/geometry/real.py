"""Number types of the narrow phase.

Float64: witness points on a 1 km shape are accurate to micrometres, EPA converges to 1e-7 of a shape's size, and
results do not depend on the position of the scene in the world. See docs/adr/0068.
"""

import warp as wp

Real = wp.float64
Vec2 = wp.vec2d
Vec3 = wp.vec3d
Mat33 = wp.mat33d
Quat = wp.quatd
Pose = wp.transformd
"""Position, then rotation xyzw."""
