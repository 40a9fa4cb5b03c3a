"""The Python function `label`, and its result."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from collidecli.analysis.frame_texts import frames_text
from collidecli.errors import InputError
from collidecli.html_tables import html_table
from collidecli.python.contact_set import Contacts, ContactSet
from collidecli.python.contacts import set_of
from collidecli.results.result import PathLike
from collidecli.scene.arguments import checked_metres, python_call
from collidecli.scene.patterns import check_two_patterns, listed
from collidecli.storage.contact_sets import reader
from collidecli.storage.process_activity import reading
from collidecli.verbs.label.contact_labels import DENSE, ContactLabels, LabelOptions
from collidecli.verbs.label.label import axis_sizes

if TYPE_CHECKING:
    import pandas
    import xarray

    from collidecli.exporters.dense_columns import NamedColumns


@python_call
def label(
    contacts: ContactSet | Contacts | PathLike,
    *,
    sensors: str | Sequence[str] = (),
    partners: str | Sequence[str] = (),
    between: str | Sequence[str] = (),
    by: Literal["shapes", "bodies"] = "bodies",
    enter: float | str = 0.0,
    leave: float | str | None = None,
    min_frames: int = 1,
    slip: bool = False,
    nominal_stiffness: float | None = None,
    worlds: Sequence[int] = (),
    frames: str | int | slice = "",
) -> Labels:
    """Which bodies touch which in each frame of each world of a contact set, as arrays.

    Args:
        contacts: a contact set, its path, or contacts in memory.
        sensors, partners: patterns, a sequence or a text with commas; () is every moving item, and
            every item.
        between: both in one, "hand*,cup*" or two patterns.
        by: "bodies", with static shapes and particle objects, or "shapes".
        enter: a label begins at a distance of at most this, in metres or as a text such as "2mm".
            leave: it lasts while the distance is at most this; None is `enter`. min_frames: shorter
            pauses are filled, then shorter labels left out.
        slip: read the contacts' column of that name, see `collide run --columns slip`.
        nominal_stiffness: adds nominal forces, this times the depth of each pair of shapes [N/m].
            Poses determine no forces, see docs/reference/sensors.md.
        worlds: numbers; () is all. frames: "A:B:S", a slice or a number.
    Returns:
        `Labels`.
    Raises:
        InputError: as `collide label` does.
    """
    limits = (
        checked_metres(enter, "enter"),
        None if leave is None else checked_metres(leave, "leave"),
    )
    sensors = listed(sensors)
    partners = listed(partners)
    if between := listed(between):
        check_two_patterns(between, "between")
        if sensors or partners:
            what = "is in place of sensors and partners, and one of them is given too"
            raise InputError(what, "between", "give patterns of one of both kinds")
        sensors = between[:1]
        partners = between[1:]
    if isinstance(worlds, (str, int)) or not all(
        isinstance(world, (int, np.integer)) for world in worlds
    ):
        raise InputError(
            f"{worlds!r} is no sequence of numbers of worlds", "worlds", "give one, such as [0]"
        )
    options = LabelOptions(
        sensors,
        partners,
        by,
        *limits,
        min_frames,
        slip,
        nominal_stiffness,
        worlds,
        frames_text(frames),
    )
    contacts = set_of(contacts)
    if isinstance(contacts, ContactSet):
        return labels_in_memory(contacts, options)
    with reading("contact set", os.fspath(contacts)), ContactSet.open(contacts) as opened:
        return labels_in_memory(opened, options)


@dataclass(frozen=True)
class Labels:
    """Labels of contacts as arrays; F frames, W worlds, S sensors, P partners.

    touch: bool[F, W, S, P]. distance: float32[F, W, S, P], least distance of the contacts [m],
    negative is penetration, infinite without a contact in the set. slip: float32[F, W, S, P] [m/s],
    greatest of the contacts, NaN without one; None without slip=True. sensors, partners: names.
    frame, step: int64[F], numbers in the set and of the recorder. time: float64[F] [s], or numbers
    of frames for an array of poses without times. world: int64[W]. recorded: bool[F, W], false
    after the end of a demonstration. present: bool[W, S, P], false where the world's scene does not
    have both; there touch is false and distance NaN. nominal_force: float32[F, W, S, P, 3], on the
    sensor, in the world [N], 0 without penetration, NaN for particles and where `present` is false;
    pressure_centre: float64[F, W, S, P, 3], its centre of pressure in the world [m], NaN without a
    force; both None without nominal_stiffness. `len` is the number of labels of recorded cells.
    """

    touch: np.ndarray
    distance: np.ndarray
    slip: np.ndarray | None
    sensors: tuple[str, ...]
    partners: tuple[str, ...]
    frame: np.ndarray
    step: np.ndarray
    time: np.ndarray
    world: np.ndarray
    recorded: np.ndarray
    present: np.ndarray
    nominal_force: np.ndarray | None = None
    pressure_centre: np.ndarray | None = None

    def __repr__(self) -> str:
        return (
            "<Labels"
            f" {' '.join(f'{name}={size}' for name, size in axis_sizes(self.touch.shape).items())}>"
        )

    def __len__(self) -> int:
        return int(self._rows.sum())

    def _repr_html_(self) -> str:
        return html_table(
            axis_sizes(self.touch.shape)
            | {
                "labels": len(self),
                "touching": int(self.touch[self._rows].sum()),
            }
        )

    @property
    def _rows(self) -> np.ndarray:
        """bool[F, W, S, P]: recorded cells of two different items that are present."""
        sensors, partners = (np.array(names, object) for names in (self.sensors, self.partners))
        return self.recorded[:, :, None, None] & self.present & (sensors[:, None] != partners)

    def _axes(self, **of_frames: np.ndarray) -> list[dict[str, np.ndarray]]:
        named = {"sensor": self.sensors, "partner": self.partners}
        items = [{name: np.array(paths, object)} for name, paths in named.items()]
        return [
            {"frame": self.frame, **of_frames, "time": self.time},
            {"world": self.world},
            *items,
        ]

    def to_pandas(self) -> pandas.DataFrame:
        """The rows and columns of `label -o x.parquet`, `len` of them. Raises InputError without
        pandas."""
        from collidecli.exporters.dense_columns import dense_rows

        arrays = {name: getattr(self, name) for name in DENSE if getattr(self, name) is not None}
        return dense_rows(self._axes(step=self.step), arrays, self._rows).to_pandas()

    def to_xarray(self) -> xarray.Dataset:
        """The arrays over the dimensions frame, world, sensor and partner, with step and time of
        the frames.

        Raises InputError without xarray.
        """
        from collidecli.exporters.dense_columns import dense_dataset

        arrays = {name: getattr(self, name) for name in DENSE if getattr(self, name) is not None}
        dataset = dense_dataset(
            ("frame", "world", "sensor", "partner"),
            self._axes(step=self.step),
            arrays,
            {name: array.unit for name, array in DENSE.items() if array.unit},
        )
        return dataset.assign(
            recorded=(("frame", "world"), self.recorded),
            present=(("world", "sensor", "partner"), self.present),
        )

    def events(self) -> NamedColumns:
        """A row for each run of frames with a label: world, sensor, partner, and columns as of
        `Clearances.events`."""
        from collidecli.exporters.dense_columns import dense_intervals

        touches = self.touch & self._rows
        return dense_intervals(self._axes(), touches, self.recorded, self.distance)


def labels_in_memory(contacts: reader.ContactSet, options: LabelOptions) -> Labels:
    """The labels of a contact set as arrays. Raises InputError for options that do not fit it."""
    labels = ContactLabels(contacts, options)
    for note in labels.notes:
        warnings.warn(note, stacklevel=4)
    blocks = list(labels.blocks())

    def whole(name: str) -> Any:
        if name not in labels.dense:
            return None
        array = labels.dense[name]
        empty = np.zeros((0, *labels.shape[1:], *array.element), array.dtype)
        return np.concatenate([empty, *(getattr(block, name) for block in blocks)])

    number = labels.frames.number
    return Labels(
        whole("touch"),
        whole("distance"),
        whole("slip"),
        tuple(labels.sensors),
        tuple(labels.partners),
        number,
        contacts.step[number],
        labels.frames.time,
        labels.worlds,
        labels.recorded,
        labels.present,
        whole("nominal_force"),
        whole("pressure_centre"),
    )
