"""Opens a USD stage and parses its physics with pxr, whose diagnostics become errors and warnings."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pxr import Ar, Pcp, Sdf, Tf, Usd, UsdGeom, UsdPhysics, UsdUtils

from collidecli.errors import InputError
from collidecli.importers.scene_import import AssetMap
from collidecli.scene.options import SceneOptions
from collidecli.storage.input_files import ENDINGS, USD

# Environments of a USD stage: root prims of worlds, and their equality.

DEFAULT_PATTERN = "/World/envs/[Ee]nv_[0-9]*"
"""Default pattern of environments: the names that Isaac Lab and Newton give them."""

NO_ENVIRONMENTS = "none"


@dataclass(frozen=True)
class Environment:
    """One environment, which is one world.

    path: its root prim. pose: float64[7], the root in world [m], xyzw. template: path of the first environment with
    equal content, possibly its own. Only templates are composed on the stage.
    """

    path: str
    pose: np.ndarray
    template: str


@dataclass(frozen=True)
class Environments:
    """The environments of a stage in the order of their worlds; empty where the whole stage is one world.

    dropped: prims outside that refer only to an environment that is not composed: its collision groups and joints.
    """

    all: tuple[Environment, ...] = ()
    dropped: frozenset[str] = frozenset()
    _roots: dict[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_roots", {environment.path: environment.template for environment in self.all})

    @property
    def several(self) -> bool:
        """Whether there is more than one: a stage with one environment is one world, which --worlds copies."""
        return len(self.all) > 1

    def root_of(self, path: str) -> str:
        """Root of the environment of a prim; "" outside of environments."""
        if not self._roots:
            return ""
        return next((above for above in upwards(path) if above in self._roots), "")

    def is_left_out(self, path: str) -> bool:
        """Whether a prim is not composed because another environment has an equal one."""
        root = self.root_of(path)
        return bool(root and self._roots[root] != root) or any(above in self.dropped for above in upwards(path))


def upwards(path: str) -> Iterator[str]:
    """A prim's path and those of its ancestors, the root excluded."""
    while path and path != "/":
        yield path
        path = path.rpartition("/")[0]


# Replacement of asset paths in the layers of a stage, in memory: `--asset-map` of USD scenes.

_mapped: ContextVar[tuple[Sdf.Layer, ...]] = ContextVar("mapped", default=())
"""Layers that are edited for the stage that is being read; pxr drops a layer, and the edit, that nothing refers to."""


def map_assets(stage: Usd.Stage, assets: AssetMap) -> None:
    """Replaces paths of sublayers, references and payloads, as written, in every layer that the root layer reaches.

    No file changes. Layers in usdz packages are not editable and keep their paths.
    """
    edited: dict[str, Sdf.Layer] = {}
    pending, seen = [stage.GetRootLayer()] if assets else [], set()
    while pending:
        layer = pending.pop()
        if layer.identifier in seen:
            continue
        seen.add(layer.identifier)
        if layer.dirty and layer.realPath:
            layer.Reload(force=True)  # from another stage with another map
        for path in layer.GetCompositionAssetDependencies():
            new = assets.replaced(path) if layer.permissionToEdit else None
            if new is not None:
                layer.UpdateCompositionAssetDependency(path, new)
                edited[layer.identifier] = layer
            with suppress(Tf.ErrorException):  # broken: reported when the stage composes it
                opened = Sdf.Layer.FindOrOpenRelativeToLayer(layer, new or path)
                pending += [opened] if opened is not None else []
    _mapped.set(tuple(edited.values()))


def end_mapping() -> None:
    """Releases the edited layers, which the composed stage keeps."""
    _mapped.set(())


def reload_stage(stage: Usd.Stage) -> None:
    """Reads changed files of the stage's layers again, which pxr may have kept from another stage.

    Layers with mapped paths are kept, since reading them again would undo the replacement.
    """
    if _mapped.get():
        Sdf.Layer.ReloadLayers(set(stage.GetUsedLayers()) - set(_mapped.get()))
    else:
        stage.Reload()


# References, payloads and sublayers of a stage that do not compose: refused, or passed over with a warning each.

NAMED_ERRORS = 5
"""Maximum number of broken references in one message."""

