"""The Python function `clearance`, and its result."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from collidecli.analysis.cell_poses import body_poses
from collidecli.analysis.contact_motion import distance_gradient, is_differentiable
from collidecli.engine.device_model import bounding_radius
from collidecli.engine.pipeline_build import find_device
from collidecli.exporters.dense_columns import (
    NamedColumns,
    dense_dataset,
    dense_intervals,
    dense_rows,
)
from collidecli.html_tables import html_table
from collidecli.motions.clearance import ClearanceBlock, MeasuredMotion, shape_poses
from collidecli.motions.scenes import scene_in_motion
from collidecli.python.option_parameters import (
    SCENE_PARAMETERS,
    option_parameters,
    with_options,
)
from collidecli.python.progress import ShowProgress, shown_progress
from collidecli.python.scenes import MotionSource, SceneSource, source_request
from collidecli.results.result import Progress
from collidecli.scene.arguments import checked_metres, python_call
from collidecli.scene.options import ContactOptions, EngineOptions
from collidecli.scene.patterns import listed
from collidecli.verbs.clearance.clearance import (
    ClearanceRequest,
    check_clearance,
    element_arrays,
)

if TYPE_CHECKING:
    import pandas
    import xarray


@dataclass(frozen=True, repr=False)
class Clearances:
    """Least distances of a model in motion as NumPy arrays: F frames, W worlds, I items.

    distance: float64[F, W, I], signed as that of a contact, less margins [m]; NaN where a world
    does not have the item. normal, point0, point1: float64[F, W, I, 3], unit from shape0 to shape1
    and the witness points on both surfaces without margins, in world [m]. error: float64[F, W, I],
    bound of the distance's error [m], infinite for depths that are not certified. shape0, shape1:
    int32[F, W, I], rows of the nearest pair's shapes; -1 for none. items: pairs of names of shapes,
    or names of bodies, or the two patterns. time: float64[F] [s], or numbers of frames for an array
    of poses without times. shape_path: of the model's shapes. `len` is the number of distances.

    A particle object is behind the shapes in shape_path, and shape1 of its pairs with shapes.
    indices: int32[F, W, I, 3], rows of the particles of its nearest vertex, edge or face, -1 for
    none. barycentric: float64[F, W, I, 3], their weights. Both are None where no pair has an
    object. indices0, barycentric0: of the first of two objects; None where no pair has two.

    With gradient=True, else None: gradient0, gradient1: float64[F, W, I, 6], derivatives of the
    distance of the nearest pair over the positions of both bodies [1], then over their rotation
    vectors in world about their origins [m]; of a static shape as of a body at the origin.
    gradient_exact: bool[F, W, I], whether that distance is differentiable. Pairs with particle
    objects have NaN and False.
    """

    distance: np.ndarray
    normal: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    error: np.ndarray
    shape0: np.ndarray
    shape1: np.ndarray
    items: tuple[tuple[str, str], ...] | tuple[str, ...]
    time: np.ndarray
    shape_path: tuple[str, ...]
    gradient0: np.ndarray | None = None
    gradient1: np.ndarray | None = None
    gradient_exact: np.ndarray | None = None
    indices: np.ndarray | None = None
    barycentric: np.ndarray | None = None
    indices0: np.ndarray | None = None
    barycentric0: np.ndarray | None = None

    def __repr__(self) -> str:
        frames, worlds, items = self.distance.shape
        return f"<Clearances frames={frames} worlds={worlds} items={items}>"

    def __len__(self) -> int:
        return int((self.shape0 >= 0).sum())

    def _repr_html_(self) -> str:
        sizes: dict[str, object] = dict(
            zip(("frames", "worlds", "items"), self.distance.shape, strict=True)
        )
        least = f"{np.nanmin(self.distance):.6g} m" if len(self) else "none"
        return html_table(sizes | {"distances": len(self), "least distance": least})

    @property
    def _of_elements(self) -> tuple[str, ...]:
        """Names of the arrays of particle objects that there are."""
        names = ("indices", "barycentric", "indices0", "barycentric0")
        return tuple(name for name in names if getattr(self, name) is not None)

    def _axes(self, names: Sequence[str]) -> list[dict[str, np.ndarray]]:
        """names: of the columns of an item's paths."""
        frames, worlds, count = self.distance.shape
        paths = np.array(self.items, object).reshape(count, -1).T
        cells = [{"frame": np.arange(frames), "time": self.time}, {"world": np.arange(worlds)}]
        return [*cells, dict(zip(names, paths, strict=False))]

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each distance, `len` in all, with the columns of `clearance -o x.parquet`
        without the step.

        Raises InputError without pandas.
        """
        paths = np.array(self.shape_path, object)
        by_body = self.items and isinstance(self.items[0], str)
        arrays = {"shape0": paths[self.shape0], "shape1": paths[self.shape1]}
        names = ("distance", "error", "normal", "point0", "point1", *self._of_elements)
        arrays |= {name: getattr(self, name) for name in names}
        return dense_rows(
            self._axes(["body"] if by_body else []), arrays, self.shape0 >= 0
        ).to_pandas()

    def to_xarray(self) -> xarray.Dataset:
        """The arrays over the dimensions frame, world and item; `item_shape0` and `item_shape1`, or
        `body`, name the items.

        Raises InputError without xarray.
        """
        names = ("distance", "error", "normal", "point0", "point1", "shape0", "shape1")
        names = (*names, *self._of_elements)
        arrays = {name: getattr(self, name) for name in names}
        units: dict[str, str] = dict.fromkeys(("distance", "error", "point0", "point1"), "m")
        by_body = self.items and isinstance(self.items[0], str)
        axes = self._axes(["body"] if by_body else ["item_shape0", "item_shape1"])
        return dense_dataset(("frame", "world", "item"), axes, arrays, units)

    @python_call
    def events(self, threshold: float | str = 0.0) -> NamedColumns:
        """A row for each run of frames in which an item is at most this far, in metres or as a text
        such as "2mm".

        Columns, as of `ContactSet.events`: world, shape0 and shape1 or body, begin_frame,
        last_frame, begin_time, end_time (NaN if the motion ends within the run), begin_known,
        end_known, touching_frames, least_distance [m], deepest_frame, deepest_time.
        """
        near = self.distance <= checked_metres(threshold, "threshold")
        by_body = self.items and isinstance(self.items[0], str)
        axes = self._axes(["body"] if by_body else ["shape0", "shape1"])
        return dense_intervals(axes, near, distance=self.distance)


OPTIONS = {
    **SCENE_PARAMETERS,
    **option_parameters(ContactOptions, names=["margin", "static_pairs"]),
    **option_parameters(EngineOptions, names=["device", "threads", "cache_dir", "cache_limit"]),
}


@python_call
@with_options(OPTIONS)
def clearance(
    scene: SceneSource,
    recording: MotionSource = None,
    *,
    by: Literal["pair", "body", "all", ""] = "",
    between: str | Sequence[str] = (),
    top: int = 0,
    gradient: bool = False,
    progress: ShowProgress = False,
    **options: Any,
) -> Clearances:
    """The least distances of a scene's shapes and particle objects in every frame of a motion,
    without a cutoff.

    Args:
        scene, recording: as of `run`, scene files or a model.
        by: "pair", each pair of shapes or particle objects that may touch; "body", each body,
            static shape and particle object; "all", all pairs together; "" is "all" with `between`,
            else "pair".
        between: two patterns of paths of shapes, particle objects or bodies, a sequence or a text
            with commas; only pairs with one of each are measured. The twos of several selections
            one after another: with by="all" each has a distance.
        top: only the pairs that come nearest in the whole motion; 0 is all.
        gradient: add the derivatives of the distances over poses; takes twelve more distances for
            each. Pairs with particle objects have none.
        progress: show a bar, or a function of the frames done and of all.
        options: of `collide clearance` for scenes and recordings, with underscores; margin, in
            place of every shape's own, in metres or as a text such as "2mm".
    Returns:
        `Clearances`.
    Raises:
        InputError: as `collide clearance` does. Its warnings are `UserWarning`, those about what is
            measured `RuntimeWarning`.
    """
    request = source_request(
        ClearanceRequest, scene, recording, options, by=by, between=listed(between), top=top
    )
    check_clearance(request)
    loaded, motion = scene_in_motion(request)
    with closing(motion):
        model = request.contact.apply(loaded.model)
        device = find_device(request.engine.device)
        measured = MeasuredMotion(
            request.kind, request.between, request.top, request.engine, model, motion, device
        )
        for note in (*loaded.warnings, *motion.warnings):
            warnings.warn(note, stacklevel=3)
        notes = measured.notes
        if gradient and measured.has_objects:
            notes = (*notes, "pairs with particle objects have no gradients")
        for note in notes:
            warnings.warn(note, RuntimeWarning, stacklevel=3)
        with shown_progress(progress, "measuring") as advance:
            return _all_blocks(measured, request.kind, gradient, motion.time, advance)


def _all_blocks(
    measured: MeasuredMotion,
    kind: str,
    gradient: bool,
    time: np.ndarray,
    progress: Progress,
) -> Clearances:
    """The clearances of all blocks of a motion, measured one after another."""
    names = ("distance", "normal", "point0", "point1", "error", "pair", *element_arrays(measured))
    blocks = []
    for block in measured.blocks():
        arrays = {name: getattr(block, name) for name in names}
        blocks.append(arrays | (_gradients(measured, block) if gradient else {}))
        if progress is not None:
            progress(block.first + len(block.pair), len(time))
    arrays = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    pair = arrays.pop("pair")
    rows = measured.items.pair
    shape0, shape1 = (
        np.where(pair < 0, -1, rows[np.maximum(pair, 0), k]).astype(np.int32) for k in (0, 1)
    )
    first = measured.items.first
    second = measured.items.second
    items = first if kind == "body" else tuple(zip(first, second, strict=True))
    return Clearances(
        **arrays, shape0=shape0, shape1=shape1, items=items, time=time, shape_path=measured.paths
    )


def _gradients(measured: MeasuredMotion, block: ClearanceBlock) -> dict[str, np.ndarray]:
    """The gradients of `Clearances` in a block of frames."""
    model = measured.model
    is_object = measured.items.pair[:, 1] >= len(model.shapes)
    at = np.nonzero((block.pair >= 0) & ~is_object[block.pair])
    frame, world, _ = at
    poses = measured.motion.read(range(block.first, block.first + len(block.pair)))
    pair = measured.items.pair[block.pair[at]]
    placed = shape_poses(model, poses)
    moved = [placed[frame, world, rows] for rows in pair.T]
    gradients: dict[str, np.ndarray] = {"gradient_exact": np.zeros(block.pair.shape, bool)}
    gradient = origin = np.zeros((0, 6))
    for side, point in enumerate((block.point0, block.point1)):
        origin = body_poses(
            model, poses, frame, world, model.shapes.body[pair[:, side]].astype(np.int64)
        )[:, :3]
        gradient = distance_gradient(side, block.normal[at], point[at], origin)
        gradients[f"gradient{side}"] = np.full((*block.pair.shape, 6), np.nan)
        gradients[f"gradient{side}"][at] = gradient
    size = (
        bounding_radius(model.shapes.type, model.shapes.size)[pair].min(axis=1).astype(np.float64)
    )

    def of_moved(shape1: np.ndarray) -> np.ndarray:
        return measured.distances.distances(pair, np.stack([moved[0], shape1], axis=1))

    gradients["gradient_exact"][at] = is_differentiable(
        of_moved, gradient, origin, moved[1], block.point1[at], size
    )
    return gradients
