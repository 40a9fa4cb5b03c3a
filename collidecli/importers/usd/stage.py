"""Opens a USD stage and parses its physics with pxr, whose diagnostics become errors and
warnings."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pxr import Sdf, Tf, Usd, UsdGeom, UsdPhysics, UsdUtils

from collidecli.errors import InputError
from collidecli.importers.asset_map import AssetMap
from collidecli.importers.usd.asset_mapping import map_assets, reload_stage
from collidecli.importers.usd.composition import check_composition, is_report_of_missing
from collidecli.importers.usd.environments import Environments
from collidecli.importers.usd.expected_prims import refuse_excessive_stage
from collidecli.importers.usd.instances import Instances, PrototypeGroups
from collidecli.importers.usd.layers import lay_over, select_variants
from collidecli.importers.usd.reached_layers import open_reached_layers
from collidecli.importers.usd.skeletal_animation import skeletal_warnings
from collidecli.importers.usd.typed_attributes import check_parsed
from collidecli.importers.usd.world_matrices import PrimTransforms
from collidecli.scene.options import SceneOptions
from collidecli.storage.regular_files import require_regular_file
from collidecli.wording import first_and_count

UNIT_ROUNDING = 1e-9
"""Relative tolerance of units that are written as decimal fractions."""
EXPORT_AGAIN = "open it in a USD viewer, or export it again"
SHAPES_TO_USE = "use a plane, sphere, capsule, cube, cylinder, cone, mesh or points instead"


@dataclass
class Physics:
    """Result of pxr's physics parser: descriptors by prim path, shapes and bodies in the stage's
    order.

    warnings: for the user, one line each; the readers of the scene add to them. instances: prims of
    point instancers. environments: root prims of worlds. deformables: paths of prims of particles,
    which have no descriptor.
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
    deformables: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._prototype_groups = PrototypeGroups(self.stage, self.instances)
        self._prims: dict[str, Usd.Prim] = {}

    def prim(self, path: str) -> Usd.Prim:
        if path not in self._prims:
            self._prims[path] = self.stage.GetPrimAtPath(path)
        return self._prims[path]

    def where(self, path: str) -> str:
        """File and prim, for errors."""
        return f"{self.file} <{path}>"

    def targets(self, path: str) -> list[str]:
        """The prims of a relationship's target: itself, or its instances where it is in a
        prototype."""
        copies = self.instances.copies(path)
        return (
            copies
            if copies and path not in self.shapes and path not in self.bodies
            else [path, *copies]
        )

    def groups_of(self, path: str) -> set[str]:
        """Paths of the collision groups of a collider or deformable prim; those of an instance are
        its prototype's."""
        if path not in self.shapes:
            return self._prototype_groups.including(path)
        return self._prototype_groups.of(
            path, {str(group) for group in self.shapes[path].collisionGroups}
        )


def open_stage(
    path: str | os.PathLike[str], options: SceneOptions, masked: bool = False
) -> tuple[Usd.Stage, list[str]]:
    """The composed stage of a file with selected variants and loaded payloads, and pxr's warnings.

    masked: without variants and a motion layer nothing is composed before the caller sets a mask.
    Raises InputError for a file that is missing, empty, broken or not USD, for variants that do not
    exist, and for broken references.
    """
    file = Path(path)
    require_regular_file(path, "scene", "give the path of a .usd, .usda, .usdc or .usdz file")
    if file.stat().st_size == 0:
        raise InputError("the file is empty", str(path), "give a USD scene")
    assets = AssetMap(options.asset_map, str(path))
    with diagnostics(str(path)) as warnings:
        # pxr keeps layers by path while another stage refers to them.
        Sdf.Layer.ReloadLayers(
            {layer for layer in Sdf.Layer.GetLoadedLayers() if _is_unchanged_file(layer)}
        )
        reached = open_reached_layers(str(file))
        stage = Usd.Stage.OpenMasked(str(file), Usd.StagePopulationMask())
        del reached  # the stage holds those that it uses
        stage.Reload()  # the scene's own layer may have been edited in memory
        map_assets(stage, assets)
        if not masked or options.variants or options.motion_layer:
            refuse_excessive_stage(stage, ["/"], str(path))
            stage.SetPopulationMask(Usd.StagePopulationMask.All())
            reload_stage(stage)
        select_variants(stage, options.variants, str(path))
        if options.motion_layer:
            lay_over(stage, options.motion_layer, str(path))
    left_out = check_composition(stage, str(path), options.ignore_missing)
    return stage, assets.warnings() + left_out + [
        warning for warning in warnings if not is_report_of_missing(warning)
    ]


