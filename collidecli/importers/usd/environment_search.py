"""Search for the environments of a USD stage; of equal environments only one is composed.

The stage is opened with an empty population mask. The roots of all environments are composed without their descendants.
Two environments whose prim indices have equal arcs to equal targets, and equal opinions of their own, are equal by the
rules of composition. The first of each class is composed completely; classes whose flattened content is equal are then
merged. For every environment, only one prim is thus composed and its own specs are read.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np
from pxr import Sdf, Usd, UsdGeom, UsdPhysics

from collidecli.errors import InputError
from collidecli.importers.usd.environment_links import Links, Texts, index_key, scale_keys, text_key
from collidecli.importers.usd.environments import (
    DEFAULT_PATTERN,
    NO_ENVIRONMENTS,
    Environment,
    Environments,
    upwards,
)
from collidecli.importers.usd.mapped_assets import reload_stage
from collidecli.importers.usd.motion import is_animated
from collidecli.importers.usd.prim_transforms import PrimTransforms
from collidecli.importers.usd.stage import REST_TIME, metres_per_unit
from collidecli.importers.usd.transform import (
    MOVE_RIGIDLY,
    TransformError,
    check_columns,
    columns_of,
    pose_of,
    rotation_of,
)
from collidecli.numerics.matrices import matmul

NOTHING = "__no_such_prim__"
"""A mask for a child of this name composes a prim without its descendants."""


def populate(stage: Usd.Stage, pattern: str, file: str) -> Environments:
    """Finds the environments and sets the stage's population mask to one of each class and all prims outside.

    pattern: of root prims, a path whose names may have the wildcards *, ? and [...]; "" is DEFAULT_PATTERN; "none"
    makes the stage one world.
    Raises InputError for a pattern that is not a path or matches no prim, and for a root with a shear or zero scale.
    """
    roots = [] if pattern == NO_ENVIRONMENTS else _matching(stage, pattern or DEFAULT_PATTERN)
    if pattern not in ("", NO_ENVIRONMENTS) and not roots:
        raise InputError(f"no prim of the scene is '{pattern}'", "--environments", "name root prims, or write none")
    if len(roots) < 2:
        _set_mask(stage, ["/"])
        poses = _Roots(stage, roots, file).pose
        return Environments(tuple(Environment(root, poses[root], root) for root in roots))
    return _Search(stage, roots, file).run()


def _matching(stage: Usd.Stage, pattern: str) -> list[str]:
    """Paths of the active, defined prims that match a pattern, ordered by name, with numbers by value."""
    names = pattern.split("/")[1:]
    if not pattern.startswith("/") or not all(names):
        raise InputError(f"'{pattern}' is no path of prims", "--environments", f"write one such as {DEFAULT_PATTERN}")
    found = ["/"]
    for name in names:
        candidates = [
            f"{parent.rstrip('/')}/{child}"
            for parent in found
            for child in _child_names(stage.GetPrimAtPath(parent))
            if fnmatchcase(child, name)
        ]
        _set_mask(stage, [f"{path}/{NOTHING}" for path in candidates])
        found = [path for path in candidates if _is_in_scene(stage.GetPrimAtPath(path))]
    return sorted(found, key=_by_number)


def _by_number(path: str) -> list[str | int]:
    return [int(part) if k % 2 else part for k, part in enumerate(re.split(r"(\d+)", path))]


def _child_names(prim: Usd.Prim) -> list[str]:
    """Names of all children, independent of the population mask."""
    names, prohibited = prim.GetPrimIndex().ComputePrimChildNames()
    return [name for name in names if name not in prohibited]


def _is_in_scene(prim: Usd.Prim) -> bool:
    return bool(prim and prim.IsActive() and prim.IsDefined() and not prim.IsAbstract() and not prim.IsInstanceProxy())


def _set_mask(stage: Usd.Stage, paths: Iterable[str]) -> None:
    """Composes these prims and their descendants; reloads layers, which pxr may have kept from another stage."""
    stage.SetPopulationMask(Usd.StagePopulationMask([Sdf.Path(path) for path in paths]))
    reload_stage(stage)


class _Roots:
    """Transforms of the roots of environments.

    pose: float64[7] of each [m]. scale: key of its transform without the pose, see `scale_keys`. moving: roots that are
    animated, by themselves or by an ancestor.
    """

    def __init__(self, stage: Usd.Stage, roots: list[str], file: str) -> None:
        unit = metres_per_unit(stage, file, [])
        prims = [stage.GetPrimAtPath(root) for root in roots]
        matrices = PrimTransforms(REST_TIME).matrices(prims)
        columns = columns_of(matrices)
        _check(columns, roots, file)
        rotations = rotation_of(columns)
        self.pose = dict(zip(roots, pose_of(rotations, matrices[:, 3, :3] * unit), strict=True))
        self.scale = dict(zip(roots, scale_keys(matmul(np.swapaxes(rotations, 1, 2), columns)), strict=True))
        parents = {prim.GetParent() for prim in prims}
        animated = {str(parent.GetPath()): is_animated(parent) for parent in parents}
        self.moving = {
            root
            for root, prim in zip(roots, prims, strict=True)
            if animated[root.rpartition("/")[0] or "/"]
            or (prim.IsA(UsdGeom.Xformable) and UsdGeom.Xformable(prim).TransformMightBeTimeVarying())
        }


def _check(columns: np.ndarray, roots: list[str], file: str) -> None:
    """Checks all roots at once; on an error checks one by one to find the root."""
    with suppress(TransformError):
        check_columns(columns)
        return
    for each, root in zip(columns, roots, strict=True):
        try:
            check_columns(each)
        except TransformError as error:
            raise InputError(f"the environment has {error}", f"{file} <{root}>", MOVE_RIGIDLY) from None


@dataclass
class _Search:
    """Search for classes of equal environments in one stage.

    alone: environments that are not merged with others: they move as a whole, or other prims refer to them.
    """

    stage: Usd.Stage
    roots: list[str]
    file: str
    alone: set[str] = field(default_factory=set)

    def run(self) -> Environments:
        outside = self._outside()
        _set_mask(self.stage, [*outside, *(f"{root}/{NOTHING}" for root in self.roots)])
        transforms = _Roots(self.stage, self.roots, self.file)
        self.alone |= transforms.moving
        links = Links.read(self.stage, self.roots)
        if links.by_expression or self._are_on_a_body():
            self.alone |= set(self.roots)
        around: dict[str, Hashable] = {
            root: (root.rpartition("/")[0], transforms.scale[root], links.key(root)) for root in self.roots
        }
        texts: Texts = {}
        keys = {root: index_key(self.stage.GetPrimAtPath(root), links.names(root), texts) for root in self.roots}
        kept = links.without_dropped(self.stage, outside, set())
        while True:
            classes = self._classes({root: (keys[root], around[root]) for root in self.roots})
            firsts = set(classes.values())
            _set_mask(self.stage, [*kept, *(root for root in self.roots if root in firsts)])
            more = self._not_mergeable(firsts, classes) - self.alone
            if not more:
                break
            self.alone |= more
        if len(firsts) > 1:
            classes = self._merged(classes, around, links)
        left_out = {root for root in self.roots if classes[root] != root}
        dropped = links.satellites(left_out)
        if dropped or firsts != set(classes.values()):
            kept = links.without_dropped(self.stage, outside, dropped)
            _set_mask(self.stage, [*kept, *(root for root in self.roots if root not in left_out)])
        found = tuple(Environment(root, transforms.pose[root], classes[root]) for root in self.roots)
        return Environments(found, frozenset(dropped))

    def _are_on_a_body(self) -> bool:
        """Whether environments are below a body: their colliders then do not have the poses of their roots."""
        above = {path for root in self.roots for path in upwards(root)} - set(self.roots)
        return any(self.stage.GetPrimAtPath(path).HasAPI(UsdPhysics.RigidBodyAPI) for path in above)

    def _outside(self) -> list[str]:
        """The topmost prims that are neither in an environment nor above one."""
        roots = set(self.roots)
        above = dict.fromkeys(str(p) for root in self.roots for p in Sdf.Path(root).GetParentPath().GetPrefixes())
        found = []
        for path in ["/", *above]:
            for name in _child_names(self.stage.GetPrimAtPath(path)):
                child = f"{path.rstrip('/')}/{name}"
                if child not in roots and child not in above:
                    found.append(child)
        return found

    def _classes(self, key: dict[str, Hashable]) -> dict[str, str]:
        """The first environment of each environment's class."""
        first: dict[Hashable, str] = {}
        return {root: root if root in self.alone else first.setdefault(key[root], root) for root in self.roots}

    def _not_mergeable(self, firsts: set[str], classes: dict[str, str]) -> set[str]:
        """Environments to which another one refers, and those whose content does not move rigidly with their root.

        The first of a class has every opinion of the others, so that only the first ones are examined.
        """
        roots = set(self.roots)
        found: set[str] = set()
        for first in firsts:
            fixed = False
            for prim in Usd.PrimRange(self.stage.GetPrimAtPath(first), Usd.TraverseInstanceProxies()):
                for relationship in prim.GetAuthoredRelationships():
                    named = (_root_among(roots, target) for target in relationship.GetTargets())
                    found |= {root for root in named if root not in ("", first)}
                if str(prim.GetPath()) != first:
                    fixed = fixed or prim.IsA(UsdPhysics.Scene) or _resets(prim)
            if fixed or Links.has_expression(self.stage.GetPrimAtPath(first)):
                found |= {root for root in roots if classes[root] == first}
        return found

    def _merged(self, classes: dict[str, str], around: dict[str, Hashable], links: Links) -> dict[str, str]:
        """The classes, merged where their flattened content is equal."""
        flat = self.stage.Flatten(addSourceFileComment=False)
        key = {}
        for first in dict.fromkeys(classes.values()):
            key[first] = (text_key(flat.GetPrimAtPath(first), links.names(first)), around[first])
        first_of: dict[Hashable, str] = {}
        merged = {
            first: first if first in self.alone else first_of.setdefault(key[first], first)
            for first in dict.fromkeys(classes.values())
        }
        return {root: merged[first] for root, first in classes.items()}


def _resets(prim: Usd.Prim) -> bool:
    xformable = UsdGeom.Xformable(prim)
    return bool(xformable and xformable.GetResetXformStack())


def _root_among(roots: set[str], target: Sdf.Path) -> str:
    return next((str(p) for p in target.GetPrimPath().GetPrefixes() if str(p) in roots), "")
