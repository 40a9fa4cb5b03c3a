"""CSV as RFC 4180 has it, with a head line; lines end with LF."""

from __future__ import annotations

import numpy as np

from collidecli.files.atomic_output import AtomicOutput
from collidecli.files.exports.rows import FlatTable, RowColumn

BLOCK_LINES = 32768


def write_csv(output: AtomicOutput, table: FlatTable) -> None:
    """UTF-8. Numbers are the shortest that read back as the same float32 or float64. Raises OutputError."""
    output.write((",".join(_quoted(column.name) for column in table.columns) + "\n").encode())
    words = {column.name: np.array([_quoted(word) for word in column.words]) for column in table.columns}
    for block in table.blocks():
        count = len(next(iter(block.values())))
        for first in range(0, count, BLOCK_LINES):
            rows = slice(first, first + BLOCK_LINES)
            columns = [_texts(column, block[column.name][rows], words[column.name]) for column in table.columns]
            lines = map(",".join, zip(*columns, strict=True))
            output.write(("\n".join(lines) + "\n").encode())
            output.check()
    output.check()


def _texts(column: RowColumn, values: np.ndarray, words: np.ndarray) -> list[str]:
    if column.words:
        return words[values].tolist()
    if column.dtype.kind == "f":
        return values.astype(column.dtype).astype("U32").tolist()
    return list(map(str, values.tolist()))


def _quoted(text: str) -> str:
    if any(letter in text for letter in ',"\n\r') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text
