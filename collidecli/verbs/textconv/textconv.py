"""The verb `textconv`: a contact set as lines of text, of which only those of changed contacts
change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial

import h5py
import numpy as np

from collidecli.analysis.summary import Touches, touches_of
from collidecli.escaping import printable_line
from collidecli.results.result import Result
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.storage.contact_sets.header import FORMAT
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.spans import BLOCK_ROWS
from collidecli.storage.formats import file_format
from collidecli.storage.h5_files import format_of, open_h5
from collidecli.storage.process_activity import reading, structure
from collidecli.verbs.textconv.groups import COLUMNS, counted, group_lines, lines_by_cell

MAX_SPANS = 8
"""Number of frame spans in the line of a pair."""
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that the products of different words differ."""


@dataclass(frozen=True)
class TextconvResult(Result, schema="collide.textconv/1"):
    """The lines of a file."""

    file: str
    lines: list[str]


@dataclass
class _Pair:
    """Totals of two shapes over all worlds. cell: that of the least distance. spans: first and last
    frames, sorted.

    middle: mean of the points midway between the surfaces. squares: sum of their squared distances
    from it [m²]. digest: sum of hashes of the rows, modulo 2**64.
    """

    contacts: int = 0
    touches: int = 0
    distance: float = np.inf
    cell: int = -1
    spans: list[list[int]] = field(default_factory=list)
    middle: tuple[float, ...] = (0.0, 0.0, 0.0)
    squares: float = 0.0
    digest: int = 0

    def add(
        self,
        frame: int,
        cell: int,
        contacts: int,
        distance: float,
        middle: list[float],
        squares: float,
        digest: int,
    ) -> None:
        """Adds the rows of a cell. middle, squares, digest: of them, as here."""
        total = self.contacts + contacts
        apart = [new - old for new, old in zip(middle, self.middle, strict=True)]
        self.squares += squares + sum(x * x for x in apart) * self.contacts * contacts / total
        self.middle = tuple(
            old + x * contacts / total for old, x in zip(self.middle, apart, strict=True)
        )
        self.digest = (self.digest + digest) % 2**64
        self.contacts += contacts
        self.touches += 1
        if distance < self.distance:
            self.distance = distance
            self.cell = cell
        if self.spans and frame <= self.spans[-1][1] + 1:
            self.spans[-1][1] = frame
        else:
            self.spans.append([frame, frame])


