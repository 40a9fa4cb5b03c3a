"""Hydroelastic stage of a pipeline: takes the hydroelastic pairs from the candidates, and computes
their surfaces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from collidecli.engine.block_pairs import BlockPairs
from collidecli.engine.candidates import CandidateList, expand
from collidecli.engine.cells import Chunk, ChunkCells
from collidecli.engine.compaction import offset_in_body
from collidecli.engine.device_model import KIND_COUNT, DeviceModel, ShapeRows
from collidecli.engine.geometry.real import Vec3
from collidecli.engine.hydroelastic import pairs
from collidecli.engine.hydroelastic.pairs import UploadedFields, upload_fields
from collidecli.engine.hydroelastic.polytopes import (
    POLYTOPE_KERNELS,
    FaceList,
    HydroFace,
    HydroPatch,
    clip_polytopes,
    move_faces,
    sum_faces,
)
from collidecli.engine.reduction_directions import (
    BIN_COUNT,
    DIRECTION_COUNT,
    bin_directions,
    bin_normals,
)
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.numerics.products import cross, dot, norm
from collidecli.scene.hydroelastic import HydroShapes
from collidecli.scene.options import ContactOptions
from collidecli.scene.tables import (
    FRICTION_SCALE,
    HYDRO_FACES,
    HYDRO_PATCHES,
    KIND_PATCH,
    REDUCED_COLUMNS,
    RIGID_COLUMNS,
    ContactBlock,
    ContactGroup,
    GroupRows,
)

if TYPE_CHECKING:  # defining its kernels takes time
    from collidecli.engine.hydroelastic.voxels import Sampler


@kernel
def find_offsets(
    rows: ShapeRows,
    chunk: ChunkCells,
    cell: wp.array[wp.int32],
    row: wp.array[wp.int32],
    point: wp.array[Vec3],
    offset: wp.array[wp.vec3f],
):
    """One thread a point: its place in the frame of its shape's body; in the world for a static
    shape."""
    thread = wp.tid()
    offset[thread] = (
        offset_in_body(rows, chunk, cell[thread], row[thread], point[thread]) + wp.vec3f()
    )


@dataclass(frozen=True)
class HydroStage:
    """The hydroelastic pairs of a model.

    surface: write the faces. reduce: add contacts to the others. sampler: None where all pairs are
    of polytopes. one_bucket: int32[KIND_COUNT], zeros: the bucket of every kind of shape.
    """

    device_model: DeviceModel
    uploaded: UploadedFields
    surface: bool
    reduce: bool
    sampler: Sampler | None
    one_bucket: wp.array

    @property
    def needs_corners(self) -> bool:
        """Whether the corners of faces are needed."""
        return self.surface or self.reduce

    @property
    def written(self) -> tuple[ContactGroup, ...]:
        """The groups that `groups` returns."""
        return (HYDRO_PATCHES, HYDRO_FACES) if self.surface else (HYDRO_PATCHES,)

    def kernels(self) -> list[wp.Kernel]:
        kernels = [pairs.mark_hydro_pairs, pairs.split_pairs, pairs.prepare_pairs, sum_faces]
        kernels += [move_faces] if self.needs_corners else []
        kernels += [find_offsets] if self.reduce else []
        kernels += POLYTOPE_KERNELS if self.uploaded.has_polytope_pairs else ()
        return [*kernels, *(self.sampler.kernels() if self.sampler else ())]

    def split(
        self, chunk: Chunk, block_pairs: BlockPairs, workspace: Workspace
    ) -> tuple[CandidateList, BlockPairs]:
        """The hydroelastic candidates of a chunk in canonical order, and the pairs of slots of the
        others."""
        count = block_pairs.count
        end = workspace.array("hydro_pair_end", count, wp.int32)
        layout = self.device_model.layout
        fields = self.uploaded.fields
        workspace.launch(
            pairs.mark_hydro_pairs, count, [layout, chunk.cells, fields, block_pairs.slots, end]
        )
        hydro_count = workspace.scan(end, count)
        hydro, others = (
            BlockPairs(
                workspace.array(f"{name}_slots", n, wp.vec2i),
                workspace.array(f"{name}_mask", n, wp.uint32),
                n,
            )
            for name, n in (("hydro", hydro_count), ("others", count - hydro_count))
        )
        lists = [hydro.slots, hydro.mask, others.slots, others.mask]
        workspace.launch(
            pairs.split_pairs, count, [block_pairs.slots, block_pairs.mask, end, *lists]
        )
        listed = expand(
            self.device_model, chunk, hydro, (self.one_bucket, 0, 1), "hydro_candidate", workspace
        )
        return listed, others

    def add_to(
        self, block: ContactBlock, chunk: Chunk, listed: CandidateList, workspace: Workspace
    ) -> tuple[ContactBlock, np.ndarray]:
        """The block with the hydroelastic groups of a chunk, and with reduced contacts if they are
        requested.

        The second result is int32[missed, 2]: rows of the shapes of each pair that overlaps and has
        no surface, since it is too thin for the finest voxels.
        """
        float_type = block.columns["point0"].dtype
        hydro, patch, lists, missed = self._patches(chunk, listed, workspace)
        cell_count = chunk.cell_count
        cell_end = workspace.host(listed.cell_end, cell_count)
        cell = np.repeat(np.arange(cell_count), np.diff(cell_end, prepend=0))
        rows = (hydro["row0"], hydro["row1"])
        torque_error = None
        groups = {}
        if self.needs_corners:
            face, vertices = joined_faces([faces.on_host(workspace) for faces in lists])
            if self.surface:
                groups[HYDRO_FACES.name] = face_rows(
                    patch, face, vertices, cell, cell_count, float_type
                )
            if self.reduce:
                margins = hydro["margin0"] + hydro["margin1"]
                pair, added, torque_error = reduced_contacts(patch, face, vertices, margins)
                added |= {f"shape{side}": rows[side][pair] for side in range(2)}
                block = self._with_contacts(block, chunk, added, cell[pair], workspace)
        groups[HYDRO_PATCHES.name] = patch_rows(
            patch, *rows, cell, cell_count, float_type, torque_error
        )
        block = replace(block, groups={group.name: groups[group.name] for group in self.written})
        return block, np.column_stack(rows)[missed]

    def _patches(
        self, chunk: Chunk, listed: CandidateList, workspace: Workspace
    ) -> tuple[np.ndarray, np.ndarray, list[FaceList], np.ndarray]:
        """`HydroPair` and `HydroPatch` of every hydroelastic pair on the host, the lists of faces,
        and bool[pairs]: which overlap and have no surface."""
        model = self.device_model
        count = listed.count
        hydro = workspace.array("hydro_pair", count, pairs.HydroPair)
        arguments = [
            model.rows,
            model.margins,
            model.layout,
            chunk.cells,
            chunk.instances,
            self.uploaded.fields,
        ]
        workspace.launch(pairs.prepare_pairs, count, [*arguments, listed.pair, hydro])
        patch = workspace.array("hydro_patch", count, HydroPatch)
        faces = FaceList(workspace.array("hydro_polytope_face", 1, HydroFace), 0)
        if self.uploaded.has_polytope_pairs:
            faces = clip_polytopes(self.uploaded, hydro, count, self.needs_corners, workspace)
        workspace.launch(sum_faces, count, [hydro, faces.face, faces.count, patch])
        lists = [faces]
        missed = np.zeros(count, bool)
        if self.sampler is not None:
            sampled, marks = self.sampler.sample(hydro, count, patch, workspace)
            lists = [*lists, *sampled]
            missed = marks.astype(bool)
        if self.needs_corners:
            for face_list in lists:
                workspace.launch(move_faces, face_list.count, [hydro, face_list.face])
        return workspace.host(hydro, count), workspace.host(patch, count), lists, missed

    def _with_contacts(
        self,
        block: ContactBlock,
        chunk: Chunk,
        added: dict[str, np.ndarray],
        cell: np.ndarray,
        workspace: Workspace,
    ) -> ContactBlock:
        """The block with reduced contacts among its others, in canonical order. cell: of each,
        within the block."""
        for side in range(2):
            row = added[f"shape{side}"]
            point = added[f"point{side}"]
            added[f"offset{side}"] = self._offsets(chunk, cell, row, point, workspace)
        columns = {**block.columns}
        columns |= {column.name: column.filled(block.contact_count) for column in REDUCED_COLUMNS}
        count = len(block.cell_counts)
        cells = np.concatenate([np.repeat(np.arange(count), block.cell_counts), cell])
        keys = [np.concatenate([columns[name], added[name]]) for name in ("shape0", "shape1")]
        order = np.lexsort((keys[1], keys[0], cells))
        known = {column.name: column for column in (*RIGID_COLUMNS, FRICTION_SCALE)}
        added |= {name: known[name].filled(len(cell)) for name in columns if name not in added}
        joined = {
            name: np.concatenate([values, added[name].astype(values.dtype)])[order]
            for name, values in columns.items()
        }
        return replace(
            block, cell_counts=np.bincount(cells, minlength=count).astype(np.int64), columns=joined
        )

    def _offsets(
        self,
        chunk: Chunk,
        cell: np.ndarray,
        row: np.ndarray,
        point: np.ndarray,
        workspace: Workspace,
    ) -> np.ndarray:
        """float32[n, 3]: points in the frames of the shapes' bodies."""
        device = workspace.device
        count = len(cell)
        if not count:
            return np.zeros((0, 3), np.float32)
        offset = workspace.array("hydro_offset", count, wp.vec3f)
        cells, rows = (
            wp.array(values.astype(np.int32), dtype=int, device=device) for values in (cell, row)
        )
        points = wp.array(np.ascontiguousarray(point), dtype=Vec3, device=device)
        arguments = [self.device_model.rows, chunk.cells, cells, rows, points, offset]
        workspace.launch(find_offsets, count, arguments)
        return workspace.host(offset, count).copy()