MISSING = (Pcp.ErrorInvalidAssetPath, Pcp.ErrorInvalidSublayerPath, Pcp.ErrorUnresolvedPrimPath)
"""Composition errors about a file or a prim that does not exist."""
_ASSET = re.compile(r"@([^@]*)@")
_REPORTED = re.compile(r"Could not (open asset|load sublayer)|Unresolved (reference|payload)")


def check_composition(stage: Usd.Stage, file: str, ignore_missing: bool = False) -> list[str]:
    """Raises InputError with the references, payloads and sublayers of a stage that do not compose.

    ignore_missing: a file or prim that does not exist is passed over; the returned warnings name each. Asset paths are
    as written in their layers.
    """
    errors = stage.GetCompositionErrors()
    passed = [error for error in errors if ignore_missing and isinstance(error, MISSING)]
    written = _written_paths(stage) if errors else {}
    broken = sorted({_text(error, written) for error in errors if error not in passed})
    if broken:
        more = f"; and {len(broken) - NAMED_ERRORS} more" if len(broken) > NAMED_ERRORS else ""
        fix = "put the referenced file beside the scene, or replace the path, as written, with --asset-map"
        if all(isinstance(error, MISSING) for error in errors):
            fix += "; --ignore-missing leaves it out"
        raise InputError(f"the scene does not compose: {'; '.join(broken[:NAMED_ERRORS])}{more}", file, fix)
    return [f"left out: {text}" for text in sorted({_text(error, written) for error in passed})]


def is_report_of_missing(warning: str) -> bool:
    """Whether a warning of pxr reports a missing file or prim, which `check_composition` names."""
    return _REPORTED.search(warning) is not None


def _text(error: Pcp.ErrorBase, written: dict[str, str]) -> str:
    text = str(error).removesuffix("; skipping.").rstrip(".")
    return _ASSET.sub(lambda match: f"@{written.get(_key(match[1]), match[1])}@", text)


def _written_paths(stage: Usd.Stage) -> dict[str, str]:
    """Asset paths as written in the stage's layers, by the forms that pxr prints: normalized, and anchored."""
    paths: dict[str, str] = {}
    for layer in stage.GetUsedLayers():
        folder = os.path.dirname(layer.realPath)
        for path in layer.GetCompositionAssetDependencies():
            paths.setdefault(_key(path), path)
            paths.setdefault(_key(os.path.join(folder, path)), path)
    return paths


def _key(path: str) -> str:
    return os.path.normpath(re.sub("/+", "/", path))


# Edits of a stage on layers in memory, which change no file: variants, editable instances, layers of time samples.

NAMED_PRIMS = 10
"""Maximum number of prims with variants in one message."""

HOW_TO_SELECT = "write --variants PRIM:SET=VALUE, as in /robot:gripper=closed"


def select_variants(stage: Usd.Stage, variants: Iterable[str], file: str) -> None:
    """Selects variants, each `prim:set=value`, in order: a later prim may exist only in an earlier variant.

    Raises InputError for another form, for one that is given twice, or whose prim, set or value does not exist.
    """
    chosen: dict[tuple[str, str], str] = {}
    for text in variants:
        parts = re.fullmatch(r"(/[^:=]*):([^=]+)=(.+)", text)
        if not parts or not Sdf.Path.IsValidPathString(parts[1]):
            raise InputError(f"the variant '{text}' is not PRIM:SET=VALUE", "--variants", HOW_TO_SELECT)
        path, name, value = parts.groups()
        if (path, name) in chosen:
            raise InputError(f"'{path}:{name}' is given twice", "--variants", "select one value of a variant set")
        chosen[path, name] = value
        prim = editable(stage, path)
        if not prim:
            raise InputError(f"--variants names <{path}>, which does not exist", file, _known_prims(stage))
        sets = prim.GetVariantSets()
        if name not in sets.GetNames():
            known = ", ".join(sets.GetNames()) or "none"
            raise InputError(f"the prim has no variant set '{name}'", f"{file} <{path}>", f"its variant sets: {known}")
        values = sets.GetVariantSet(name).GetVariantNames()
        if value not in values:
            known = ", ".join(values) or "none"
            what = f"the variant set '{name}' has no variant '{value}'"
            raise InputError(what, f"{file} <{path}>", f"its variants: {known}")
        Sdf.CreatePrimInLayer(stage.GetSessionLayer(), path).variantSelections[name] = value


