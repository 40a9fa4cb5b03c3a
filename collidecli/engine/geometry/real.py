"""The number type of the narrow phase, in one place.

Float64: a witness point on a 1 km shape is good to micrometres, EPA converges to 1e-7 of a shape's size, and nothing
depends on where the scene stands. See docs/adr/0002.
"""

import warp as wp

Real = wp.float64
Vec2 = wp.vec2d
Vec3 = wp.vec3d
Mat33 = wp.mat33d
Quat = wp.quatd
Pose = wp.transformd
"""Position, then rotation xyzw."""
