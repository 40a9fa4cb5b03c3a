"""The place of a mesh's surface that is deepest inside another, wherever on its triangles that is.

Vertices and edges do not tell how deep two meshes are in each other: where a crest goes through a wide plate and out
again, the middle of the plate's face is far inside, and no vertex is. Of a pair that overlaps, the triangles that may
hide such a place are asked for it, and cut where bounds allow more; see `piece` and docs/adr/0064.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.mesh_nearest import EDGE_PLACE, FACE_PLACE, Place
from collidecli.engine.geometry.meshes import square_to_segment
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrow_phase.in_pieces import ContactRows
from collidecli.engine.narrow_phase.mesh.piece import (
    SHORTEST,
    Piece,
    allowed_on,
    corner_of_piece,
    cut_place,
    longest_side,
    may_be_deeper,
    with_corner,
)
from collidecli.engine.narrow_phase.mesh.questions import (
    clear_of,
    corner_on,
    feature_on,
    leaf_of,
    lower_of,
    normal_on,
    own_bits,
    skip_of,
    tree_of,
    upper_of,
)
from collidecli.engine.narrow_phase.mesh.sunk import Sunk, most_at, sunk_at
from collidecli.engine.narrow_phase.mesh.view import View, put

HIDES = wp.constant(12)
"""Bit of `Meshes.owned`: the triangle may hide a place that is deeper than its vertices and edges say."""
DEEPER = wp.constant(Real(1.1))
"""How many times as deep as all else that is known a place must be: as all contacts of the pair, and as one found."""
LEAST_GAIN = wp.constant(Real(1.0 / 32.0))
"""Share of half of the smaller mesh by which a place must be deeper than all contacts of the pair."""
REFINED = wp.constant(Real(1.001))
"""The same factor, once the triangle with the deepest place is known and is looked through again."""
MOST_SOUGHT = wp.constant(16)
MOST_CUTS = wp.constant(32)
"""Places that are asked of a triangle inside the other surface, and cuts."""
MOST_OF_PAIR = wp.constant(2048)
"""Such places of one mesh in another from which on no triangle is begun: wide ones are few, or the pair is large."""
LOOKS_AWAY = wp.constant(Real(-0.1))
"""Cosine of a triangle's normal with the way in which depth grows, below which it looks out."""
HAIR = wp.constant(Real(1.0e-6))
"""Share of the way to a corner."""
ROOM = 24
"""Pieces that wait."""


@wp.struct
class Deepest:
    """What has been found. point: other's frame; depth [m]; place: its way out; face: its triangle, or -1.

    least: what is no deeper does not count; enough: nor is it looked for [m]. factor: how many times as deep as what
    has been found a place must be to be looked for. sought: how many places inside have been asked.
    """

    point: Vec3
    depth: Real
    place: Place
    face: int
    least: Real
    enough: Real
    factor: Real
    sought: int


@wp.func
def note_depth(best: Deepest, sunk: Sunk, point: Vec3, face: int) -> Deepest:
    """What has been found, once a place has been asked."""
    result = best
    if sunk.depth > Real(0.0):
        result.sought += 1
    if sunk.place.face >= 0 and sunk.depth > result.depth and sunk.depth > result.least:
        result.point = point
        result.depth = sunk.depth
        result.place = sunk.place
        result.face = face
        result.enough = wp.max(result.enough, sunk.depth * result.factor)
    return result


@wp.func(inline=False)
def put_in_line(meshes: Any, surface: int, made: Piece, enough: Real, line: wp.array[Piece], count: int) -> int:
    """Puts a piece to those that wait, if it may be deeper than `enough` [m]; returns how many wait then.

    Of too many the one that promises least goes.
    """
    piece = made
    allowed = allowed_on(piece)
    if allowed.depth <= enough:
        return count
    if not may_be_deeper(meshes, surface, piece, enough):
        return count
    piece.most = allowed.depth
    piece.shares = allowed.shares
    if count < wp.static(ROOM):
        line[count] = piece
        return count + 1
    last = int(0)
    for i in range(1, count):
        if line[i].most < line[last].most:
            last = i
    if line[last].most < piece.most:
        line[last] = piece
    return count


@wp.func
def take_most_promising(line: wp.array[Piece], count: int) -> Piece:
    """Takes the piece that allows the greatest depth; the last takes its place."""
    first = int(0)
    for i in range(1, count):
        if line[i].most > line[first].most:
            first = i
    piece = line[first]
    line[first] = line[count - 1]
    return piece


@wp.func(inline=False)
def cut_pieces(meshes: Any, view: View, face: int, whole: Piece, before: Deepest) -> Deepest:
    """What has been found once a triangle is cut where its pieces may be deepest, the most promising of them first."""
    best = before
    line = wp.zeros(shape=wp.static(ROOM), dtype=Piece)
    count = put_in_line(meshes, view.other, whole, best.enough, line, 0)
    stop = best.sought + MOST_SOUGHT
    cuts = int(0)
    while count > 0 and best.sought < stop and cuts < MOST_CUTS:
        cuts += 1
        piece = take_most_promising(line, count)
        count -= 1
        if piece.most <= best.enough:
            return best
        # Every third cut halves: others may leave the longest sides as they are.
        is_across = cuts % 3 == 0 or wp.min(piece.shares[0], wp.min(piece.shares[1], piece.shares[2])) < SHORTEST
        k = longest_side(piece)
        point = piece.shares[0] * piece.p + piece.shares[1] * piece.q + piece.shares[2] * piece.r
        if is_across:
            point = corner_of_piece(piece, k)
            point += cut_place(piece, k, piece.shares) * (corner_of_piece(piece, k + 1) - point)
        sunk = sunk_at(meshes, view.other, point)
        best = note_depth(best, sunk, point, face)
        for turn in range(3):
            # Of one that is cut across, corners k and k + 1 are put in the cut; else each of the three.
            if turn < 2 or not is_across:
                part = with_corner(piece, (k + turn) % 3, point, sunk)
                count = put_in_line(meshes, view.other, part, best.enough, line, count)
    return best