def editable(stage: Usd.Stage, path: str, below: bool = False) -> Usd.Prim:
    """A prim that the session layer can edit: instances above it are made non-instanceable; an invalid prim if none.

    Opinions below an instanceable prim have no effect; its prims and paths do not depend on instancing.
    below: make the prims below it editable too.
    """
    prim = stage.GetPrimAtPath(path)
    while prim and (prim.IsInstanceProxy() or (below and prim.IsInstance())):
        above = prim
        while not above.IsInstance() or above.IsInstanceProxy():
            above = above.GetParent()
        Sdf.CreatePrimInLayer(stage.GetSessionLayer(), above.GetPath()).SetInfo("instanceable", False)
        prim = stage.GetPrimAtPath(path)
    return prim


def _known_prims(stage: Usd.Stage) -> str:
    every = Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies(Usd.PrimAllPrimsPredicate))
    known = [str(prim.GetPath()) for prim in every if prim.HasVariantSets()]
    if not known:
        return "the scene has no variants: remove the option"
    more = f" and {len(known) - NAMED_PRIMS} more" if len(known) > NAMED_PRIMS else ""
    return f"prims with variants: {', '.join(known[:NAMED_PRIMS])}{more}"


_TRANSFORM_OP = "xformOp:"
_INSTANCE_ARRAYS = ("positions", "orientations", "orientationsf", "scales")
"""Arrays of point instancers; in a layer without the scene such a prim may have no type."""
_NAMED = 5


@dataclass(frozen=True)
class MotionLayer:
    """The animated prims of a layer, without the scene.

    stage: of the layer alone; keeps the layer loaded. animated: prim path to the names of its transform ops, or arrays
    of a point instancer, that have time samples. first, last: their time codes. sample_count: number of distinct times.
    rate: time codes per second.
    """

    stage: Usd.Stage
    animated: dict[str, tuple[str, ...]]
    first: float
    last: float
    sample_count: int
    rate: float


def read_motion_layer(path: str) -> MotionLayer:
    """A layer's animated transforms, its own sublayers included.

    Raises InputError: pxr cannot read it; the ending is not USD's; no transform has a time sample; no rate.
    """
    if not path.lower().endswith(ENDINGS[USD]):
        what = "the content is USD, and OpenUSD requires one of its file name endings"
        raise InputError(what, path, f"rename it to {', '.join(ENDINGS[USD])}")
    try:
        stage = Usd.Stage.Open(path, Usd.Stage.LoadNone)
        stage.Reload()  # pxr keeps loaded layers by path; this reads a changed file again
    except Tf.ErrorException as error:
        reasons = [e.commentary.strip().splitlines()[0] for e in error.args if hasattr(e, "commentary")]
        reason = reasons[0] if reasons else type(error).__name__
        raise InputError(f"the USD layer cannot be read ({reason})", path, "export it again") from None
    animated: dict[str, tuple[str, ...]] = {}
    times: set[float] = set()
    for prim in stage.TraverseAll():
        moving = _moving(prim)
        if moving:
            animated[str(prim.GetPath())] = tuple(a.GetName() for a in moving)
            times.update(time for a in moving for time in a.GetTimeSamples())
    if not animated:
        raise InputError("no transform in the layer has time samples", path, "give the layer with the animation")
    rate = stage.GetTimeCodesPerSecond()
    if not (math.isfinite(rate) and rate > 0.0):
        raise InputError(f"timeCodesPerSecond is {rate:g}", path, "give a number greater than zero")
    return MotionLayer(stage, animated, min(times), max(times), len(times), rate)


def _moving(prim: Usd.Prim) -> list[Usd.Attribute]:
    """The attributes of a layer's prim that have time samples and define poses."""
    arrays = _INSTANCE_ARRAYS if not prim.GetTypeName() or prim.IsA(UsdGeom.PointInstancer) else ()
    sampled = [a for a in prim.GetAttributes() if a.GetNumTimeSamples()]
    return [a for a in sampled if a.GetName().startswith(_TRANSFORM_OP) or a.GetName() in arrays]


