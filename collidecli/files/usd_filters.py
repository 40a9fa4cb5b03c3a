"""Which colliders of a USD stage may not touch: collision groups, filtered pairs, joints and articulations."""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from pxr import Sdf, Usd, UsdPhysics

from collidecli.errors import InputError
from collidecli.files.usd_stage import REST_TIME, Physics
from collidecli.model.builder import ModelBuilder

UNGROUPED = "/no_collision_group"
"""Stands for the colliders of no group, which an inverted group filters as it does every group it does not name."""

SELF_COLLISION = ("newton:selfCollisionEnabled", "physxArticulation:enabledSelfCollisions")


class CollisionGroups:
    """The stage's collision groups: who is in which, and which two do not collide.

    A collider belongs to the groups whose `colliders` collection holds it and to those that its own
    `physics:collisionGroup` relationship names; the latter need not have the type PhysicsCollisionGroup. Which groups
    collide is pxr's own table: mergeGroup, filteredGroups and invertFilteredGroups as authored. Where a group inverts
    its filter, colliders of no group are filtered too, since they are in none of the groups that it names.
    """

    def __init__(self, physics: Physics) -> None:
        self._physics = physics
        self._member = {path: self._groups_of(path) for path in physics.shapes}
        typed = [p for p in physics.stage.Traverse() if p.IsA(UsdPhysics.CollisionGroup)]
        named = {name for groups in self._member.values() for name in groups} - {str(p.GetPath()) for p in typed}
        prims = typed + [physics.prim(name) for name in sorted(named)]
        self._inverted = any(_is_inverted(prim) for prim in prims)
        self.filtered = list(_filtered_pairs(prims, self._inverted))

    def of_shape(self, path: str) -> frozenset[str] | None:
        """Names (prim paths) of the groups that a collider is in; None where groups say nothing of it."""
        groups = self._member[path]
        if not groups and self._inverted:
            return frozenset({UNGROUPED})
        return groups or None

    def _groups_of(self, path: str) -> frozenset[str]:
        groups = {str(group) for group in self._physics.shapes[path].collisionGroups}
        for target in _targets(self._physics.prim(path), "physics:collisionGroup"):
            if self._physics.prim(target):
                groups.add(target)
            else:
                self._physics.warnings.append(f"<{path}>: physics:collisionGroup names <{target}>, which is not there")
        return frozenset(groups)


def _filtered_pairs(prims: list[Usd.Prim], inverted: bool) -> Iterator[tuple[str, str]]:
    """Pairs of group names that do not collide, by pxr's table over copies of the groups on a stage of their own."""
    copies = Usd.Stage.CreateInMemory()
    for prim in prims:
        group = UsdPhysics.CollisionGroup.Define(copies, prim.GetPath())
        group.CreateFilteredGroupsRel().SetTargets([Sdf.Path(t) for t in _targets(prim, "physics:filteredGroups")])
        group.CreateInvertFilteredGroupsAttr(_is_inverted(prim))
        merge = prim.GetAttribute("physics:mergeGroup")
        if merge and merge.Get():  # pxr merges the groups whose authored name is empty; an empty name is none
            group.CreateMergeGroupNameAttr(merge.Get())
    if inverted:
        UsdPhysics.CollisionGroup.Define(copies, UNGROUPED)
    table = UsdPhysics.CollisionGroup.ComputeCollisionGroupTable(copies)
    names = table.GetGroups()
    for row, first in enumerate(names):
        for second in names[row:]:
            if not table.IsCollisionEnabled(first, second):
                yield str(first), str(second)


def _is_inverted(prim: Usd.Prim) -> bool:
    """As authored: the parsed descriptor has been seen to say true where nothing is authored."""
    attribute = prim.GetAttribute("physics:invertFilteredGroups")
    return bool(attribute and attribute.HasAuthoredValue() and attribute.Get(REST_TIME))


def _targets(prim: Usd.Prim, relationship: str) -> list[str]:
    found = prim.GetRelationship(relationship)
    return [str(target.GetPrimPath()) for target in found.GetForwardedTargets()] if found else []