def contact_text(path: str, decimals: int = 6, cells: bool = True) -> Iterator[str]:
    """Lines of text: the file, its shapes by path, a line per pair, and, if `cells`, a line per
    pair and cell; then the other groups by shapes, and by shapes and cell.

    Shapes of a pair and pairs of a cell are sorted by path, independent of their order in the
    scene; a normal points away from the first shape. Lengths [m] are rounded to `decimals`. Another
    HDF5 file, such as a trajectory, gives a line per dataset. Raises InputError for a file that is
    not HDF5.
    """
    with reading("file", path):
        if file_format(path) != FORMAT:
            yield from _datasets(path)
            return
    with reading("contact set", path), ContactSet.open(path) as contacts:
        yield from _head(contacts)
        pairs: dict[tuple[str, str], _Pair] = {}
        for block in contacts.blocks(names=COLUMNS):
            touches = touches_of(block)
            pair_rows = list(_rows(touches, contacts))
            sums = _sums(
                block, touches, np.array([1.0 if a <= b else -1.0 for a, b, *_ in pair_rows])
            )
            for (a, b, number, count, distance), rows in zip(
                pair_rows, zip(*sums, strict=True), strict=True
            ):
                pair = pairs.setdefault((a, b) if a <= b else (b, a), _Pair())
                pair.add(number // contacts.world_count, number, count, distance, *rows)
        yield from ("", "pairs")
        yield from (_pair_line(key, pairs[key], contacts, decimals) for key in sorted(pairs))
        if cells:
            yield from lines_by_cell(contacts, _cell_lines(contacts, decimals))
        yield from group_lines(contacts, cells, partial(_numbers, decimals=decimals))


def textconv(path: str, decimals: int = 6, cells: bool = True) -> TextconvResult:
    """The lines of `contact_text`."""
    return TextconvResult(path, list(contact_text(path, decimals, cells)))


def _datasets(path: str) -> Iterator[str]:
    with open_h5(path) as file:
        yield f"{printable_line(format_of(file)) or 'HDF5'}"
        datasets: list[h5py.Dataset] = []
        with structure():
            file.visititems(
                lambda _, item: datasets.append(item) if isinstance(item, h5py.Dataset) else None
            )
        for dataset in sorted(datasets, key=lambda one: str(one.name)):
            name = printable_line(str(dataset.name))
            yield f"  {name}  {dataset.dtype.str} {dataset.shape}  sha256 {_digest(dataset)}"


def _digest(dataset: h5py.Dataset) -> str:
    """SHA-256 of the values as bytes, in blocks of rows; strings are joined by zero bytes."""
    digest = hashlib.sha256()
    if not dataset.shape:
        return hashlib.sha256(repr(dataset[()]).encode()).hexdigest()
    step = max(1, BLOCK_ROWS // max(1, int(np.prod(dataset.shape[1:]))))
    for first in range(0, len(dataset), step):
        with structure() if dataset.dtype.kind == "O" else nullcontext():
            rows = np.asarray(dataset[first : first + step])
        digest.update(
            b"\0".join(map(bytes, rows.ravel())) if rows.dtype.kind == "O" else rows.tobytes()
        )
    return digest.hexdigest()


def _shape_lines(contacts: ContactSet) -> list[str]:
    """A line for each shape: path, type, body, and sizes."""
    shapes = contacts.shapes
    lines = []
    for row in range(len(shapes)):
        body = int(shapes.body[row])
        on = (
            f"on {printable_line(contacts.body_path[body])}"
            if 0 <= body < len(contacts.body_path)
            else "static"
        )
        ending = f"  template {shapes.template[row]}" if int(shapes.template[row]) > 0 else ""
        sizes = f"margin {shapes.margin[row]:.6g}  gap {shapes.gap[row]:.6g}"
        lines.append(
            f"  {printable_line(shapes.path[row])}  {printable_line(shapes.type[row])}  {on} "
            f" {sizes}{ending}"
        )
    return lines


def _head(contacts: ContactSet) -> Iterator[str]:
    yield f"collide-contacts {contacts.version[0]}.{contacts.version[1]}"
    yield f"content {printable_line(contacts.content_sha256)}"
    yield f"scene {printable_line(contacts.scene)}"
    yield f"scene_sha256 {printable_line(contacts.scene_sha256)}"
    yield f"trajectory_sha256 {printable_line(contacts.trajectory_sha256)}"
    if contacts.engine is not None:
        yield from (
            f"engine {name} {printable_line(str(one))}"
            for name, one in contacts.engine.attributes.items()
        )
    yield f"columns {' '.join(map(printable_line, contacts.column_names))}"
    yield from (
        f"option {printable_line(name)} {json.dumps(value)}"
        for name, value in sorted(contacts.config.items())
    )
    count = contacts.frame_count
    unit = contacts.time_unit
    span = f", t = {contacts.time[0]:.9g} to {contacts.time[-1]:.9g} {unit}" if count else ""
    yield f"frames {count}{span}"
    yield f"worlds {contacts.world_count}"
    for one in contacts.episodes.listed(contacts.time) if contacts.episodes is not None else ():
        where = (
            f"world {one['world']}  first frame {one['first_frame']}  frames {one['frame_count']}"
        )
        yield f"episode {printable_line(one['name'])}  {where}"
    yield f"contacts {contacts.contact_count}"
    yield from (f"{name} {table.row_count}" for name, table in contacts.groups.items())
    yield from ("", "shapes")
    yield from sorted(_shape_lines(contacts))
    objects = contacts.particle_objects
    if len(objects):
        yield from ("", "particle objects")
        rows = zip(
            objects.path,
            objects.kind,
            objects.particle_count.tolist(),
            objects.template.tolist(),
            strict=True,
        )
        yield from sorted(
            f"  {printable_line(path)}  {printable_line(kind)}  {counted(count, 'particle')}"
            + (f"  template {template}" if template > 0 else "")
            for path, kind, count, template in rows
        )


def _rows(touches: Touches, contacts: ContactSet) -> Iterator[tuple[str, str, int, int, float]]:
    """(path, path, cell, contacts, distance) of each pair in each cell."""
    names = [printable_line(path) for path in contacts.shapes.path]
    columns = (
        touches.shape0,
        touches.shape1,
        touches.cell,
        touches.contact_count,
        touches.distance,
    )
    for a, b, cell, count, distance in zip(*(column.tolist() for column in columns), strict=True):
        one, other = (names[row] if 0 <= row < len(names) else f"shape#{row}" for row in (a, b))
        yield one, other, cell, count, distance


def _middles(block: ContactBlock) -> np.ndarray:
    """Points midway between the surfaces [R, 3] [m]."""
    return (block.columns["point0"].astype(np.float64) + block.columns["point1"]) / 2.0


def _finite_or_not() -> np.errstate:
    """For once: NumPy enters none twice. A set that `check` refuses may have infinite values: its
    lines show them."""
    return np.errstate(invalid="ignore", over="ignore")


@_finite_or_not()
def _sums(block: ContactBlock, touches: Touches, sign: np.ndarray) -> tuple[list, list, list]:
    """Of each touch the mean of the points midway between the surfaces, the sum of their squared
    distances from it, and the sum of hashes of its rows modulo 2**64, whatever their order. sign:
    -1 where the shapes are exchanged."""
    if not len(touches):
        return [], [], []
    columns = block.columns
    repeat = touches.contact_count
    middle = _middles(block)
    mean = touches.mean(middle)
    squares = np.add.reduceat(
        ((middle - np.repeat(mean, repeat, axis=0)) ** 2).sum(axis=1), touches.start
    )
    normal = columns["normal"] * np.repeat(sign, repeat)[:, None]
    numbers = (
        np.column_stack([np.repeat(touches.cell, repeat), columns["distance"], middle, normal])
        + 0.0
    )
    digest = np.zeros(len(numbers), np.uint64)
    for word in np.ascontiguousarray(numbers.T).view(np.uint64):
        digest = (digest ^ word) * _FACTOR
        digest ^= digest >> np.uint64(29)
    return mean.tolist(), squares.tolist(), np.add.reduceat(digest, touches.start).tolist()


def _pair_line(key: tuple[str, str], pair: _Pair, contacts: ContactSet, decimals: int) -> str:
    frame, world = divmod(pair.cell, contacts.world_count)
    place = f"frame {frame}" + (f" world {world}" if contacts.world_count > 1 else "")
    spans = " ".join(f"{a}-{b}" if b > a else f"{a}" for a, b in pair.spans[:MAX_SPANS])
    more = f" and {len(pair.spans) - MAX_SPANS} spans more" if len(pair.spans) > MAX_SPANS else ""
    least = _numbers(np.array([pair.distance]), decimals)
    spread = np.sqrt(pair.squares / pair.contacts)
    return (
        f"  {key[0]} | {key[1]}  {counted(pair.contacts, 'contact')} in"
        f" {counted(pair.touches, 'cell')}  least distance {least} in {place}  spread"
        f" {_numbers(np.array([spread]), decimals)}  rows {pair.digest:016x}  frames {spans}{more}"
    )


def _cell_lines(contacts: ContactSet, decimals: int) -> Iterator[tuple[int, str]]:
    for block in contacts.blocks(names=COLUMNS):
        touches = touches_of(block)
        with _finite_or_not():
            middle = touches.mean(_middles(block))
            normal = touches.mean(block.columns["normal"])
        for row, (a, b, cell, count, distance) in enumerate(_rows(touches, contacts)):
            turned = normal[row] if a <= b else -normal[row]
            first, second = (a, b) if a <= b else (b, a)
            least = _numbers(np.array([distance]), decimals)
            at = f"at {_numbers(middle[row], decimals)}  normal {_numbers(turned, decimals)}"
            yield cell, f"  {first} | {second}  {counted(count, 'contact')}  distance {least}  {at}"


def _numbers(values: np.ndarray, decimals: int) -> str:
    return " ".join(
        f"{value:.{decimals}f}"
        for value in (np.round(values.astype(np.float64), decimals) + 0.0).tolist()
    )