def lay_over(stage: Usd.Stage, path: str, scene: str) -> None:
    """Adds the layer at `path` to a scene's session layer, which gets the layer's rate: time codes are the layer's.

    Raises InputError with layer and prim: no collider moves; a prim is not in the scene or has no transform; an op is
    not in the prim's xformOpOrder, so that USD would not use it; other units or another up axis.
    """
    motion = read_motion_layer(path)
    layer = motion.stage.GetRootLayer()
    # USD does not convert units; a layer without units has the scene's.
    root = layer.pseudoRoot
    unit = root.GetInfo("metersPerUnit") if root.HasInfo("metersPerUnit") else None
    scene_unit = UsdGeom.GetStageMetersPerUnit(stage)
    if unit is not None and not math.isclose(unit, scene_unit, rel_tol=1e-9):
        what = f"the layer's metersPerUnit is {unit:g}, the scene's {scene_unit:g}"
        raise InputError(what, path, "export it in the scene's units")
    axis = root.GetInfo("upAxis") if root.HasInfo("upAxis") else None
    if axis is not None and axis != UsdGeom.GetStageUpAxis(stage):
        what = f"the layer's upAxis is {axis}, the scene's {UsdGeom.GetStageUpAxis(stage)}"
        raise InputError(what, path, "export it in its axes")
    session = stage.GetSessionLayer()
    # Before the layer is added: opinions in an instance have an effect only when the instance is editable.
    missing = [prim for prim in motion.animated if not editable(stage, prim)]
    session.timeCodesPerSecond = motion.rate
    session.subLayerPaths.append(layer.identifier)
    undefined = missing or [prim for prim in motion.animated if not stage.GetPrimAtPath(prim).IsDefined()]
    if undefined:
        shown = ", ".join(f"<{prim}>" for prim in undefined[:_NAMED])
        more = f" and {len(undefined) - _NAMED} more" if len(undefined) > _NAMED else ""
        what = f"the layer animates {shown}{more}, not in the scene {scene}"
        raise InputError(what, path, "correct the paths in the layer")
    moved = [name for name, names in motion.animated.items() if _check_used(stage.GetPrimAtPath(name), names, path)]
    if not any(_collides(stage.GetPrimAtPath(prim), set()) for prim in moved):
        shown = ", ".join(f"<{prim}>" for prim in list(motion.animated)[:_NAMED])
        what = f"the layer moves nothing that collides in {scene}: it animates {shown}"
        raise InputError(what, path, "animate a body's prim")


def _check_used(prim: Usd.Prim, names: tuple[str, ...], path: str) -> bool:
    """Whether the layer moves the prim; arrays have an effect on an instancer only. Refuses unused attributes."""
    ops = tuple(name for name in names if name.startswith(_TRANSFORM_OP))
    if ops:
        _check_ops(prim, ops, path)
    instancer = UsdGeom.PointInstancer(prim)
    if not instancer:
        return bool(ops)
    single = instancer.GetOrientationsfAttr()
    if "orientations" in names and "orientationsf" not in names and single.Get(Usd.TimeCode.EarliestTime()):
        what = "orientations is animated, but the scene has orientationsf, which USD uses instead"
        raise InputError(what, f"{path} <{prim.GetPath()}>", "animate orientationsf")
    return True


def _check_ops(prim: Usd.Prim, names: tuple[str, ...], path: str) -> None:
    where = f"{path} <{prim.GetPath()}>"
    xformable = UsdGeom.Xformable(prim)
    if not xformable:
        kind = prim.GetTypeName() or "prim without a type"
        raise InputError(f"the prim is a {kind} in the scene, which has no transform", where, "animate an Xform")
    used = {op.GetAttr().GetName() for op in xformable.GetOrderedXformOps()}
    unused = [name for name in names if name not in used]
    if unused:
        what = f"{unused[0]} is animated, but is not in the prim's xformOpOrder ({', '.join(sorted(used)) or 'empty'})"
        raise InputError(what, where, "write xformOpOrder in the layer too")