@wp.func
def looks_in(rise: Vec3, depth: Real, normal: Vec3) -> Real:
    """1 where a place inside looks the way in which it is deeper, and where it is not inside; else 0."""
    return wp.where(depth > Real(0.0) and wp.dot(rise, normal) < LOOKS_AWAY, Real(0.0), Real(1.0))


@wp.func(inline=False)
def deepest_on_triangle(meshes: Any, view: View, face: int, before: Deepest) -> Deepest:
    """What has been found once a triangle of own has been looked through.

    One that looks out wherever it is asked is left: what is behind it goes on, to where it is deeper.
    """
    best = before
    piece = Piece()
    for k in range(3):
        point = wp.transform_point(view.pose, corner_on(meshes, view.own, face, k))
        piece = with_corner(piece, k, point, Sunk())
    if not may_be_deeper(meshes, view.other, piece, best.enough):
        return best
    middle = (piece.p + piece.q + piece.r) / Real(3.0)
    radius = wp.max(wp.length(piece.p - middle), wp.max(wp.length(piece.q - middle), wp.length(piece.r - middle)))
    sunk = sunk_at(meshes, view.other, middle)
    best = note_depth(best, sunk, middle, face)
    if sunk.depth + radius <= best.enough:
        return best
    normal = wp.quat_rotate(wp.transform_get_rotation(view.pose), normal_on(meshes, view.own, face))
    looks = looks_in(sunk.rise, sunk.depth, normal)
    for k in range(3):
        point = corner_of_piece(piece, k)
        sunk = sunk_at(meshes, view.other, point)
        best = note_depth(best, sunk, point, face)
        piece = with_corner(piece, k, point, sunk)
        looks = wp.max(looks, looks_in(sunk.rise, sunk.depth, normal))
    if looks == Real(0.0):
        return best
    return cut_pieces(meshes, view, face, piece, best)


@wp.func(inline=False)
def deepest_on_surface(meshes: Any, view: View, known: Real, size: Real) -> Deepest:
    """The deepest place of own, a mesh, inside other, a closed surface, if it is much deeper than what is known [m].

    size: half of the smaller one's longest side [m].
    """
    best = Deepest()
    best.face = -1
    best.least = wp.max(DEEPER * known, known + LEAST_GAIN * size)
    best.enough = best.least
    best.factor = DEEPER
    nodes = tree_of(meshes, view.own)
    node = nodes[0]
    while node < nodes[1] and best.sought < MOST_OF_PAIR:
        lower = lower_of(meshes, node)
        upper = upper_of(meshes, node)
        middle = wp.transform_point(view.pose, Real(0.5) * (lower + upper))
        radius = Real(0.5) * wp.length(upper - lower)
        free = clear_of(meshes, view.other, middle)
        if free >= radius or most_at(meshes, view.other, middle) + radius <= best.enough:
            node = skip_of(meshes, node)
            continue
        face = leaf_of(meshes, node)
        node += 1
        if face >= 0 and ((own_bits(meshes, view.own, face) >> HIDES) & 1) == 1:
            best = deepest_on_triangle(meshes, view, face, best)
    if best.face >= 0:
        best.factor = REFINED
        best.enough = REFINED * best.depth
        best = deepest_on_triangle(meshes, view, best.face, best)
    return best


@wp.func
def part_at(meshes: Any, surface: int, face: int, point: Vec3, near: Real) -> int:
    """The corner, side or inside of a triangle that a point on it has, to `near` [m]."""
    for k in range(3):
        if wp.length(point - corner_on(meshes, surface, face, k)) <= near:
            return k
    for k in range(3):
        start = corner_on(meshes, surface, face, k)
        if square_to_segment(start, corner_on(meshes, surface, face, k + 1), point) <= near * near:
            return EDGE_PLACE + k
    return FACE_PLACE


@wp.func(inline=False)
def swallowed_contact(meshes: Any, view: View, best: Deepest, rows: ContactRows):
    """Writes the contact of the deepest place, which no other of its pair is as deep as.

    Such a place is as near to two sides of other, or more: it is moved by a hair to where one is nearest, so that
    rounding does not choose the normal.
    """
    own_point = wp.transform_point(wp.transform_inverse(view.pose), best.point)
    code = feature_on(meshes, view.own, best.face, part_at(meshes, view.own, best.face, own_point, view.touch))
    corner = wp.transform_point(view.pose, corner_on(meshes, view.own, best.face, 0))
    point = best.point + HAIR * (corner - best.point)
    sunk = sunk_at(meshes, view.other, point)
    if sunk.place.face < 0 or sunk.depth <= Real(0.0):
        return
    code_other = feature_on(meshes, view.other, sunk.place.face, sunk.place.part)
    put(view, rows, 0, point, sunk.rise, -sunk.depth, code, code_other, 0)
