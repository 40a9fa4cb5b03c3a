"""One table of the labels of several contact sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from collidecli.errors import InputError
from collidecli.results.outputs import check_ending
from collidecli.results.result import Progress
from collidecli.scene.expression_hints import expression_fix
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.flat_tables import Append, TableColumn, parquet_table, require_pyarrow
from collidecli.storage.process_activity import reading
from collidecli.verbs.label.contact_labels import AXES, ContactLabels, dense_arrays
from collidecli.verbs.label.files import EPISODE, FILE, column_words, parquet_columns, parquet_rows
from collidecli.verbs.label.label import label_result
from collidecli.verbs.label.tally import LabelTally
from collidecli.wording import plural

if TYPE_CHECKING:
    from collidecli.verbs.label.contact_labels import Missing
    from collidecli.verbs.label.label import LabelRequest, LabelResult

OF_EPISODE = ("job", "motion", "demo")
"""Columns of the episodes of a batch, in a table of their labels."""


class LabelTable:
    """Rows of the labels of several contact sets in one Parquet table, with a column of the file.

    request: its path is not used. append: of the table. done: number of sets.
    """

    def __init__(self, request: LabelRequest, append: Append) -> None:
        self._request = request
        self._append = append
        self.done = 0
        self._missing: Missing | None = None

    def add(
        self, path: str, episodes: Sequence[Mapping[str, str]], progress: Progress = None
    ) -> LabelResult:
        """Appends the rows of a set, once for each of its episodes. Raises InputError as `label`,
        without a row.

        episodes: values of the columns OF_EPISODE; of a table without them one without values.
        """
        missing: Missing = set()
        with reading("contact set", path), ContactSet.open(path) as contacts:
            labels = ContactLabels(contacts, self._request.options, missing)
            labels.check(progress)
            tally = LabelTally(labels)
            names = {name: [episode[name] for episode in episodes] for name in episodes[0]}
            words = column_words(tally.labels) | {FILE: (path,)} | names
            for block in parquet_rows(tally):
                zero = np.zeros(len(block["frame"]), np.int64)
                block = {EPISODE: zero, FILE: zero, **block}
                for number in range(len(episodes)):
                    self._append(block | dict.fromkeys(episodes[0], zero + number), words)
            self.done += 1
            self._missing = missing if self._missing is None else self._missing & missing
            return label_result(self._request, tally, whole=False)

    def check(self) -> None:
        """Raises InputError for a pattern that matches nothing in any set."""
        for option, pattern in sorted(self._missing or ()):
            what = f"'{pattern}' matches nothing in {plural(self.done, 'contact set')}"
            raise InputError(what, option, expression_fix(pattern, ()))


@contextmanager
def labels_table(request: LabelRequest, of_batch: bool) -> Iterator[LabelTable]:
    """The table of `request`, which is written at the end of the block if a set has been added.

    of_batch: it has the columns OF_EPISODE. Raises InputError and OutputError.
    """
    check_ending(request.output, (".parquet",), "a table of several contact sets")
    require_pyarrow("Parquet")
    names = (FILE, *(OF_EPISODE if of_batch else ()))
    columns = (
        *(TableColumn(name, np.dtype(np.int32), words=()) for name in names),
        *parquet_columns(dense_arrays(request.options), dict.fromkeys(AXES, ()), True),
    )
    with AtomicOutput(request.output, request.force) as output:
        with parquet_table(output, columns) as append:
            table = LabelTable(request, append)
            yield table
            table.check()
        if table.done:
            output.commit()