def _collides(prim: Usd.Prim, seen: set[Sdf.Path]) -> bool:
    """Whether a collider is below a prim, or in a prototype of a point instancer there; seen: visited prims."""
    if not prim or prim.GetPath() in seen:
        return False
    seen.add(prim.GetPath())
    below = list(Usd.PrimRange(prim, Usd.TraverseInstanceProxies(Usd.PrimAllPrimsPredicate)))
    if any(prim_below.HasAPI(UsdPhysics.CollisionAPI) for prim_below in below):
        return True
    instancers = [UsdGeom.PointInstancer(prim_below) for prim_below in below if prim_below.IsA(UsdGeom.PointInstancer)]
    targets = [target for prim_below in instancers for target in prim_below.GetPrototypesRel().GetForwardedTargets()]
    return any(_collides(prim.GetStage().GetPrimAtPath(target.GetPrimPath()), seen) for target in targets)


def layer_files(path: str) -> tuple[str, ...]:
    """The layer's own file, then the files of its sublayers and references by name."""
    stage = Usd.Stage.Open(path, Usd.Stage.LoadNone)
    own_file = os.path.realpath(path)
    others = {file_of(layer) for layer in stage.GetUsedLayers()} - {"", own_file}
    return (path, *sorted(others))


def file_of(layer: Sdf.Layer) -> str:
    """The file of a layer: the package for a layer in one; "" for a layer in memory."""
    return Ar.SplitPackageRelativePathOuter(layer.realPath)[0]


def is_motion_only(path: str) -> bool:
    """Whether a USD file has animated transforms and no collider, and is thus a motion layer instead of a scene."""
    stage = Usd.Stage.Open(path)
    if any(prim.HasAPI(UsdPhysics.CollisionAPI) for prim in stage.Traverse(Usd.TraverseInstanceProxies())):
        return False
    return any(_moving(prim) for prim in stage.TraverseAll())


@dataclass
class Instances:
    """Instances of point instancers as prims of their own.

    prototype_of: path of an instance's root to that of its prototype. In nested instancers, the prototype of an inner
    instance is in an instance of the outer one.
    """

    prototype_of: dict[str, str] = field(default_factory=dict)
    _copies_of: dict[str, list[str]] = field(default_factory=dict)

    def add(self, instance: str, prototype: str) -> None:
        self.prototype_of[instance] = prototype
        self._copies_of.setdefault(prototype, []).append(instance)

    def sources(self, path: str) -> Iterator[str]:
        """The prototype's prim of an instance's prim, then that prim's own prototype, and so on; none elsewhere."""
        for root in upwards(path):
            if root in self.prototype_of:
                source = self.prototype_of[root] + path[len(root) :]
                yield source
                yield from self.sources(source)
                return

    def copies(self, path: str) -> list[str]:
        """The instances of a prim in a prototype, including nested instancers; none elsewhere."""
        copies = []
        for root in upwards(path):
            for instance in self._copies_of.get(root, ()):
                copy = instance + path[len(root) :]
                copies += [copy, *self.copies(copy)]
        return copies


class PrototypeGroups:
    """Membership of instances in collision groups: that of the prototype's prim.

    Where the prototype is not below the instancer, the members of a group with the instancer include its instances.
    """

    def __init__(self, stage: Usd.Stage, instances: Instances) -> None:
        self._stage, self._instances = stage, instances

    @cached_property
    def _members(self) -> dict[str, Usd.UsdCollectionMembershipQuery]:
        prims = Usd.PrimRange.Stage(self._stage, Usd.TraverseInstanceProxies())
        groups = [prim for prim in prims if prim.IsA(UsdPhysics.CollisionGroup)]
        return {str(p.GetPath()): Usd.CollectionAPI(p, "colliders").ComputeMembershipQuery() for p in groups}

    def including(self, path: str) -> set[str]:
        """The groups whose collections contain a prim."""
        return {group for group, members in self._members.items() if members.IsPathIncluded(path)}

    def of(self, path: str, groups: set[str]) -> set[str]:
        """The groups of a collider. groups: those whose collections contain its own path."""
        sources = list(self._instances.sources(path)) if self._instances.prototype_of else []
        if not sources:
            return groups
        for source in sources:
            for group, members in self._members.items():
                if members.IsPathIncluded(source):
                    groups.add(group)
                elif _is_excluded(members, source):
                    groups.discard(group)
        return groups


