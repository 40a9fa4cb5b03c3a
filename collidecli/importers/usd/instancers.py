"""Expansion of point instancers: each instance whose prototype collides becomes a prim on the
session layer.

An instance inherits its prototype, so that its colliders, bodies, joints and articulations are
parsed as those of any prim; targets in the prototype are resolved in the instance, targets outside
are unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, Vt

from collidecli.errors import InputError
from collidecli.importers.usd.expected_prims import MOST_PRIMS
from collidecli.importers.usd.instances import Instances
from collidecli.importers.usd.layers import editable
from collidecli.importers.usd.stage import Physics
from collidecli.importers.usd.typed_attributes import (
    INTEGERS,
    QUATERNIONS,
    TOKENS,
    VECTORS,
    read_array,
    read_value,
)
from collidecli.numerics.products import norm

NESTING_LIMIT = 16
"""Maximum depth of instancers in prototypes of instancers; a deeper nesting is treated as a
cycle."""

INSTANCE_LIMIT = 1_000_000
"""Limit of the number of instances: nested counts multiply and could exhaust the memory."""

QUATERNION_ROUNDING = 1e-2
"""Tolerance of an orientation's norm: half precision has an error of 1e-3 per component."""

FOLDER = "instances"
VALUE_TYPE = {
    "translate": Sdf.ValueTypeNames.Float3,
    "orient": Sdf.ValueTypeNames.Quatd,
    "scale": Sdf.ValueTypeNames.Float3,
}
KINDS = {"translate": VECTORS, "orient": QUATERNIONS, "scale": VECTORS}
BINDINGS = ("material:binding:physics", "material:binding")
MOTION_HINTS = ("velocities", "accelerations", "angularVelocities")


def expand_instancers(stage: Usd.Stage, file: str, warnings: list[str]) -> Instances:
    """Creates prims for the instances of every point instancer whose prototypes contain colliders
    or bodies.

    Instance i of prototype P is `<instancer>/instances/<name of P>_<i>`; i is its id where ids are
    authored. The instancer becomes an Xform; its other descendants, which are not in the scene by
    themselves, become abstract. Instances in inactiveIds are omitted. Those in invisibleIds are
    created: visibility does not affect collision. Raises InputError with the instancer: arrays of
    different lengths, indices without a prototype, targets that do not exist, an orientation that
    is not a rotation, equal ids, instances whose number or prototype changes over time, and
    instancers that contain themselves.
    """
    instances = Instances()
    prims = 0
    waiting = [(prim.GetPath(), 1) for prim in _instancers(stage.GetPseudoRoot())]
    while waiting:
        path, depth = waiting.pop(0)
        if not _holds_physics(stage.GetPrimAtPath(path), set()):
            continue
        where = f"{file} <{path}>"
        if depth > NESTING_LIMIT:
            raise InputError(
                "point instancers contain each other in a cycle",
                where,
                "remove the cycle of prototypes",
            )
        schema = UsdGeom.PointInstancer(editable(stage, str(path), below=True))
        count = len(read_array(schema.GetProtoIndicesAttr(), INTEGERS, where))
        if len(instances.prototype_of) + count > INSTANCE_LIMIT:
            raise InputError(f"more than {INSTANCE_LIMIT} instances", where, "give the scene fewer")
        instancer = _Instancer(schema, where, warnings)
        prims += instancer.prim_count()
        if prims > MOST_PRIMS:
            what = f"instances have over {MOST_PRIMS:,} prims"
            raise InputError(what, where, "give the scene fewer")
        # USD would scale the time samples of a session layer with another rate.
        rate = stage.GetTimeCodesPerSecond()
        if not 0.0 < rate < np.inf:
            raise InputError(
                f"timeCodesPerSecond is {rate:g}", file, "give a number greater than zero"
            )
        if stage.GetSessionLayer().timeCodesPerSecond != rate:
            stage.GetSessionLayer().timeCodesPerSecond = rate
        folder = instancer.write(stage, instances)
        waiting += [
            (prim.GetPath(), depth + 1) for prim in _instancers(stage.GetPrimAtPath(folder))
        ]
    return instances


