"""Points or rays of a file, CSV with a header or an array of NumPy, or of an array in memory."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.storage.regular_files import open_input

POINT = ("x", "y", "z")
DIRECTION = ("dx", "dy", "dz")
BODY = "body"


@dataclass(frozen=True)
class ProbeFile:
    """Points or rays of a file or an array.

    point: float64[n, 3] [m]. along: float64[n, 3], unit directions of rays; None of points. body:
    path of the body in whose frame each is, "" for the world.
    """

    point: np.ndarray
    along: np.ndarray | None
    body: tuple[str, ...]


def read_probe_file(path: str, of_rays: bool) -> ProbeFile:
    """The points or rays of a file.

    A CSV file has a header with the columns x, y, z, of rays also dx, dy, dz, and as it likes body.
    An array of NumPy (.npy) has the shape [n, 3], of rays [n, 6], in the frame of the world.
    Raises InputError for another file, for numbers that are not finite and for a direction of
    length 0, with the row.
    """
    option = "--rays" if of_rays else "--points"
    content = _content(path, option)
    if path.lower().endswith(".npy"):
        values = _checked_array(_loaded(content, path, option), path, of_rays)
        return _probe_rows(values, ("",) * len(values), path, of_rays)
    names = (*POINT, *DIRECTION) if of_rays else POINT
    values, body = _of_csv(content, path, option, names)
    return _probe_rows(values, body, path, of_rays)


def probe_array(values: np.ndarray, of_rays: bool) -> ProbeFile:
    """The points or rays of an array in the frame of the world, as of a file of NumPy.

    values: real[n, 3], of rays [n, 6] [m], or what NumPy makes one of. Raises InputError as
    `read_probe_file`.
    """
    where = "rays" if of_rays else "points"
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        what = "is no array of real numbers in host memory, with rows of one length"
        raise InputError(what, where, "give one of NumPy") from error
    checked = _checked_array(array, where, of_rays)
    return _probe_rows(checked, ("",) * len(checked), where, of_rays)


def _probe_rows(values: np.ndarray, body: tuple[str, ...], where: str, of_rays: bool) -> ProbeFile:
    """The points or rays of rows of numbers. where: their file or argument. Raises InputError."""
    if not len(values):
        raise InputError("there is no row", where, "give a point or ray in each row")
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise InputError("a number is not finite", f"{where}: row {bad[0] + 1}", "correct the row")
    if not of_rays:
        return ProbeFile(values, None, body)
    return ProbeFile(values[:, :3].copy(), _unit(values[:, 3:], where), body)


def _unit(along: np.ndarray, path: str) -> np.ndarray:
    """float64[n, 3]: directions of unit length, also of vectors whose squares overflow."""
    largest = np.abs(along).max(axis=1, keepdims=True)
    zero = np.flatnonzero(largest == 0.0)
    if len(zero):
        what = "the direction of a ray is zero"
        raise InputError(what, f"{path}: row {zero[0] + 1}", "give dx, dy, dz other than 0, 0, 0")
    scaled = along / largest
    return scaled / np.sqrt((scaled * scaled).sum(axis=1, keepdims=True))


def _content(path: str, option: str) -> bytes:
    try:
        with open_input(path) as file:
            return file.read()
    except OSError as error:
        reason = (error.strerror or os.fspath(path)).lower()
        raise InputError(f"cannot be read: {reason}", path, f"see {option}") from error


def _loaded(content: bytes, path: str, option: str) -> object:
    try:
        return np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"is no array of NumPy: {error}", path, f"see {option}") from error


def _checked_array(values: object, where: str, of_rays: bool) -> np.ndarray:
    """float64[n, 3], of rays [n, 6]; a copy. Raises InputError for another shape or type."""
    width = len(POINT) + len(DIRECTION) if of_rays else len(POINT)
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.shape[1] != width:
        shown = list(values.shape) if isinstance(values, np.ndarray) else "of several arrays"
        raise InputError(f"the array is {shown}", where, f"give one of shape [n, {width}]")
    if values.dtype.kind not in "fiu":
        raise InputError(f"the array has the type {values.dtype}", where, "give real numbers")
    return values.astype(np.float64)


def _of_csv(
    content: bytes, path: str, option: str, names: tuple[str, ...]
) -> tuple[np.ndarray, tuple[str, ...]]:
    fix = f"give a header with {','.join(names)} and, for points fixed in bodies, {BODY}"
    try:
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"is no CSV text: {error}", path, f"see {option}") from error
    rows = [[cell.strip() for cell in row] for row in rows]
    header = rows[0] if rows else []
    missing = [name for name in names if name not in header]
    unknown = [name for name in header if name not in (*names, BODY)]
    if missing or unknown or len(set(header)) != len(header):
        what = f"the header is '{','.join(header)}'"
        raise InputError(what, f"{path}: line 1", fix)
    order = [header.index(name) for name in names]
    values = []
    body = []
    for number, row in enumerate(rows[1:], 2):
        if not any(row):
            continue
        where = f"{path}: line {number}"
        if len(row) != len(header):
            raise InputError(f"the line has {len(row)} of {len(header)} columns", where, fix)
        try:
            values.append([float(row[column]) for column in order])
        except ValueError:
            raise InputError(f"'{','.join(row)}' has no number", where, fix) from None
        body.append(row[header.index(BODY)] if BODY in header else "")
    return np.array(values, np.float64).reshape(-1, len(names)), tuple(body)
