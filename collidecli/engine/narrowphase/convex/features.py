"""Feature of a convex shape that supports a direction (face, line or point), and feature ids.

A feature is selected by direction alone. A flat face is selected if the direction is within 26 degrees of its normal
(FACE_COSINE), a straight line (edge, side of a cylinder, cone or capsule) if the direction is within 17 degrees of
perpendicular to it (LINE_SINE), else a point. The limits are wide, so that a shape that rocks on a face keeps the
face's contacts while they are closer than the maximum separation, and narrow enough that no direction selects two faces
or two
edges of a box: two faces would need a cosine of at most 0.707, and two components below 0.3 leave a third above 0.9, a
face. So rounding never decides between features, except at the limits themselves.

Feature ids, stable under motion:

- box: one digit in base 3 per axis (x first): 0 low side, 1 middle, 2 high side. Vertices have no 1, edges one, faces
  two.
- cylinder: 0, 1 caps at -z, +z; 2 side (and each line of it); 3, 4 rims at -z, +z.
- cone: 0 base; 1 apex; 2 side (and each line of it); 3 rim.
- capsule: 0, 1 ends at -z, +z; 2 side.
- rim polygon (see `feature_corners`) of the lower cap or base: vertex k is 8 + 2 k, the edge from k to k + 1 is
  9 + 2 k; of the upper cap 20 + 2 k and 21 + 2 k.
- convex hull: 3 v of vertex v, 3 e + 1 of edge e, 3 f + 2 of face f; a side of a face of more than RIM_COUNT corners
  that replaces several edges has an id of its own after the edges'.
- triangle mesh: ids of a convex hull, of the whole mesh.
- sphere and ellipsoid: -1.

The functions are defined for primitives in `primitive_features`; `hull_features` and `triangle_features` add overloads.
"""

from collidecli.engine.narrowphase.convex import hull_features as hull_features
from collidecli.engine.narrowphase.convex import triangle_features as triangle_features
from collidecli.engine.narrowphase.convex.primitive_features import (
    face_normal,
    feature_at,
    feature_corners,
    is_on_face,
    line_exit,
    support_feature,
    with_facing,
)

__all__ = ["face_normal", "feature_at", "feature_corners", "is_on_face", "line_exit", "support_feature", "with_facing"]
