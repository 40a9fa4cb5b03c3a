"""Parts of a page as HTML: tables, sections, the page itself."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collidecli.errors import InputError
from collidecli.pages.canvas import NARROW, PAGE, WIDE, Canvas, Hover, drawing, with_hovers
from collidecli.pages.chart_kinds import Kinds
from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import Column

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INDENT = "  "
"""Begin of a line of a list that is below the line before."""


def table(
    name: str, columns: str | Sequence[str], rows: Iterable[Sequence[str]], more: str = ""
) -> dict[str, Any]:
    """A table for the template. columns: titles, or one text with commas; those that end with > are
    right-aligned."""
    given = columns.split(",") if isinstance(columns, str) else columns
    titles = [{"title": title.rstrip(">"), "right": title.endswith(">")} for title in given]
    return {"name": name, "columns": titles, "rows": [list(row) for row in rows], "more": more}


def columns_table(
    name: str, columns: Sequence[Column], rows: Iterable[ResultDict], more: str = ""
) -> dict[str, Any]:
    """A table for the template of the columns that a terminal has."""
    titles = [title + (">" if side == "right" else "") for title, side, _ in columns]
    return table(name, titles, [[text(row) for _, _, text in columns] for row in rows], more)


def nested(lines: Iterable[str]) -> list[dict[str, Any]]:
    """The items of a list, each with its `text` and the `lines` below it: those that follow it and
    begin with INDENT."""
    items: list[dict[str, Any]] = []
    for line in lines:
        if line.startswith(INDENT) and items:
            items[-1]["lines"].append(line.removeprefix(INDENT))
        else:
            items.append({"text": line.strip(), "lines": []})
    return items


def part(**given: Any) -> dict[str, Any]:
    """A part of a section; by default its entries are empty. lines: of `nested`."""
    empty = {
        "heading": "",
        "lead": "",
        "chart": "",
        "lines": [],
        "table": None,
        "properties": [],
        "files": [],
    }
    return {**empty, **given, "lines": nested(given.get("lines", ()))}


def section(name: str, title: str, *parts: dict[str, Any], lead: str = "") -> dict[str, Any]:
    """A section of the page. name: its id."""
    return {"id": name, "title": title, "lead": lead, "parts": list(parts)}


def page_charts(result: ResultDict, kinds: Kinds) -> dict[str, dict[str, str]]:
    """SVG elements, "wide" and "narrow", by kind of chart, for all kinds with data."""
    charts = {}
    with drawing():
        for name, kind in kinds.items():
            if kind.missing(result):
                continue
            charts[name] = {}
            for size, width in (("wide", WIDE), ("narrow", NARROW)):
                canvas = Canvas(width, PAGE)
                figure = kind.draw(result, canvas)
                charts[name][size] = page_svg(
                    figure, f"{name}-{size}", kind.words(result), canvas.hovers
                )
    return charts


def page_svg(figure: Figure, prefix: str, words: str, hovers: Sequence[Hover]) -> str:
    """An SVG element with the colours and width of the page. prefix: of its ids. words: for screen
    readers."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.S)

    def page_tag(tag: re.Match[str]) -> str:
        """A tag with CSS variables in place of the placeholders of PAGE, and with ids that are
        unique in the page."""
        svg = tag[0]
        for role, colour in PAGE.items():
            svg = svg.replace(colour, f"var(--{role})")
        svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
        return re.sub(r'(url\(|xlink:href="|href=")#', rf"\1#{prefix}-", svg)

    # tags only: a name of a shape may look like a colour or a reference
    text = re.sub(r"<[^>]*>", page_tag, text)
    head = re.search(r'viewBox="([^"]*)"', text)
    assert head is not None
    links = 'xmlns:xlink="http://www.w3.org/1999/xlink"'
    opening = f'<svg viewBox="{head[1]}" role="img" aria-label="{escape(words)}" {links}>'
    return with_hovers(
        re.sub(r"<svg[^>]*>", lambda _: opening, text, count=1).strip(), figure, hovers
    )


HERE = Path(__file__).parent


def html_page(**values: Any) -> str:
    """A page by the template with these values. Raises InputError if jinja2 is missing."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise InputError(
            "a report needs jinja2 and matplotlib", "", "pip install 'collidecli[plots]'"
        ) from error
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The words of a text may break after / and _.
    environment.filters["breaking"] = lambda text: Markup("<wbr>").join(
        re.split(r"(?<=[/_])(?=[^/_])", text)
    )
    style = (HERE / "page.css").read_text(encoding="utf-8")
    return environment.get_template("page.html.j2").render(style=style, **values)


def figure_list(listed: Iterable[tuple[str, str, str]]) -> list[dict[str, str]]:
    """Figures at the top of a page: name, value, comment."""
    return [{"name": name, "value": value, "more": more} for name, value, more in listed]
