"""Opening a USD stage and parsing its physics through pxr, with what pxr has to say caught and told in one message."""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pxr import Sdf, Tf, Usd, UsdGeom, UsdPhysics, UsdUtils

from collidecli.errors import InputError
from collidecli.importers.usd.environments import Environments
from collidecli.importers.usd.instances import Instances, PrototypeGroups
from collidecli.importers.usd.motion_layer import lay_over
from collidecli.importers.usd.session import select_variants

REST_TIME = Usd.TimeCode.EarliestTime()
"""The resting pose is that of the first time sample; where there are none, the default values."""

NAMED_ERRORS = 5
"""So many references that lead nowhere are named in one message."""

EXPORT_AGAIN = "open it in a USD viewer, or export it again"
SHAPES_TO_USE = "use a plane, sphere, capsule, cube, cylinder, cone or mesh instead"


@dataclass
class Physics:
    """What pxr's physics parser found of a stage: descriptors by prim path, shapes and bodies in the stage's order.

    warnings: for the user, one line each; the readers of the scene add to them. instances: prims that stand for the
    prototypes of point instancers. environments: which prims are worlds of their own.
    """

    stage: Usd.Stage
    file: str
    shapes: dict[str, Any] = field(default_factory=dict)
    bodies: dict[str, Any] = field(default_factory=dict)
    joints: dict[str, Any] = field(default_factory=dict)
    articulations: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    instances: Instances = field(default_factory=Instances)
    environments: Environments = field(default_factory=Environments)

    def __post_init__(self) -> None:
        self._prototype_groups = PrototypeGroups(self.stage, self.instances)
        self._prims: dict[str, Usd.Prim] = {}

    def prim(self, path: str) -> Usd.Prim:
        if path not in self._prims:
            self._prims[path] = self.stage.GetPrimAtPath(path)
        return self._prims[path]

    def where(self, path: str) -> str:
        """The place that an error about a prim names."""
        return f"{self.file} <{path}>"

    def targets(self, path: str) -> list[str]:
        """The prims that a target of a relationship stands for: itself, or its copies where it is in a prototype."""
        copies = self.instances.copies(path)
        return copies if copies and path not in self.shapes and path not in self.bodies else [path, *copies]

    def groups_of(self, path: str) -> set[str]:
        """Paths of the collision groups whose `colliders` hold a collider; an instance's are its prototype's."""
        return self._prototype_groups.of(path, {str(group) for group in self.shapes[path].collisionGroups})


