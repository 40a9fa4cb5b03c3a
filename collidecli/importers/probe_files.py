"""Reader of files of points or rays: CSV with a header, or an array of NumPy."""

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
    """Points or rays of a file.

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
    names = (*POINT, *DIRECTION) if of_rays else POINT
    content = _content(path, option)
    if path.lower().endswith(".npy"):
        values, body = _of_array(content, path, option, len(names))
    else:
        values, body = _of_csv(content, path, option, names)
    if not len(values):
        raise InputError("the file has no row", path, f"give a point or ray in each; see {option}")
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise InputError("a number is not finite", f"{path}: row {bad[0] + 1}", "correct the row")
    if not of_rays:
        return ProbeFile(values, None, body)
    return ProbeFile(values[:, :3].copy(), _unit(values[:, 3:], path), body)


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


def _of_array(
    content: bytes, path: str, option: str, width: int
) -> tuple[np.ndarray, tuple[str, ...]]:
    try:
        values = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"is no array of NumPy: {error}", path, f"see {option}") from error
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.shape[1] != width:
        shown = list(values.shape) if isinstance(values, np.ndarray) else "of several arrays"
        raise InputError(f"the array is {shown}", path, f"give one of shape [n, {width}]")
    if values.dtype.kind not in "fiu":
        raise InputError(f"the array has the type {values.dtype}", path, "give real numbers")
    return values.astype(np.float64), ("",) * len(values)


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
