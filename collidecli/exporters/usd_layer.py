"""A USD layer over the scene: contact points and normals of each world, one time sample for each
frame."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pxr import Sdf, Usd, UsdGeom, Vt

from collidecli.errors import InputError
from collidecli.exporters.arrays import midpoint
from collidecli.exporters.usd_bodies import write_bodies
from collidecli.exporters.usd_surfaces import (
    FACE_BYTES,
    VERTEX_BYTES,
    surface_groups,
    write_surfaces,
)
from collidecli.exporters.usd_values import ARRAY_SHAPES, Primvars, extent_of, vectors
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.selected import SelectedContacts, cells_of, rows_of
from collidecli.system import free_memory
from collidecli.temporary_folders import TemporaryFolder

if TYPE_CHECKING:
    from collidecli.exporters.usd_bodies import MovedBodies

ROOT = "/collide_contacts"
COLUMNS = ("shape0", "shape1", "distance", "normal", "point0", "point1")
RATE = 24.0
"""Time codes a second of a layer without a scene: USD's default."""
CONTACT_BYTES = 192
"""Memory for a contact: 68 bytes in the layer, as many while it is written, and an allowance for
pxr."""
BODY_BYTES = 384
"""Memory for a transform of a body: 128 bytes in the layer, and as for a contact."""
_TOGETHER = (
    "metersPerUnit",
    "upAxis",
    "kilogramsPerUnit",
    "timeCodesPerSecond",
    "framesPerSecond",
    "defaultPrim",
)
_DEEP = (0.9, 0.1, 0.1)
_APART = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class SceneLayers:
    """The scene below the layer. sublayers: asset paths, the strongest first. metadata: of the
    scene's root layer. environments: root prim of each world, "" for none; () without a scene."""

    metres_per_unit: float = 1.0
    up_axis: str = "Z"
    rate: float = RATE
    sublayers: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    environments: Sequence[str] = ()


def layers_of(
    stage: Usd.Stage, files: tuple[str, ...], output: str | os.PathLike[str], metres: float
) -> SceneLayers:
    """The scene below a layer at `output`, from its stage. files: its layers, the strongest first.

    Raises InputError for a scene with exported contacts.
    """
    if stage.GetPrimAtPath(ROOT):
        raise InputError(
            f"the scene has a prim <{ROOT}> already",
            files[-1],
            "export over the scene without contacts",
        )
    root = stage.GetRootLayer().pseudoRoot
    metadata = {key: root.GetInfo(key) for key in _TOGETHER if root.HasInfo(key)}
    for key in ("startTimeCode", "endTimeCode"):
        if stage.HasAuthoredTimeCodeRange():
            metadata[key] = getattr(stage, f"Get{key[0].upper()}{key[1:]}")()
    paths = tuple(_asset_path(file, output) for file in files)
    rate = float(stage.GetTimeCodesPerSecond())
    return SceneLayers(metres, str(UsdGeom.GetStageUpAxis(stage)), rate, paths, metadata)


def _asset_path(file: str, output: str | os.PathLike[str]) -> str:
    """Path relative to the output's folder, so that both can be moved together; absolute on
    different drives."""
    try:
        path = os.path.relpath(os.path.realpath(file), os.path.dirname(os.path.realpath(output)))
    except ValueError:
        return Path(os.path.realpath(file)).as_posix()
    path = Path(path).as_posix()
    return path if path.startswith("../") else f"./{path}"


def write_usd(
    output: AtomicOutput,
    selected: SelectedContacts,
    scene: SceneLayers,
    normal_length: float,
    bodies: MovedBodies | None = None,
) -> None:
    """Writes the layer, as text if the output's name ends with .usda. normal_length: of a drawn
    normal [m].

    bodies: of a recorded motion, which then move in the layer. Raises InputError for two frames at
    one time, and for a layer larger than the free memory, as pxr has the whole layer in memory;
    OutputError after a failed write.
    """
    samples = selected.frame_count * len(bodies.path) if bodies is not None else 0
    needed = selected.contact_count * CONTACT_BYTES + samples * BODY_BYTES
    free = free_memory()
    of_surfaces = 0
    for name in surface_groups(selected):
        rows = rows_of(selected, name)
        of_surfaces += rows.contact_count * FACE_BYTES
        of_surfaces += sum(
            rows.value_count(entries.column.name) * VERTEX_BYTES for entries in rows.group.lists
        )
    needed += of_surfaces
    if needed > free:
        size = f"{needed >> 20} MiB of memory, and {free >> 20} are free"
        what = f"a layer of {selected.contact_count} contacts needs {size}"
        raise InputError(
            what, selected.contacts.path, "choose fewer with --frames, --world or --include"
        )
    codes = time_codes(selected, scene.rate)
    layer = Sdf.Layer.CreateAnonymous(".usda")
    stage = _stage(layer, selected, scene, codes)
    drawn = [
        _Drawn(stage, int(world), normal_length / scene.metres_per_unit)
        for world in selected.worlds
    ]
    for world in selected.worlds.tolist() if scene.environments else ():
        if root := scene.environments[world]:
            prim = stage.GetPrimAtPath(f"{ROOT}/world_{world}")
            named = prim.CreateAttribute("collide:environment", Sdf.ValueTypeNames.String, True)
            named.Set(root)
    for frame, world, columns in cells_of(selected, COLUMNS):
        drawn[world].add(float(codes[frame]), columns, scene.metres_per_unit)
    write_surfaces(stage, ROOT, selected, codes, scene.metres_per_unit)
    if bodies is not None:
        write_bodies(stage, bodies, codes, scene.metres_per_unit)
    del drawn, stage  # an open stage would compose the sublayers
    layer.subLayerPaths = list(scene.sublayers)
    with TemporaryFolder("layer") as folder:
        layer_path = os.path.join(
            folder, "layer.usda" if output.path.suffix.lower() == ".usda" else "layer.usdc"
        )
        layer.Export(layer_path)
        output.copy(layer_path)


