"""Tables that a notebook shows, as HTML with every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from collidecli.escaping import printable
from collidecli.wording import count

MOST_HTML_ROWS = 20


def html_table(rows: Mapping[str, object]) -> str:
    """The table that a notebook shows: names and values, every text escaped."""
    from html import escape  # most runs need no page

    def shown(value: object) -> str:
        if isinstance(value, int) and not isinstance(value, bool):
            return count(value)
        return escape(printable(str(value)))

    left = 'style="text-align: left"'  # notebooks align cells to the right
    lines = (
        f"<tr><th {left}>{escape(printable(name))}</th><td {left}>{shown(value)}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table>{''.join(lines)}</table>"


def rows_html(columns: Mapping[str, Any], row_count: int) -> str:
    """The table that a notebook shows of columns: their names, the first MOST_HTML_ROWS rows and
    the number of those left out; every text escaped."""
    from html import escape

    def cells(values: Iterable[object], tag: str) -> str:
        texts = (f"<{tag}>{escape(printable(str(value)))}</{tag}>" for value in values)
        return f"<tr>{''.join(texts)}</tr>"

    shown = min(row_count, MOST_HTML_ROWS)
    rows = (cells([values[row] for values in columns.values()], "td") for row in range(shown))
    more = f"<p>{count(row_count - shown)} more</p>" if row_count > shown else ""
    return f"<table>{cells(columns, 'th')}{''.join(rows)}</table>{more}"