def _is_unchanged_file(layer: Sdf.Layer | None) -> bool:
    """pxr releases the layers of closed stages on other threads: a layer may be None, or expire
    during this call."""
    try:
        return layer is not None and not layer.expired and bool(layer.realPath) and not layer.dirty
    except TypeError:
        return False


def metres_per_unit(stage: Usd.Stage, file: str, warnings: list[str]) -> float:
    """Length of a stage unit [m]; USD's default where none is authored, with a warning.

    Raises InputError for a unit that is not a positive number.
    """
    value = float(UsdGeom.GetStageMetersPerUnit(stage))
    if not UsdGeom.StageHasAuthoredMetersPerUnit(stage):
        warnings.append(
            f"the stage has no metersPerUnit; USD's default is taken: one unit is {value:g} m"
        )
    if not (math.isfinite(value) and value > 0.0):
        raise InputError(f"metersPerUnit is {value:g}", file, "give the length of a unit in metres")
    return value


def foreign_layers(stage: Usd.Stage) -> list[str]:
    """A warning for each layer with another unit or up axis than the stage: USD converts
    neither."""
    unit = float(UsdGeom.GetStageMetersPerUnit(stage))
    up = str(UsdGeom.GetStageUpAxis(stage))
    own_layers = {stage.GetRootLayer(), stage.GetSessionLayer()}
    layers = []
    for layer in sorted(
        set(stage.GetUsedLayers()) - own_layers, key=lambda layer: layer.identifier
    ):
        root = layer.pseudoRoot
        differs = []
        if root.HasInfo("metersPerUnit") and not math.isclose(
            layer_unit := float(root.GetInfo("metersPerUnit")), unit, rel_tol=UNIT_ROUNDING
        ):
            differs.append(f"metersPerUnit = {layer_unit:g}, the scene {unit:g}")
        if root.HasInfo("upAxis") and (axis := str(root.GetInfo("upAxis"))) != up:
            differs.append(f'upAxis = "{axis}", the scene "{up}"')
        if differs:
            name = os.path.basename(layer.identifier)
            layers.append(
                f"the layer {name} has {' and '.join(differs)}; USD does not convert: its numbers"
                " are used unchanged"
            )
    return layers


def parse_physics(
    stage: Usd.Stage,
    file: str,
    warnings: list[str],
    instances: Instances | None = None,
    environments: Environments | None = None,
    deformables: Collection[str] = (),
) -> Physics:
    """The stage's colliders, bodies, joints and articulations as pxr's UsdPhysics parser reads
    them.

    instances: of its expanded point instancers. environments: those that the stage was populated
    for. deformables: paths of prims that are no colliders of rigid shapes. Raises InputError for a
    collider that the parser ignores.
    """
    try:
        with diagnostics(file) as parser_warnings:
            descriptors_of = _parse(stage)
    except InputError:
        _refuse_operations(stage, file)
        raise
    physics = Physics(
        stage,
        file,
        warnings=warnings,
        instances=instances or Instances(),
        deformables=tuple(deformables),
    )
    physics.environments = environments or Environments()
    kinds = (
        (UsdPhysics.ShapeDesc, physics.shapes),
        (UsdPhysics.RigidBodyDesc, physics.bodies),
        (UsdPhysics.JointDesc, physics.joints),
        (UsdPhysics.ArticulationDesc, physics.articulations),
    )
    for paths, descriptors in descriptors_of.values():
        for path, descriptor in zip(map(str, paths), descriptors, strict=True):
            for kind, of_kind in kinds:
                if isinstance(descriptor, kind) and path not in deformables:
                    of_kind[path] = descriptor
    for path in (*physics.shapes, *physics.bodies, *physics.joints):
        check_parsed(physics.prim(path), physics.where(path))
    # Shapes and bodies in the stage's order.
    prims = list(physics.stage.Traverse(Usd.TraverseInstanceProxies()))
    order = [str(p.GetPath()) for p in prims]
    unparsed = [
        prim
        for prim, path in zip(prims, order, strict=True)
        if path not in physics.shapes
        and path not in deformables
        and prim.HasAPI(UsdPhysics.CollisionAPI)
    ]
    physics.warnings += _colliders_without_geometry(physics, unparsed)
    physics.warnings += skeletal_warnings(prims)
    physics.shapes = {path: physics.shapes[path] for path in order if path in physics.shapes}
    physics.bodies = {path: physics.bodies[path] for path in order if path in physics.bodies}
    physics.warnings += [
        w for w in parser_warnings if "CollisionAPI applied to an unknown" not in w
    ]
    return physics