def hydro_stage(
    device_model: DeviceModel, shapes: HydroShapes, options: ContactOptions
) -> HydroStage:
    """The hydroelastic stage of a model."""
    uploaded = upload_fields(device_model, shapes)
    sampler = None
    marked = shapes.stiffness > 0.0  # sampled, unless polytopes without a margin
    model = device_model.model
    has_margins = model.shapes.margin[marked].any() or (model.forced_margin > 0.0).any()
    if has_margins or (uploaded.polytope[marked] < 0).any():
        from collidecli.engine.hydroelastic.voxels import new_sampler

        sampler = new_sampler(device_model, shapes, options)
    one_bucket = wp.zeros(KIND_COUNT, dtype=wp.int32, device=device_model.device)
    return HydroStage(
        device_model, uploaded, options.writes_surface, options.hydro_reduce, sampler, one_bucket
    )


# Rows of /hydro_patches and /hydro_faces.


def patch_rows(
    patch: np.ndarray,
    row0: np.ndarray,
    row1: np.ndarray,
    cell: np.ndarray,
    cell_count: int,
    float_type: np.dtype,
    torque_error: np.ndarray | None,
) -> GroupRows:
    """The rows of /hydro_patches. patch: `HydroPatch` of every pair. cell: of every pair, within
    the block. torque_error: of the reduced contacts of every pair [N m]; None without them."""
    kept = np.flatnonzero(patch["face_count"] > 0)
    rows = patch[kept]
    columns = {name: rows[name] + 0.0 for name in ("area", "force", "torque", "depth")}
    columns |= {"shape0": row0[kept], "shape1": row1[kept], "face_count": rows["face_count"].copy()}
    columns["center"] = rows["center"].astype(float_type) + np.zeros(1, float_type)
    columns["torque_error"] = np.zeros(len(kept)) if torque_error is None else torque_error[kept]
    ordered = {column.name: columns[column.name] for column in HYDRO_PATCHES.columns}
    return GroupRows(np.bincount(cell[kept], minlength=cell_count).astype(np.int64), ordered)