def _is_excluded(members: Usd.UsdCollectionMembershipQuery, path: str) -> bool:
    """Whether the nearest rule of a prim or its ancestors excludes it."""
    rules = {str(known): rule for known, rule in members.GetAsPathExpansionRuleMap().items()}
    for above in upwards(path):
        if above in rules:
            return rules[above] == "exclude"
    return False


REST_TIME = Usd.TimeCode.EarliestTime()
"""The resting pose is that of the first time sample; without samples, the default values."""

UNIT_ROUNDING = 1e-9
"""Relative tolerance of units that are written as decimal fractions."""

EXPORT_AGAIN = "open it in a USD viewer, or export it again"
SHAPES_TO_USE = "use a plane, sphere, capsule, cube, cylinder, cone, mesh or points instead"


@dataclass
class Physics:
    """Result of pxr's physics parser: descriptors by prim path, shapes and bodies in the stage's order.

    warnings: for the user, one line each; the readers of the scene add to them. instances: prims of point instancers.
    environments: root prims of worlds. deformables: paths of prims of particles, which have no descriptor.
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
        """The prims of a relationship's target: itself, or its instances where it is in a prototype."""
        copies = self.instances.copies(path)
        return copies if copies and path not in self.shapes and path not in self.bodies else [path, *copies]

    def groups_of(self, path: str) -> set[str]:
        """Paths of the collision groups of a collider or deformable prim; those of an instance are its prototype's."""
        if path not in self.shapes:
            return self._prototype_groups.including(path)
        return self._prototype_groups.of(path, {str(group) for group in self.shapes[path].collisionGroups})


def authored_value(prim: Usd.Prim, name: str) -> Any:
    """The value of a prim's attribute at rest; None where it is not authored."""
    attribute = prim.GetAttribute(name)
    return attribute.Get(REST_TIME) if attribute and attribute.HasAuthoredValue() else None


def constant(attribute: Usd.Attribute, where: str, fix: str) -> Any:
    """The value of an attribute at rest. Raises InputError at `where` for one that changes over time."""
    if attribute.ValueMightBeTimeVarying():
        raise InputError(f"{attribute.GetName()} changes over time", where, fix)
    return attribute.Get(REST_TIME)


