"""Contacts that a simulation logged, in the layouts that `collide export` writes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.array_files import npz_header, read_npz
from collidecli.storage.contact_sets.header import DISTANCE_RULES

PLAIN, LESS_MARGINS = DISTANCE_RULES


@dataclass(frozen=True)
class LogLayout:
    """The arrays of a layout: two indices into `names`, and of each contact its distance, normal
    and point.

    towards_first: the normal points to the first shape, and a distance is a depth. points: two, in
    frames of bodies.
    """

    shapes: tuple[str, str]
    names: str
    distance: str
    normal: str
    points: tuple[str, ...]
    margins: tuple[str, ...] = ()
    towards_first: bool = True
    distance_rule: str = LESS_MARGINS


_NEWTON = {
    name: (f"rigid_contact_{name}0", f"rigid_contact_{name}1")
    for name in ("shape", "point", "margin")
}
LOGS = {
    "mujoco": LogLayout(
        ("geom1", "geom2"), "geom_name", "dist", "frame", ("pos",), (), False, PLAIN
    ),
    "newton": LogLayout(
        *(
            _NEWTON["shape"],
            "shape_label",
            "",
            "rigid_contact_normal",
            _NEWTON["point"],
            _NEWTON["margin"],
            False,
        )
    ),
    "dart": LogLayout(("object1", "object2"), "object_name", "depth", "normal", ("position",)),
    "genesis": LogLayout(("geom_a", "geom_b"), "geom_name", "penetration", "normal", ("pos",)),
    "raisim": LogLayout(("object_a", "object_b"), "object_name", "depth", "normal", ("position",)),
}
"""Layouts by the names of `collide export --to`."""


@dataclass(frozen=True)
class Log:
    """N contacts of F frames and W worlds.

    time: float64[F] [s]. step: int64[F]. world: int64[W]. cell: int64[N], frame * W + world.
    shapes: int64[N, 2], of `names`. distance: float64[N], negative is overlap; None follows from
    the points. normal: float64[N, 3], from the first shape to the second. points: [N, 3], 1 or 2.
    margins: [N], 0 or 2. float_type: of the distance or the normal.
    """

    layout: LogLayout
    time: np.ndarray
    step: np.ndarray
    world: np.ndarray
    names: tuple[str, ...]
    cell: np.ndarray
    shapes: np.ndarray
    distance: np.ndarray | None
    normal: np.ndarray
    points: tuple[np.ndarray, ...]
    margins: tuple[np.ndarray, ...]
    float_type: str


class _Arrays:
    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, name: str, kinds: str, *shape: int | None) -> np.ndarray:
        """An array of a type and shape; None is any extent. Raises InputError."""
        header = npz_header(self.path, name)
        fits = len(header.shape) == len(shape) and all(
            want in (None, have) for want, have in zip(shape, header.shape, strict=True)
        )
        if header.dtype.kind not in kinds or not fits:
            fix = "write the arrays that collide export --to writes"
            raise InputError(f"is {header}", f"{self.path}: {name}", fix)
        return read_npz(self.path, name)

    def starts(self, name: str, count: int, end: int | None = None) -> np.ndarray:
        """Numbers of rows of `count` groups. Raises InputError for starts that are not ascending
        from 0 to `end`."""
        start = self(name, "iu", count + 1).astype(np.int64)
        if start[0] != 0 or (np.diff(start) < 0).any() or end not in (None, int(start[-1])):
            raise InputError(
                "is not ascending from 0 to the number of rows",
                f"{self.path}: {name}",
                "write it again",
            )
        return np.diff(start)


def read_log(path: str, kind: str) -> Log:
    """The contacts of a log. kind: of LOGS. Raises InputError: damaged, or other arrays than those
    of the layout."""
    layout = LOGS[kind]
    arrays = _Arrays(path)
    time, step, world = (
        arrays(name, kinds, None)
        for name, kinds in (("time", "f"), ("step", "iu"), ("world", "iu"))
    )
    if len(step) != len(time):
        raise InputError(
            f"has {len(step)} rows for {len(time)} times",
            f"{path}: step",
            "write a step of each frame",
        )
    counts = arrays.starts("cell_start", len(time) * len(world))
    count = int(counts.sum())
    first = arrays(layout.shapes[0], "iu", None)
    shapes = np.stack([first, arrays(layout.shapes[1], "iu", len(first))], axis=1).astype(np.int64)
    if kind == "dart":
        shapes = np.repeat(shapes, arrays.starts("contact_start", len(shapes), count), axis=0)
    names = tuple(map(str, arrays(layout.names, "U", None).tolist()))
    if len(shapes) != count or ((shapes < 0) | (shapes >= len(names))).any():
        what = f"are not {count} indices of {layout.names}, which has {len(names)}"
        raise InputError(
            what, f"{path}: {', '.join(layout.shapes)}", "write the shapes of each contact"
        )
    normal = arrays(layout.normal, "f", count, None)
    if normal.shape[1] not in (3, 9):
        raise InputError(
            f"has vectors of {normal.shape[1]} numbers",
            f"{path}: {layout.normal}",
            "write 3, or a frame",
        )
    distance = arrays(layout.distance, "f", count) if layout.distance else None
    sign = -1.0 if layout.towards_first else 1.0
    return Log(
        layout,
        time.astype(np.float64),
        step.astype(np.int64),
        world.astype(np.int64),
        names,
        np.repeat(np.arange(len(counts)), counts),
        shapes,
        None if distance is None else sign * distance.astype(np.float64),
        sign * normal[:, :3].astype(np.float64),
        tuple(arrays(name, "f", count, 3).astype(np.float64) for name in layout.points),
        tuple(arrays(name, "f", count).astype(np.float64) for name in layout.margins),
        (normal if distance is None else distance).dtype.name,
    )
