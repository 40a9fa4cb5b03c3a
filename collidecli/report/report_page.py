"""A report as one self-contained HTML page: text, tables, and charts as SVG."""

from __future__ import annotations

from pathlib import Path

from collidecli.errors import InputError
from collidecli.escaping import printable_values
from collidecli.report.chart_kinds import page_charts
from collidecli.report.report_sections import figures, headlines, page_tables, sections, selection_line
from collidecli.report.subset_parts import selectable
from collidecli.report.words import ResultDict

HERE = Path(__file__).parent
TEMPLATE, STYLE = "page.html.j2", "page.css"


def report_page(result: ResultDict) -> str:
    """HTML page of collide.report/1, with escaped names. Raises InputError if the packages for plots are missing."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise InputError("a report needs jinja2 and matplotlib", "", "pip install 'collidecli[plots]'") from error
    result = printable_values(result)
    charts = page_charts(result)
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(TEMPLATE).render(
        title=result["scene"] or Path(result["file"]).name,
        subtitle=f"Contacts of {Path(result['file']).name}",
        generator=result["creator"] or "collide",
        style=(HERE / STYLE).read_text(encoding="utf-8"),
        headlines=headlines(result),
        selection=selection_line(result),
        groups=selectable(result),
        charts=charts,
        tables=page_tables(result),
        figures=figures(result),
        sections=sections(result, charts),
    )