def open_stage(
    path: str | os.PathLike[str], variants: Iterable[str] = (), masked: bool = False, motion_layer: str = ""
) -> tuple[Usd.Stage, list[str]]:
    """The composed stage of a file, variants selected and every payload loaded, and pxr's warnings.

    variants: each `prim:set=value`. masked: without variants nothing is composed before the caller sets a mask.
    motion_layer: a layer of time samples to lay over the scene; nothing is masked then.
    Raises InputError for a file that is missing, empty, broken or no USD, for variants that are not there, and for
    references that lead nowhere.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError("there is no such file", str(path), "give the path of a .usd, .usda, .usdc or .usdz file")
    if file.stat().st_size == 0:
        raise InputError("the file is empty", str(path), "give a USD scene")
    with diagnostics(str(path)) as warnings:
        whole = not masked or variants or motion_layer
        mask = Usd.StagePopulationMask.All() if whole else Usd.StagePopulationMask()
        _read_changed_files_anew()
        stage = Usd.Stage.OpenMasked(str(file), mask)
        stage.Reload()  # the scene's own, should somebody have edited it in memory
        select_variants(stage, variants, str(path))
        if motion_layer:
            lay_over(stage, motion_layer, str(path))
    check_composition(stage, str(path))
    return stage, warnings


def _read_changed_files_anew() -> None:
    """pxr keeps layers by path while anything holds them: another stage, of a scene that was read before."""
    Sdf.Layer.ReloadLayers({layer for layer in Sdf.Layer.GetLoadedLayers() if _is_unchanged_file(layer)})


def _is_unchanged_file(layer: Sdf.Layer | None) -> bool:
    """pxr drops the layers of closed stages on threads of its own: one may be gone, as None, or go while we look."""
    try:
        return layer is not None and not layer.expired and bool(layer.realPath) and not layer.dirty
    except TypeError:
        return False


def check_composition(stage: Usd.Stage, file: str) -> None:
    """Raises InputError that names the references, payloads and sublayers of a stage that lead nowhere."""
    with diagnostics(file):
        broken = sorted(str(error).rstrip(".") for error in stage.GetCompositionErrors())
    if broken:
        more = f"; and {len(broken) - NAMED_ERRORS} more" if len(broken) > NAMED_ERRORS else ""
        raise InputError(
            f"the scene does not compose: {'; '.join(broken[:NAMED_ERRORS])}{more}",
            file,
            "put the referenced file beside the scene, or correct the reference",
        )


def parse_physics(
    stage: Usd.Stage,
    file: str,
    warnings: list[str],
    instances: Instances | None = None,
    environments: Environments | None = None,
) -> Physics:
    """The stage's colliders, bodies, joints and articulations as pxr's UsdPhysics parser reads them.

    instances: of its point instancers, which have been expanded. environments: those that it was populated for.
    Raises InputError for a stage without a collider, and for a collider that the parser leaves out.
    """
    with diagnostics(file) as parser_warnings:
        found = _parse(stage)
    physics = Physics(stage, file, warnings=warnings, instances=instances or Instances())
    physics.environments = environments or Environments()
    for paths, descriptors in found.values():
        for path, descriptor in zip(paths, descriptors, strict=True):
            _sort_in(physics, str(path), descriptor)
    _check_colliders(physics)
    physics.warnings += [w for w in parser_warnings if "CollisionAPI applied to an unknown" not in w]
    return physics


def _parse(stage: Usd.Stage) -> dict:
    parse = getattr(UsdPhysics, "UsdPhysicsLoadStageFromPrimRange", None)
    if parse is None:  # before OpenUSD 26.08
        parse = UsdPhysics.LoadUsdPhysicsFromRange
    return parse(stage, ["/"])


def _sort_in(physics: Physics, path: str, descriptor: Any) -> None:
    if isinstance(descriptor, UsdPhysics.ShapeDesc):
        physics.shapes[path] = descriptor
    elif isinstance(descriptor, UsdPhysics.RigidBodyDesc):
        physics.bodies[path] = descriptor
    elif isinstance(descriptor, UsdPhysics.JointDesc):
        physics.joints[path] = descriptor
    elif isinstance(descriptor, UsdPhysics.ArticulationDesc):
        physics.articulations[path] = descriptor


def _check_colliders(physics: Physics) -> None:
    """Puts shapes and bodies in the stage's order; refuses colliders that pxr leaves out."""
    prims = list(physics.stage.Traverse(Usd.TraverseInstanceProxies()))
    order = [str(p.GetPath()) for p in prims]
    for prim, path in zip(prims, order, strict=True):
        if path not in physics.shapes and prim.HasAPI(UsdPhysics.CollisionAPI):
            _refuse_or_warn(physics, prim)
    if not physics.shapes:
        raise InputError(
            "the stage has no collider", physics.file, "apply PhysicsCollisionAPI to the prims that should collide"
        )
    physics.shapes = {path: physics.shapes[path] for path in order if path in physics.shapes}
    physics.bodies = {path: physics.bodies[path] for path in order if path in physics.bodies}


def _refuse_or_warn(physics: Physics, prim: Usd.Prim) -> None:
    """A collider without geometry of its own is passed over only when all below it has colliders of its own."""
    type_name = prim.GetTypeName() or "prim without a type"
    path = str(prim.GetPath())
    above = prim.GetParent()
    while above and not above.IsA(UsdGeom.PointInstancer):
        above = above.GetParent()
    if above:
        physics.warnings.append(f"<{path}>: left out: below a PointInstancer, and in none of its prototypes")
        return
    below = list(Usd.PrimRange(prim, Usd.TraverseInstanceProxies()))[1:]
    covered = [p for p in below if p.HasAPI(UsdPhysics.CollisionAPI)]
    bare = [p for p in below if p.IsA(UsdGeom.Gprim) and not p.HasAPI(UsdPhysics.CollisionAPI)]
    if prim.IsA(UsdGeom.Gprim) or bare or not covered:
        raise InputError(
            f"a collider of type {type_name} is not handled",
            physics.where(path),
            SHAPES_TO_USE,
        )
    physics.warnings.append(f"<{path}>: the collider has no geometry of its own; those below it are used")


@contextmanager
def diagnostics(file: str) -> Iterator[list[str]]:
    """Catches what pxr reports: its errors become one InputError, its warnings go to the list that this yields.

    A warning of corrupt data is an error too: pxr goes on with an empty value.
    """
    warnings: list[str] = []
    delegate = UsdUtils.CoalescingDiagnosticDelegate()
    try:
        yield warnings
    except Tf.ErrorException as error:
        said = [_first_line(e.commentary) for e in error.args if hasattr(e, "commentary")]
        raise InputError(
            f"the USD scene cannot be read ({said[0] if said else _first_line(str(error))})", file, EXPORT_AGAIN
        ) from None
    finally:
        warnings += [_first_line(report.commentary) for report in delegate.TakeUncoalescedDiagnostics()]
        del delegate  # it listens for as long as it lives
    corrupt = [w for w in warnings if w.startswith("Corrupt asset")]
    if corrupt:
        raise InputError(f"the USD scene cannot be read ({corrupt[0]})", file, EXPORT_AGAIN)


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0].rstrip(".") if text.strip() else "no reason given"
