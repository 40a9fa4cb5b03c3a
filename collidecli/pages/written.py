"""Lines about a written contact set that several verbs print."""

from __future__ import annotations

from collidecli.pages.quantities import ResultDict
from collidecli.scene.contact_columns import group_words
from collidecli.wording import count, memory, plural


def group_lines(result: ResultDict) -> list[tuple[str, str]]:
    """A line for each group of contacts with its number of rows."""
    return [(group_words(name), count(rows)) for name, rows in result["group_rows"].items()]


def contacts_of_cells(result: ResultDict) -> str:
    """The numbers of contacts, frames and worlds as one text."""
    return (
        f"{count(result['contacts'])} in {plural(result['frames'], 'frame')} of"
        f" {plural(result['worlds'], 'world')}"
    )


def written_line(result: ResultDict) -> tuple[str, str]:
    """The line with the path and size of a written file."""
    return "written", f"{result['output']}, {memory(result['bytes'])}"