def _refuse_operations(stage: Usd.Stage, file: str) -> None:
    """Raises InputError with the first prim whose transform operations have another type, which
    pxr's errors do not name."""
    prims = stage.Traverse(Usd.TraverseInstanceProxies())
    with diagnostics(file):
        PrimTransforms(Usd.TimeCode.Default(), file).matrices(list(prims))


def _parse(stage: Usd.Stage) -> dict:
    # The second one before OpenUSD 26.08.
    parse = (
        getattr(UsdPhysics, "UsdPhysicsLoadStageFromPrimRange", None)
        or UsdPhysics.LoadUsdPhysicsFromRange
    )
    return parse(stage, ["/"])


def _colliders_without_geometry(physics: Physics, prims: Sequence[Usd.Prim]) -> list[str]:
    """Warnings about prims with PhysicsCollisionAPI that pxr's parser ignores, one of each kind.

    Raises InputError for a geometric prim of a type that is not handled.
    """
    outside = []
    covering = []
    without = []
    for prim in prims:
        path = f"<{prim.GetPath()}>"
        if _is_below_instancer(prim):
            outside.append(path)
            continue
        if prim.IsA(UsdGeom.Gprim):
            what = f"a collider of type {prim.GetTypeName()} is not handled"
            raise InputError(what, physics.where(str(prim.GetPath())), SHAPES_TO_USE)
        below = list(Usd.PrimRange(prim, Usd.TraverseInstanceProxies()))[1:]
        is_covered = any(p.HasAPI(UsdPhysics.CollisionAPI) for p in below) and all(
            p.HasAPI(UsdPhysics.CollisionAPI) for p in below if p.IsA(UsdGeom.Gprim)
        )
        (covering if is_covered else without).append(path)
    what = {
        "left out: below a PointInstancer, and in none of its prototypes": outside,
        "the collider has no geometry of its own; its descendants are used": covering,
        "PhysicsCollisionAPI on a prim without geometry has no effect, as in OpenUSD and PhysX;"
        " apply it to the meshes and shapes below, or give --visuals-as-colliders": without,
    }
    return [f"{first_and_count(paths)}: {words}" for words, paths in what.items() if paths]


def _is_below_instancer(prim: Usd.Prim) -> bool:
    above = prim.GetParent()
    while above and not above.IsA(UsdGeom.PointInstancer):
        above = above.GetParent()
    return bool(above)


@contextmanager
def diagnostics(file: str) -> Iterator[list[str]]:
    """Converts pxr's errors in the block to one InputError, and collects its warnings in the
    yielded list.

    A warning of corrupt data is an error too, as pxr continues with an empty value.
    """
    warnings: list[str] = []
    delegate = UsdUtils.CoalescingDiagnosticDelegate()
    try:
        yield warnings
    except Tf.ErrorException as error:
        reasons = [_first_line(e.commentary) for e in error.args if hasattr(e, "commentary")]
        what = (
            f"the USD scene cannot be read ({reasons[0] if reasons else _first_line(str(error))})"
        )
        raise InputError(what, file, EXPORT_AGAIN) from None
    finally:
        warnings += [
            _first_line(report.commentary) for report in delegate.TakeUncoalescedDiagnostics()
        ]
        del delegate  # it receives reports until it is deleted
    corrupt = [w for w in warnings if w.startswith("Corrupt asset")]
    if corrupt:
        raise InputError(f"the USD scene cannot be read ({corrupt[0]})", file, EXPORT_AGAIN)


@contextmanager
def reading_samples(file: str) -> Iterator[None]:
    """Converts pxr's errors and warnings in the block, which reads time samples, to an
    InputError."""
    with diagnostics(file) as warnings:
        yield
    if warnings:
        raise InputError(f"the time samples cannot be read ({warnings[0]})", file, EXPORT_AGAIN)


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0].rstrip(".") if text.strip() else "no reason given"