def joined_faces(lists: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The existing faces of several lists ordered by pair, and their corners, each pair's in the
    order of its list."""
    faces = [face[face["count"] > 0] for face, _ in lists]
    face = np.concatenate(faces)
    corner_pair = np.repeat(face["pair"], face["count"])
    vertices = np.concatenate([vertex for _, vertex in lists])[
        np.argsort(corner_pair, kind="stable")
    ]
    return face[np.argsort(face["pair"], kind="stable")], vertices


def face_rows(
    patch: np.ndarray,
    face: np.ndarray,
    vertices: np.ndarray,
    cell: np.ndarray,
    cell_count: int,
    float_type: np.dtype,
) -> GroupRows:
    """The rows of /hydro_faces, from `HydroFace` in the world and their corners, both ordered by
    pair."""
    number = np.cumsum(patch["face_count"] > 0) - 1
    columns = {
        "patch": number[face["pair"]].astype(np.int64),
        "centroid": face["area_moment"].astype(float_type),
        "area": face["area"].copy(),
        "normal": face["normal"].astype(np.float32),
        "pressure": face["pressure"] / face["area"],
        "separation": face["separation"].copy(),
        "gradient": face["gradient"].copy(),
    }
    columns = {column.name: columns[column.name] for column in HYDRO_FACES.columns}
    columns = {
        name: values + np.zeros(1, values.dtype) for name, values in columns.items()
    }  # -0 becomes 0
    counts = np.bincount(cell[face["pair"]], minlength=cell_count).astype(np.int64)
    vertices = vertices.astype(float_type) + np.zeros(1, float_type)
    return GroupRows(counts, columns, {"vertices": (face["count"].astype(np.int64), vertices)})


# Reduced contacts of hydroelastic patches: a few points that have the patch's total force.
#
# Each face is cut into triangles around its centroid. The triangles of a patch are grouped by the
# direction of their normal, and by the quadrant around the group's centre of pressure. A group is
# one contact: at its centre of pressure, along its force, with stiffness times depth equal to the
# force. The forces of all contacts add up to that of the patch; their moment differs by the parts
# of the groups' moments along their own forces, which vanish for flat groups.

QUADRANTS = 4


def reduced_contacts(
    patch: np.ndarray, face: np.ndarray, vertex: np.ndarray, margin: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """The contacts of patches, ordered by patch, then by group: int64[n], number of the
    hydroelastic pair of each; columns of /rigid_contacts without shapes and offsets, with points in
    float64; and float64[pairs], torque error of each pair [N m].

    patch: `HydroPatch` of each pair. face: `HydroFace` of existing faces ordered by pair, in the
    world. vertex: their corners in the world, float64[total, 3]. margin: float64[pairs], sum of
    both shapes' margins [m]: the points are on the surfaces without margins.
    """
    of_pair, area, pressures, moment, depth, normal = _triangles(patch, face, vertex)
    bins = np.argmax(
        [dot(normal, axis) for axis in bin_normals()], axis=0
    )  # of equally near ones the first
    key = of_pair * BIN_COUNT + bins
    group = _numbered(key)
    center = _sums(group, moment) / _sums(group, pressures)[:, None]
    axes = bin_directions().reshape(BIN_COUNT, DIRECTION_COUNT, 3)[bins, 0]
    off = moment / pressures[:, None] - center[group]
    right = dot(off, axes) > 0.0
    up = dot(off, cross(bin_normals()[bins], axes)) > 0.0
    key = key * QUADRANTS + 2 * right + up
    group = _numbered(key)
    first = np.unique(key, return_index=True)[1]
    force = _sums(group, pressures[:, None] * normal)
    size = norm(force)
    pressure = _sums(group, pressures)
    local = _sums(group, moment) / pressure[:, None]
    distance = (_sums(group, depth) / pressure).astype(np.float32)
    pair = of_pair[first]
    torque = np.stack(
        [np.bincount(pair, values, len(patch)) for values in cross(local, force).T], axis=1
    )
    kept = (size > 0.0) & (distance < 0.0)
    point = (patch["center"][pair] + local)[kept]
    along = force[kept] / size[kept, None]
    pair = pair[kept]
    distance = distance[kept]
    between = distance.astype(np.float64)
    half = 0.5 * (between + margin[pair])[:, None] * along
    feature = (key[first] % (BIN_COUNT * QUADRANTS))[kept].astype(np.int32)
    columns = {
        "distance": distance,
        "normal": along.astype(np.float32) + np.float32(0.0),
        "point0": point - half,
        "point1": point + half,
        "feature0": feature,
        "feature1": feature,
        "kind": np.full(len(pair), KIND_PATCH, np.uint8),
        "stiffness": size[kept] / -between,
        "area": _sums(group, area)[kept],
    }
    return pair, columns, norm(torque - patch["torque"])


def _triangles(patch: np.ndarray, face: np.ndarray, vertex: np.ndarray) -> tuple[np.ndarray, ...]:
    """The triangles of all faces around their centroids that have pressure, relative to the patch's
    centre.

    Arrays of the pair, the area, the force, which is the integral of the pressure [N], the moment,
    of pressure times position, the depth, of the separation times pressure, and the normal of the
    face.
    """
    counts = face["count"].astype(np.int64)
    face_of = np.repeat(np.arange(len(face)), counts)
    start = np.cumsum(counts) - counts
    following = np.arange(len(face_of)) + 1
    last = start + counts - 1
    following[last] = start
    center = patch["center"][face["pair"]]
    corner = vertex - center[face_of]
    middle = (face["area_moment"] - center)[face_of]
    mean = (face["pressure"] / face["area"])[face_of]
    places = (middle, corner, corner[following])
    pressures = [
        np.maximum(mean + dot(face["pressure_slope"][face_of], place - middle), 0.0)
        for place in places
    ]
    area = 0.5 * norm(cross(places[1] - middle, places[2] - middle))
    total = pressures[0] + pressures[1] + pressures[2]
    middles = places[0] + places[1] + places[2]
    weighted = sum(
        (p[:, None] * (place + middles) for p, place in zip(pressures, places, strict=True)),
        start=0.0,
    )
    force = area * total / 3.0
    # The separation is proportional to the pressure within the rounding of one face, so its own
    # mean is used.
    depth = force * face["separation"][face_of]
    kept = np.flatnonzero(force > 0.0)
    moment = area[:, None] / 12.0 * weighted
    pair = face["pair"][face_of][kept].astype(np.int64)
    normal = face["normal"][face_of][kept]
    return pair, area[kept], force[kept], moment[kept], depth[kept], normal


def _numbered(key: np.ndarray) -> np.ndarray:
    """Index of each key among the distinct keys, ascending."""
    return np.unique(key, return_inverse=True)[1]


def _sums(group: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sums of each group's values, one after the other in their order."""
    count = int(group.max()) + 1 if len(group) else 0
    if values.ndim == 1:
        return np.bincount(group, values, count)
    return np.stack(
        [np.bincount(group, values[:, k], count) for k in range(values.shape[1])], axis=1
    )
