"""Articulations of a USD stage: which bodies hang together by joints, and whether they may touch each other."""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from collidecli.errors import InputError
from collidecli.importers.usd.stage import REST_TIME, Physics

SELF_COLLISION = ("newton:selfCollisionEnabled", "physxArticulation:enabledSelfCollisions")
"""On the prim of the articulation root, the first that is authored; without one the bodies may touch."""


@dataclass(frozen=True)
class Articulation:
    """Bodies that joints hold together, and the roots that stand for them, by prim path.

    self_collision: the bodies may touch each other.
    """

    bodies: tuple[str, ...]
    roots: tuple[str, ...]
    self_collision: bool


def articulations_of(physics: Physics) -> Iterator[Articulation]:
    """The articulations of a stage, each body in one at most.

    A PhysicsArticulationRootAPI stands for every chain of joints that pxr finds a root of below it, so that two robots
    under one root are two articulations. Joints that are disabled or excluded from articulations part a chain, and so
    does the world: two arms bolted to it are two chains.
    A chain with several roots (nested ones, or one at either end) is one articulation; a root that says nothing of
    self-collision leaves it to the others. Raises InputError where two roots contradict each other.
    """
    chain_of = _chains(physics)
    roots_of: dict[tuple[str, ...], list[str]] = {}
    for root, articulation in physics.articulations.items():
        for chain in dict.fromkeys(_rooted_chains(physics, [str(p) for p in articulation.rootPrims], chain_of)):
            roots_of.setdefault(chain, []).append(root)
    for chain, roots in roots_of.items():
        said = {root: value for root in roots if (value := _self_collision(physics, root)) is not None}
        if len(set(said.values())) > 1:
            on, off = (next(root for root, value in said.items() if value is want) for want in (True, False))
            what = f"<{on}> and <{off}> are roots of one articulation, with self-collision on and off"
            raise InputError(what, physics.where(off), "apply PhysicsArticulationRootAPI once to a chain of joints")
        if len(roots) > 1:
            named = ", ".join(f"<{root}>" for root in roots)
            physics.warnings.append(f"{named}: several roots of one articulation; simulators want one")
        yield Articulation(chain, tuple(roots), next(iter(said.values()), True))


def _rooted_chains(
    physics: Physics, roots: list[str], chain_of: dict[str, tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    """Chains that root prims, bodies or joints, are of."""
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
    place = {path: i for i, path in enumerate(physics.bodies)}
    ordered = {id(bodies): tuple(sorted(bodies, key=place.__getitem__)) for bodies in chain.values()}
    return {path: ordered[id(bodies)] for path, bodies in chain.items()}


def _self_collision(physics: Physics, root: str) -> bool | None:
    prim = physics.prim(root)
    for name in SELF_COLLISION:
        attribute = prim.GetAttribute(name)
        if attribute and attribute.HasAuthoredValue():
            return bool(attribute.Get(REST_TIME))
    return None
