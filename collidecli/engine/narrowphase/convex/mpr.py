"""MPR (Minkowski portal refinement): penetration along the line from an interior point of the
difference to the origin.

The depth is along the normal of the portal where the line leaves the difference, not the least over
all directions: it is never less than EPA's, and equal to it if the centre line leaves through the
face of least depth, as mostly for shallow contacts of compact shapes. It needs a fraction of EPA's
time and stack memory.

Source: Snethen 2008, "XenoCollide", Game Programming Gems 7, 2.5.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry import primitives
from collidecli.engine.geometry.real import UP, Real, Vec3
from collidecli.engine.narrowphase.convex import gjk
from collidecli.engine.narrowphase.convex.depth_certificate import any_tangent
from collidecli.engine.narrowphase.convex.polytope import Depth

PORTAL_LIMIT = wp.constant(100)
"""Maximum number of steps of either phase. Measured: at most about 40."""

PORTAL_GAP = wp.constant(Real(1.0e-9))
"""Distance of the portal to the surface relative to the difference's size at which the refinement
ends."""


@wp.struct
class Portal:
    """Triangle of support points of the difference that the ray crosses, counterclockwise around
    it."""

    p: primitives.Vertex
    q: primitives.Vertex
    r: primitives.Vertex


@wp.func
def unit_or(v: Vec3, otherwise: Vec3) -> Vec3:
    """Normalised v, or `otherwise` if v is zero."""
    length = wp.length(v)
    return v / length if length > Real(0.0) else otherwise


@wp.func
def orientation_about(
    ray: Vec3, inner: Vec3, first: primitives.Vertex, second: primitives.Vertex
) -> Real:
    """Positive if second is counterclockwise of first around the ray."""
    return wp.dot(ray, wp.cross(first.point - inner, second.point - inner))


@wp.func
def find_portal(difference: Any, inner: Vec3, ray: Vec3) -> Portal:
    """Portal of the ray from `inner` along unit `ray`."""
    portal = Portal()
    beside = any_tangent(ray)
    portal.p = primitives.difference_support(difference, ray)
    portal.q = primitives.difference_support(
        difference, unit_or(wp.cross(portal.p.point - inner, ray), beside)
    )
    if orientation_about(ray, inner, portal.p, portal.q) < Real(0.0):
        swap = portal.p
        portal.p = portal.q
        portal.q = swap
    step = int(0)
    while step < PORTAL_LIMIT:
        normal = unit_or(
            wp.cross(portal.p.point - inner, portal.q.point - inner), wp.cross(ray, beside)
        )
        portal.r = primitives.difference_support(difference, normal)
        if orientation_about(ray, inner, portal.r, portal.p) < Real(0.0):
            portal.q = portal.r
        elif orientation_about(ray, inner, portal.q, portal.r) < Real(0.0):
            portal.p = portal.r
        else:
            break
        step += 1
    return portal


@wp.func
def depth_through_portal(difference: Any) -> Depth:
    """Depth, normal and witness of two overlapping cores by MPR, from the line through their
    frames' origins.

    exact: 0 if a limit ended the search before the portal was on the surface.
    Degenerate: coincident origins take the ray +z.
    """
    inner = -difference.position
    ray = unit_or(difference.position, UP)
    portal = find_portal(difference, inner, ray)
    scale = wp.max(
        wp.length(portal.p.point), wp.max(wp.length(portal.q.point), wp.length(portal.r.point))
    )
    result = Depth()
    result.normal = ray
    step = int(0)
    while step < PORTAL_LIMIT:
        across = wp.cross(portal.q.point - portal.p.point, portal.r.point - portal.p.point)
        result.normal = unit_or(across, result.normal)
        w = primitives.difference_support(difference, result.normal)
        result.depth = wp.dot(w.point, result.normal)
        if result.depth - wp.dot(portal.p.point, result.normal) <= PORTAL_GAP * scale:
            result.exact = 1
            break
        # Of the three portals that w forms with an edge of this one, the one that the ray crosses.
        past_p = orientation_about(ray, inner, portal.p, w)
        past_q = orientation_about(ray, inner, portal.q, w)
        past_r = orientation_about(ray, inner, portal.r, w)
        if past_p <= Real(0.0) and past_q >= Real(0.0):
            portal.r = w
        elif past_q <= Real(0.0) and past_r >= Real(0.0):
            portal.p = w
        else:
            portal.q = w
        step += 1
    weights = gjk.triangle_weights(portal.p.point, portal.q.point, portal.r.point)
    result.on_a = (
        weights[0] * portal.p.on_a + weights[1] * portal.q.on_a + weights[2] * portal.r.on_a
    )
    return result