def check_joints(physics: Physics) -> None:
    """Refuses a joint to a prim that is in the scene only as instances: the target is ambiguous."""
    for path in physics.joints:
        for side in ("physics:body0", "physics:body1"):
            relationship = physics.prim(path).GetRelationship(side)
            for target in map(str, relationship.GetForwardedTargets() if relationship else ()):
                copies = physics.instances.copies(target)
                if copies and copies == physics.targets(target):
                    what = (
                        f"the joint names <{target}>, which is in a prototype of a point instancer"
                    )
                    fix = (
                        f"name an instance, for example <{copies[0]}>, or move the joint into the"
                        " prototype"
                    )
                    raise InputError(what, physics.where(path), fix)


def _instancers(root: Usd.Prim) -> Iterator[Usd.Prim]:
    """The point instancers below a prim, in order; those below another instancer are not in the
    scene."""
    prims = iter(Usd.PrimRange(root, Usd.TraverseInstanceProxies()))
    for prim in prims:
        if prim.IsA(UsdGeom.PointInstancer):
            yield prim
            prims.PruneChildren()


def _holds_physics(instancer: Usd.Prim, seen: set[Sdf.Path]) -> bool:
    if not instancer or instancer.GetPath() in seen:
        return False
    seen.add(instancer.GetPath())
    every = Usd.TraverseInstanceProxies(Usd.PrimAllPrimsPredicate)
    for target in UsdGeom.PointInstancer(instancer).GetPrototypesRel().GetForwardedTargets():
        prototype = instancer.GetStage().GetPrimAtPath(target.GetPrimPath())
        for prim in Usd.PrimRange(prototype, every) if prototype else ():
            if prim.HasAPI(UsdPhysics.CollisionAPI) or prim.HasAPI(UsdPhysics.RigidBodyAPI):
                return True
            if prim.IsA(UsdGeom.PointInstancer) and _holds_physics(prim, seen):
                return True
    return False


def _prototypes(schema: UsdGeom.PointInstancer, where: str) -> list[Usd.Prim | None]:
    """The prototypes of an instancer; an inactive one, or one below an inactive prim, is None.
    Raises InputError for a target that is no prim, or that has the instancer below it."""
    stage = schema.GetPrim().GetStage()
    prototypes = []
    for target in schema.GetPrototypesRel().GetForwardedTargets():
        prim = stage.GetPrimAtPath(target)
        above = (stage.GetPrimAtPath(path) for path in target.GetAncestorsRange())
        if not target.IsPrimPath() or (
            not prim and next(filter(None, above), stage.GetPseudoRoot()).IsActive()
        ):
            raise InputError(
                f"prototypes names <{target}>, which is not a prim",
                where,
                "correct the relationship",
            )
        if schema.GetPath().HasPrefix(target):
            raise InputError(
                f"the prototype <{target}> contains the instancer itself",
                where,
                "move the instancer",
            )
        prototypes.append(prim if prim and prim.IsActive() else None)
    return prototypes