class PairFilters:
    """Writes a stage's filtered pairs, joints and articulations into a builder.

    shape_of, body_of: prim path to the builder's index. owner_of: collider's path to that of its body, bodies that are
    not enabled included; "" where there is none.
    """

    def __init__(
        self,
        builder: ModelBuilder,
        physics: Physics,
        shape_of: dict[str, int],
        body_of: dict[str, int],
        owner_of: dict[str, str],
    ) -> None:
        self._builder, self._physics = builder, physics
        self._shape_of, self._body_of = shape_of, body_of
        self._owner_of = owner_of
        self._owned: dict[str, list[str]] = {}
        for path, owner in owner_of.items():
            self._owned.setdefault(owner, []).append(path)
        self._owned.pop("", None)

    def add_all(self) -> None:
        self._add_filtered_pairs()
        self._add_joints()
        self._add_articulations()

    def _add_filtered_pairs(self) -> None:
        """`physics:filteredPairs` of colliders, bodies and articulations, each side expanded to its shapes."""
        for prim in self._physics.stage.Traverse(Usd.TraverseInstanceProxies()):
            targets = _targets(prim, "physics:filteredPairs")
            if targets:
                path = str(prim.GetPath())
                own = self._shapes_under(path, path)
                for target in targets:
                    self._filter(own, self._shapes_under(target, path), "filteredPairs")

    def _shapes_under(self, path: str, holder: str) -> list[int]:
        """Shapes that a side of a filtered pair stands for: its own, its body's, its articulation's."""
        paths = [path] if path in self._shape_of else []
        paths += self._owned.get(path, [])
        if path in self._physics.articulations:
            for body in self._articulated_bodies(path):
                paths += self._owned.get(body, [])
        elif not paths and path not in self._physics.bodies:
            self._physics.warnings.append(
                f"<{holder}>: physics:filteredPairs: <{path}> is no collider, body or articulation"
            )
        return [self._shape_of[p] for p in dict.fromkeys(paths) if p in self._shape_of]

    def _filter(self, first: Iterable[int], second: Iterable[int], rule: str) -> None:
        pairs = {(min(a, b), max(a, b)) for a, b in product(first, second) if a != b}
        for a, b in sorted(pairs):
            self._builder.add_shape_collision_filter_pair(a, b, rule)

    def _add_joints(self) -> None:
        """Joined bodies do not touch unless the joint's `physics:collisionEnabled` says so.

        A side that is a static collider stands for the colliders of that prim. A side that is the world frame (an
        empty relationship, or a prim that is neither body nor collider) is no collider: such a joint filters nothing.
        A joint that is not enabled joins nothing.
        """
        for path, joint in self._physics.joints.items():
            if joint.collisionEnabled or not joint.jointEnabled:
                continue
            sides = [
                self._side(path, str(body), str(rel))
                for body, rel in ((joint.body0, joint.rel0), (joint.body1, joint.rel1))
            ]
            (body0, shapes0), (body1, shapes1) = sides
            if body0 is None or body1 is None:
                self._filter(shapes0, shapes1, f"joint <{path}>")
            elif body0 != body1:
                self._builder.add_joint(body0, body1, collision_filter_parent=True)

    def _side(self, joint: str, body: str, rel: str) -> tuple[int | None, list[int]]:
        """(body index or None, shapes) of a joint's side: what pxr resolved it to, else the prim that it names."""
        path = body or rel
        if path and not self._physics.prim(path):
            self._physics.warnings.append(f"<{joint}>: the joint names <{path}>, which is not there")
        path = path if path in self._body_of else self._owner_of.get(path) or path
        held = self._owned.get(path, [path])
        return self._body_of.get(path), [self._shape_of[p] for p in held if p in self._shape_of]

    def _add_articulations(self) -> None:
        member_of: dict[str, str] = {}
        for path in self._physics.articulations:
            bodies = [body for body in self._articulated_bodies(path) if body in self._body_of]
            if len(bodies) < 2 or self._self_collision(path):
                continue
            for body in bodies:
                if body in member_of:
                    where = self._physics.where(body)
                    what = f"the body is in two articulations, <{member_of[body]}> and <{path}>"
                    raise InputError(what, where, "apply PhysicsArticulationRootAPI once to a chain of joints")
                member_of[body] = path
            self._builder.add_articulation([self._body_of[body] for body in bodies], self_collision=False)

    def _articulated_bodies(self, path: str) -> list[str]:
        """Bodies of an articulation; pxr lists the world, where a joint leads there, as an empty path."""
        return [str(body) for body in self._physics.articulations[path].articulatedBodies if body]

    def _self_collision(self, path: str) -> bool:
        prim = self._physics.prim(path)
        for name in SELF_COLLISION:
            attribute = prim.GetAttribute(name)
            if attribute and attribute.HasAuthoredValue():
                return bool(attribute.Get(REST_TIME))
        return True
