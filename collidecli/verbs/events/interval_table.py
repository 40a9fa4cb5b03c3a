"""One table of the intervals of several contact sets, with a column of the file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from collidecli.analysis.event_stream import EventStream
from collidecli.analysis.pair_selection import EventOptions
from collidecli.results.result import Progress
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.flat_tables import Append, TableColumn
from collidecli.storage.process_activity import reading
from collidecli.verbs.events.events import EPISODE, FILE, WORLD, events

if TYPE_CHECKING:
    from collidecli.verbs.events.events import EventsRequest, EventsResult


class IntervalTable:
    """Columns for the intervals of all files; a file that cannot be used has no rows.

    columns: the file, then those of one file with the words of all, with EPISODE if any file has
    episodes; empty if no file can be used.
    """

    def __init__(self, files: Sequence[str], options: EventOptions) -> None:
        self._file_row = {file: row for row, file in enumerate(files)}
        self._word_row: dict[str, dict[str, int]] = {}
        by_name: dict[str, TableColumn] = {}
        for file in files:
            # The error of a file that cannot be used is reported where its intervals are computed.
            with (
                suppress(Exception),
                reading("contact set", file),
                ContactSet.open(file) as contacts,
            ):
                stream = EventStream(contacts, options)
                for column in stream.table():
                    by_name.setdefault(column.name, column)
                    rows = self._word_row.setdefault(column.name, {})
                    for word in column.words or ():
                        rows.setdefault(word, len(rows))
        names = [FILE, WORLD, EPISODE] if EPISODE in by_name else [FILE, WORLD]
        if by_name:
            by_name[FILE] = TableColumn(FILE, np.dtype(np.int64), words=tuple(files))
            self._word_row[FILE] = self._file_row
        self.columns = tuple(
            replace(by_name[name], words=tuple(self._word_row[name]))
            if by_name[name].words is not None
            else by_name[name]
            for name in (dict.fromkeys([*names, *by_name]) if by_name else ())
        )

    def events(
        self, request: EventsRequest, tables: Sequence[Append], progress: Progress = None
    ) -> EventsResult:
        """The result of `events` for one of the files; its rows are appended to the tables when all
        are known."""
        kept: list[dict[str, np.ndarray]] = []

        def keep(rows: dict[str, np.ndarray], stream: EventStream) -> None:
            # Texts are indices into the words of all files. Without episodes their name is "".
            number = len(rows[WORLD])
            joined = {
                EPISODE: np.zeros(number, np.int64),
                **rows,
                FILE: np.full(number, self._file_row[request.path]),
            }
            for column in stream.table():
                if column.words is not None:
                    row_of = self._word_row[column.name]
                    joined[column.name] = np.array(
                        [row_of[word] for word in column.words], np.int64
                    )[rows[column.name]]
            kept.append(joined)

        result = events(request, progress, keep if tables else None)
        for rows in kept:
            for append in tables:
                append(rows)
        return result