class _Instancer:
    """A checked point instancer.

    prototypes: by index; None for one that is not active. index: prototype of each instance. names:
    unique, of each. where: of the instancer, in errors. rows: the instances to create. placing: the
    transform operations of an instance, with their attributes.
    """

    def __init__(self, schema: UsdGeom.PointInstancer, where: str, warnings: list[str]) -> None:
        prototypes = _prototypes(schema, where)
        index = _constant(schema.GetProtoIndicesAttr(), where)
        if np.any((index < 0) | (index >= len(prototypes))):
            bad = int(index[(index < 0) | (index >= len(prototypes))][0])
            raise InputError(
                f"protoIndices has {bad}, and there are {len(prototypes)} prototypes",
                where,
                "correct it",
            )
        ids = _constant(schema.GetIdsAttr(), where)
        ids = ids if len(ids) else np.arange(len(index))
        _check_length("ids", len(ids), len(index), where)
        values, counts = np.unique(ids, return_counts=True)
        if np.any(counts > 1):
            raise InputError(
                f"two instances have the id {values[counts > 1][0]}", where, "give each a unique id"
            )
        self.placing = _placing(schema, len(index), where)
        path = schema.GetPath()
        inactive = schema.GetPrim().GetMetadata("inactiveIds")
        off = set(inactive.GetAppliedItems()) if inactive else set()
        unseen = read_array(schema.GetInvisibleIdsAttr(), INTEGERS, where).tolist()
        hidden = set(unseen) & set(ids.tolist()) - off
        if hidden:
            what = f"{len(hidden)} instances in invisibleIds collide"
            warnings.append(f"<{path}>: {what}: visibility does not affect collision")
        if any(schema.GetPrim().GetAttribute(name).HasAuthoredValue() for name in MOTION_HINTS):
            warnings.append(
                f"<{path}>: velocities are not used: between time samples instances are"
                " interpolated"
            )
        _warn_of_left_out(schema, prototypes, warnings)
        self.schema = schema
        self.where = where
        self.prototypes = prototypes
        self.index = index
        self.names = [str(i) if i >= 0 else f"minus{-i}" for i in ids.tolist()]
        self.rows = [
            k
            for k, i in enumerate(ids.tolist())
            if i not in off and prototypes[index[k]] is not None
        ]

    def prim_count(self) -> int:
        """Number of prims of all instances."""
        every = Usd.TraverseInstanceProxies()
        counts = [
            sum(1 for _ in Usd.PrimRange(prim, every)) if prim else 0 for prim in self.prototypes
        ]
        return sum(counts[index] for index in self.index[self.rows].tolist())

    def write(self, stage: Usd.Stage, instances: Instances) -> Sdf.Path:
        """Creates the instances, adds them to `instances`, and returns the path of their parent."""
        path = self.schema.GetPath()
        children = self.schema.GetPrim().GetAllChildrenNames()
        name = FOLDER
        while name in children:
            name += "_"
        samples = [
            (operation, _samples(operation, attribute, self.where))
            for operation, attribute in self.placing
        ]
        roots = [
            _Root(prototype, self.where) if prototype else None for prototype in self.prototypes
        ]
        session = stage.GetSessionLayer()
        with Sdf.ChangeBlock():
            spec = Sdf.CreatePrimInLayer(session, path)
            spec.typeName = "Xform"
            for child in children:
                Sdf.CreatePrimInLayer(
                    session, path.AppendChild(child)
                ).specifier = Sdf.SpecifierClass
            folder = Sdf.PrimSpec(spec, name, Sdf.SpecifierDef, "Scope")
            for row in self.rows:
                root = roots[self.index[row]]
                assert root is not None
                instance = Sdf.PrimSpec(
                    folder, f"{root.path.name}_{self.names[row]}", Sdf.SpecifierDef
                )
                root.write(instance)
                _place(instance, row, samples, root.operations)
                instances.add(str(instance.path), str(root.path))
        return folder.path


class _Root:
    """A prototype's root: its operations, and the material bindings of its ancestors, which no
    instance inherits."""

    def __init__(self, prototype: Usd.Prim, where: str) -> None:
        form = UsdGeom.Xformable(prototype)
        at = f"{where}, prototype <{prototype.GetPath()}>"
        order = read_value(form.GetXformOpOrderAttr(), TOKENS, at) if form else ()
        self.bindings: dict[str, tuple[list[Sdf.Path], str]] = {}
        for name in BINDINGS:
            above = prototype
            while above and not above.HasRelationship(name):
                above = above.GetParent()
            if above and above != prototype:
                relationship = above.GetRelationship(name)
                strength = relationship.GetMetadata("bindMaterialAs")
                self.bindings[name] = (relationship.GetForwardedTargets(), strength or "")
        self.path = prototype.GetPath()
        self.operations = [op for op in order or () if op != "!resetXformStack!"]

    def write(self, spec: Sdf.PrimSpec) -> None:
        spec.inheritPathList.Prepend(self.path)
        spec.SetInfo("instanceable", True)
        for name, (targets, strength) in self.bindings.items():
            binding = Sdf.RelationshipSpec(spec, name, custom=False)
            for target in targets:
                binding.targetPathList.Append(target)
            if strength:
                binding.SetInfo("bindMaterialAs", strength)
        if self.bindings:
            spec.SetInfo(
                "apiSchemas", Sdf.TokenListOp.Create(prependedItems=["MaterialBindingAPI"])
            )


