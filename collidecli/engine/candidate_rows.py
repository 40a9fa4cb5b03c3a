"""Candidates of the cells of a chunk on the host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.engine.candidates import CandidateList
from collidecli.engine.runtime.workspace import Workspace


@dataclass(frozen=True)
class CandidateRows:
    """The candidates of a chunk on the host, in canonical order.

    cell_counts: int64[cells]. shapes: int32[n, 2], rows of both shapes of each candidate.
    """

    cell_counts: np.ndarray
    shapes: np.ndarray

    @classmethod
    def of(cls, listed: CandidateList, cell_count: int, workspace: Workspace) -> CandidateRows:
        """Copies a list of candidates; `listed` is of a chunk of `cell_count` cells."""
        ends = workspace.host(listed.cell_end, cell_count).astype(np.int64)
        shapes = workspace.host(listed.row, listed.count).reshape(-1, 2).copy()
        return cls(np.diff(ends, prepend=0), shapes)

    @classmethod
    def consecutive(cls, parts: list[CandidateRows]) -> CandidateRows:
        """Of consecutive cells."""
        return cls(
            np.concatenate([part.cell_counts for part in parts]),
            np.concatenate([part.shapes for part in parts]),
        )

    @classmethod
    def of_cells_together(cls, parts: list[CandidateRows]) -> CandidateRows:
        """Of one cell, or of several without an order between the parts in a cell.

        parts: each of them has the candidates of all the cells, such as the hydroelastic ones and
        the others.
        """
        cells = [np.repeat(np.arange(len(p.cell_counts)), p.cell_counts) for p in parts]
        order = np.argsort(np.concatenate(cells), kind="stable")
        return cls(
            np.add.reduce([part.cell_counts for part in parts]),
            np.concatenate([part.shapes for part in parts])[order],
        )
