"""Articulations of a USD stage: bodies that are connected by joints, and their self-collision."""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from collidecli.errors import InputError
from collidecli.importers.usd.stage import REST_TIME, Physics

SELF_COLLISION = ("newton:selfCollisionEnabled", "physxArticulation:enabledSelfCollisions")
"""Attributes of the articulation root; the first authored one is used. Without one the bodies may collide."""


@dataclass(frozen=True)
class Articulation:
    """Connected bodies and their articulation roots, by prim path.

    self_collision: the bodies may collide with each other.
    """

    bodies: tuple[str, ...]
    roots: tuple[str, ...]
    self_collision: bool


def articulations_of(physics: Physics) -> Iterator[Articulation]:
    """The articulations of a stage; each body is in at most one.

    A PhysicsArticulationRootAPI applies to every chain of joints with a root below it, so that two robots under one
    root are two articulations. A chain ends at joints that are disabled or excluded from articulations, and at the
    world: two arms that are fixed to the world are two chains.
    A chain with several roots (nested ones, or one at either end) is one articulation; roots that do not define
    self-collision have no effect on it. Raises InputError where two roots contradict each other.
    """
    chain_of = _chains(physics)
    roots_of: dict[tuple[str, ...], list[str]] = {}
    for root, articulation in physics.articulations.items():
        for chain in dict.fromkeys(_rooted_chains(physics, [str(p) for p in articulation.rootPrims], chain_of)):
            roots_of.setdefault(chain, []).append(root)
    for chain, roots in roots_of.items():
        flags = {root: value for root in roots if (value := _self_collision(physics, root)) is not None}
        if len(set(flags.values())) > 1:
            on, off = (next(root for root, value in flags.items() if value is want) for want in (True, False))
            what = f"<{on}> and <{off}> are roots of one articulation, with self-collision on and off"
            raise InputError(what, physics.where(off), "apply PhysicsArticulationRootAPI once to a chain of joints")
        if len(roots) > 1:
            named = ", ".join(f"<{root}>" for root in roots)
            physics.warnings.append(f"{named}: several roots of one articulation; simulators require one")
        yield Articulation(chain, tuple(roots), next(iter(flags.values()), True))


def _rooted_chains(
    physics: Physics, roots: list[str], chain_of: dict[str, tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    """Chains of root prims, which are bodies or joints."""
    for root in roots:
        joint = physics.joints.get(root)
        for body in (root,) if joint is None else (str(joint.body0), str(joint.body1)):
            if body in chain_of:
                yield chain_of[body]


def _chains(physics: Physics) -> dict[str, tuple[str, ...]]:
    """Body's path to the bodies, in the stage's order, that enabled joints of articulations connect it to."""
    chain: dict[str, list[str]] = {path: [path] for path in physics.bodies}
    for joint in physics.joints.values():
        body0, body1 = str(joint.body0), str(joint.body1)
        if not joint.jointEnabled or joint.excludeFromArticulation or body0 not in chain or body1 not in chain:
            continue
        kept, joined = chain[body0], chain[body1]
        if kept is joined:
            continue
        if len(kept) < len(joined):
            kept, joined = joined, kept
        kept += joined
        chain |= dict.fromkeys(joined, kept)
    index = {path: i for i, path in enumerate(physics.bodies)}
    ordered = {id(bodies): tuple(sorted(bodies, key=index.__getitem__)) for bodies in chain.values()}
    return {path: ordered[id(bodies)] for path, bodies in chain.items()}


def _self_collision(physics: Physics, root: str) -> bool | None:
    prim = physics.prim(root)
    for name in SELF_COLLISION:
        attribute = prim.GetAttribute(name)
        if attribute and attribute.HasAuthoredValue():
            return bool(attribute.Get(REST_TIME))
    return None