def _place(
    spec: Sdf.PrimSpec, row: int, samples: list[tuple[str, dict]], of_prototype: list[str]
) -> None:
    """Writes an instance's element of the instancer's arrays as operations before those of its
    prototype.

    Between samples USD interpolates these as it interpolates the array's elements, quaternions by
    slerp.
    """
    names = []
    for operation, values in samples:
        attribute = Sdf.AttributeSpec(spec, f"xformOp:{operation}:instance", VALUE_TYPE[operation])
        for time, value in values.items():
            if time is None:
                attribute.default = value[row]
            else:
                spec.layer.SetTimeSample(attribute.path, time, value[row])
        names.append(attribute.name)
    order = Sdf.AttributeSpec(
        spec, "xformOpOrder", Sdf.ValueTypeNames.TokenArray, Sdf.VariabilityUniform
    )
    order.default = Vt.TokenArray(names + of_prototype)


def _placing(
    schema: UsdGeom.PointInstancer, count: int, where: str
) -> list[tuple[str, Usd.Attribute]]:
    """Transform operations, outermost first, and the arrays with their values."""
    orientations = schema.GetOrientationsfAttr()
    if not len(read_array(orientations, QUATERNIONS, where)):
        orientations = schema.GetOrientationsAttr()
    operations = []
    for operation, attribute in (
        ("translate", schema.GetPositionsAttr()),
        ("orient", orientations),
        ("scale", schema.GetScalesAttr()),
    ):
        kind = KINDS[operation]
        if operation != "translate" and not len(read_array(attribute, kind, where)):
            continue  # an array without elements is treated as not authored
        for time in attribute.GetTimeSamples() or [Usd.TimeCode.Default()]:
            at = f"{where}, time code {time:g}" if isinstance(time, float) else where
            value = read_array(attribute, kind, at, time)
            _check_length(attribute.GetName(), len(value), count, at)
            if operation == "orient":
                _check_rotations(value, attribute.GetName(), at)
        if count:
            operations.append((operation, attribute))
    return operations


def _check_length(name: str, length: int, count: int, where: str) -> None:
    if length != count:
        what = f"{name} has {length} elements, and protoIndices {count}"
        raise InputError(what, where, "give each instance one element")


def _check_rotations(quaternions: np.ndarray, name: str, where: str) -> None:
    norms = norm(quaternions)
    bad = np.flatnonzero(~(np.abs(norms - 1.0) <= QUATERNION_ROUNDING))
    if len(bad):
        raise InputError(
            f"{name}[{bad[0]}] has norm {norms[bad[0]]:g}", where, "give a unit quaternion"
        )


def _constant(attribute: Usd.Attribute, where: str) -> np.ndarray:
    """int64[n] of an array that must not change over time; empty where it is not authored."""
    first = read_array(attribute, INTEGERS, where)
    for time in attribute.GetTimeSamples():
        at = f"{where}, time code {time:g}"
        if not np.array_equal(read_array(attribute, INTEGERS, at, time), first):
            what = f"{attribute.GetName()} changes over time"
            raise InputError(what, at, "keep the instances constant")
    return first


def _samples(operation: str, attribute: Usd.Attribute, where: str) -> dict:
    """Values by time code; the default value under None where there are no time samples.

    Quaternions are normalized in double precision: norms in half precision have errors of 1e-3.
    """
    values = {
        time: read_value(attribute, KINDS[operation], where, time)
        for time in attribute.GetTimeSamples()
    } or {None: read_value(attribute, KINDS[operation], where, Usd.TimeCode.Default())}
    if operation == "orient":
        return {
            time: [Gf.Quatd(q).GetNormalized() for q in value] for time, value in values.items()
        }
    return values


def _warn_of_left_out(
    schema: UsdGeom.PointInstancer, prototypes: list[Usd.Prim | None], warnings: list[str]
) -> None:
    """Warns of colliders below an instancer that are in none of its prototypes, and so not in the
    scene."""
    roots = [prim.GetPath() for prim in prototypes if prim]
    for prim in Usd.PrimRange(schema.GetPrim(), Usd.TraverseInstanceProxies()):
        path = prim.GetPath()
        if (
            prim.HasAPI(UsdPhysics.CollisionAPI)
            and path != schema.GetPath()
            and not any(map(path.HasPrefix, roots))
        ):
            warnings.append(
                f"<{path}>: left out: below a PointInstancer, and in none of its prototypes"
            )