def open_stage(
    path: str | os.PathLike[str], options: SceneOptions, masked: bool = False
) -> tuple[Usd.Stage, list[str]]:
    """The composed stage of a file with selected variants and loaded payloads, and pxr's warnings.

    masked: without variants and a motion layer nothing is composed before the caller sets a mask.
    Raises InputError for a file that is missing, empty, broken or not USD, for variants that do not exist, and for
    broken references.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError("there is no such file", str(path), "give the path of a .usd, .usda, .usdc or .usdz file")
    if file.stat().st_size == 0:
        raise InputError("the file is empty", str(path), "give a USD scene")
    assets = AssetMap(options.asset_map, str(path))
    with diagnostics(str(path)) as warnings:
        whole = not masked or options.variants or options.motion_layer
        mask = Usd.StagePopulationMask.All() if whole else Usd.StagePopulationMask()
        # pxr keeps layers by path while another stage refers to them.
        Sdf.Layer.ReloadLayers({layer for layer in Sdf.Layer.GetLoadedLayers() if _is_unchanged_file(layer)})
        stage = Usd.Stage.OpenMasked(str(file), mask)
        stage.Reload()  # the scene's own layer may have been edited in memory
        map_assets(stage, assets)
        select_variants(stage, options.variants, str(path))
        if options.motion_layer:
            lay_over(stage, options.motion_layer, str(path))
    left_out = check_composition(stage, str(path), options.ignore_missing)
    return stage, assets.warnings() + left_out + [warning for warning in warnings if not is_report_of_missing(warning)]


def _is_unchanged_file(layer: Sdf.Layer | None) -> bool:
    """pxr releases the layers of closed stages on other threads: a layer may be None, or expire during this call."""
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
        warnings.append(f"the stage has no metersPerUnit; USD's default is taken: one unit is {value:g} m")
    if not (math.isfinite(value) and value > 0.0):
        raise InputError(f"metersPerUnit is {value:g}", file, "give the length of a unit in metres")
    return value


def foreign_layers(stage: Usd.Stage) -> list[str]:
    """A warning for each layer with another unit or up axis than the stage: USD converts neither."""
    unit, up = float(UsdGeom.GetStageMetersPerUnit(stage)), str(UsdGeom.GetStageUpAxis(stage))
    own_layers = {stage.GetRootLayer(), stage.GetSessionLayer()}
    layers = []
    for layer in sorted(set(stage.GetUsedLayers()) - own_layers, key=lambda layer: layer.identifier):
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
                f"the layer {name} has {' and '.join(differs)}; USD does not convert: its numbers are used unchanged"
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
    """The stage's colliders, bodies, joints and articulations as pxr's UsdPhysics parser reads them.

    instances: of its expanded point instancers. environments: those that the stage was populated for. deformables:
    paths of prims that are no colliders of rigid shapes.
    Raises InputError for a stage without a collider, and for a collider that the parser ignores.
    """
    with diagnostics(file) as parser_warnings:
        descriptors_of = _parse(stage)
    physics = Physics(
        stage, file, warnings=warnings, instances=instances or Instances(), deformables=tuple(deformables)
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
    # Shapes and bodies in the stage's order; colliders that pxr ignores are refused.
    prims = list(physics.stage.Traverse(Usd.TraverseInstanceProxies()))
    order = [str(p.GetPath()) for p in prims]
    for prim, path in zip(prims, order, strict=True):
        if path not in physics.shapes and path not in deformables and prim.HasAPI(UsdPhysics.CollisionAPI):
            _refuse_or_warn(physics, prim)
    if not physics.shapes and not deformables:
        what = "the stage has no collider"
        raise InputError(what, physics.file, "apply PhysicsCollisionAPI to the prims that should collide")
    physics.shapes = {path: physics.shapes[path] for path in order if path in physics.shapes}
    physics.bodies = {path: physics.bodies[path] for path in order if path in physics.bodies}
    physics.warnings += [w for w in parser_warnings if "CollisionAPI applied to an unknown" not in w]
    return physics


def _parse(stage: Usd.Stage) -> dict:
    # The second one before OpenUSD 26.08.
    parse = getattr(UsdPhysics, "UsdPhysicsLoadStageFromPrimRange", None) or UsdPhysics.LoadUsdPhysicsFromRange
    return parse(stage, ["/"])


def _refuse_or_warn(physics: Physics, prim: Usd.Prim) -> None:
    """Warns of a collider without geometry whose descendants are all colliders; refuses another one."""
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
        raise InputError(f"a collider of type {type_name} is not handled", physics.where(path), SHAPES_TO_USE)
    physics.warnings.append(f"<{path}>: the collider has no geometry of its own; its descendants are used")


@contextmanager
def diagnostics(file: str) -> Iterator[list[str]]:
    """Converts pxr's errors in the block to one InputError, and collects its warnings in the yielded list.

    A warning of corrupt data is an error too, as pxr continues with an empty value.
    """
    warnings: list[str] = []
    delegate = UsdUtils.CoalescingDiagnosticDelegate()
    try:
        yield warnings
    except Tf.ErrorException as error:
        reasons = [_first_line(e.commentary) for e in error.args if hasattr(e, "commentary")]
        what = f"the USD scene cannot be read ({reasons[0] if reasons else _first_line(str(error))})"
        raise InputError(what, file, EXPORT_AGAIN) from None
    finally:
        warnings += [_first_line(report.commentary) for report in delegate.TakeUncoalescedDiagnostics()]
        del delegate  # it receives reports until it is deleted
    corrupt = [w for w in warnings if w.startswith("Corrupt asset")]
    if corrupt:
        raise InputError(f"the USD scene cannot be read ({corrupt[0]})", file, EXPORT_AGAIN)


@contextmanager
def reading_samples(file: str) -> Iterator[None]:
    """Converts pxr's errors and warnings in the block, which reads time samples, to an InputError."""
    with diagnostics(file) as warnings:
        yield
    if warnings:
        raise InputError(f"the time samples cannot be read ({warnings[0]})", file, EXPORT_AGAIN)


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0].rstrip(".") if text.strip() else "no reason given"