def time_codes(selected: SelectedContacts, rate: float) -> np.ndarray:
    """float64[F]: the frames' times in time codes; integers if they differ from integers by
    rounding only."""
    codes = selected.time * rate
    whole = np.rint(codes)
    codes = np.where(np.abs(codes - whole) <= 1e-9 * np.maximum(1.0, np.abs(codes)), whole, codes)
    same = np.flatnonzero(np.diff(codes) <= 0.0)
    if len(same):
        first, second = (selected.frames[int(same[0]) + k] for k in (0, 1))
        what = (
            f"frames {first} and {second} are both at {selected.time[same[0]]:g} s, and USD has one"
            " sample at a time"
        )
        raise InputError(
            what, selected.contacts.path, "choose frames of ascending times with --frames"
        )
    return codes


def _stage(
    layer: Sdf.Layer, selected: SelectedContacts, scene: SceneLayers, codes: np.ndarray
) -> Usd.Stage:
    contacts = selected.contacts
    stage = Usd.Stage.Open(layer)
    for key, value in scene.metadata.items():
        layer.pseudoRoot.SetInfo(key, value)
    UsdGeom.SetStageMetersPerUnit(stage, scene.metres_per_unit)
    UsdGeom.SetStageUpAxis(stage, scene.up_axis)
    layer.timeCodesPerSecond = scene.rate
    layer.startTimeCode = min(float(codes[0]), scene.metadata.get("startTimeCode", float(codes[0])))
    layer.endTimeCode = max(float(codes[-1]), scene.metadata.get("endTimeCode", float(codes[-1])))
    layer.documentation = f"Contacts of {contacts.scene}, content {contacts.content_sha256}"
    root = UsdGeom.Scope.Define(stage, ROOT).GetPrim()
    root.CreateAttribute("collide:content_sha256", Sdf.ValueTypeNames.String, True).Set(
        contacts.content_sha256
    )
    paths = Vt.StringArray(list(contacts.shapes.path))
    root.CreateAttribute("collide:shapes", Sdf.ValueTypeNames.StringArray, True).Set(paths)
    return stage


class _Drawn:
    """The prims of one world: midpoints of witness points, and a line along each normal. Lengths in
    stage units."""

    def __init__(self, stage: Usd.Stage, world: int, normal_length: float) -> None:
        path = f"{ROOT}/world_{world}"
        UsdGeom.Scope.Define(stage, path)
        self._length = normal_length
        points = UsdGeom.Points.Define(stage, f"{path}/points")
        normals = UsdGeom.BasisCurves.Define(stage, f"{path}/normals")
        normals.CreateTypeAttr(UsdGeom.Tokens.linear)
        for prim, width in ((points, normal_length / 5.0), (normals, normal_length / 25.0)):
            prim.CreateWidthsAttr(Vt.FloatArray([width]))
            prim.SetWidthsInterpolation(UsdGeom.Tokens.constant)
        self._points = points.CreatePointsAttr()
        self._ends = normals.CreatePointsAttr()
        self._counts = normals.CreateCurveVertexCountsAttr()
        self._extents = (points.CreateExtentAttr(), normals.CreateExtentAttr())
        kinds = {"distance": "FloatArray", **ARRAY_SHAPES, "normal": "Vector3fArray"}
        self._primvars = Primvars(points, UsdGeom.Tokens.vertex, kinds)
        self._colours = (
            points.CreateDisplayColorPrimvar(UsdGeom.Tokens.vertex),
            normals.CreateDisplayColorPrimvar(UsdGeom.Tokens.uniform),
        )

    def add(self, code: float, columns: Mapping[str, np.ndarray], metres_per_unit: float) -> None:
        """Adds the contacts of one frame."""
        normal = columns["normal"]
        point = midpoint(columns).astype(np.float64) / metres_per_unit
        ends = np.stack([point, point + normal.astype(np.float64) * self._length], axis=1).reshape(
            -1, 3
        )
        self._points.Set(vectors(point), code)
        self._ends.Set(vectors(ends), code)
        self._counts.Set(Vt.IntArray.FromNumpy(np.full(len(point), 2, np.int32)), code)
        for attribute, shown in zip(self._extents, (point, ends), strict=True):
            attribute.Set(extent_of(shown), code)
        distance = (columns["distance"].astype(np.float64) / metres_per_unit).astype(np.float32)
        self._primvars.set({**columns, "distance": distance}, code)
        colour = vectors(np.where((distance < 0.0)[:, None], _DEEP, _APART))
        for primvar in self._colours:
            primvar.Set(colour, code)
