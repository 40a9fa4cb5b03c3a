"""A report as one HTML page that holds all it needs: words, tables, charts as SVG. Of facts collide.report/1."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from collidecli.errors import InputError
from collidecli.report.chart_kinds import page_charts
from collidecli.report.report_sections import figures, page_tables, sections

HERE = Path(__file__).parent
TEMPLATE, STYLE = "page.html.j2", "page.css"


def report_page(facts: Mapping[str, Any]) -> str:
    """The page. Every name from a file is escaped. Raises InputError where the packages for plots are missing."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise InputError("a report needs jinja2 and matplotlib", "", "pip install 'collidecli[plots]'") from error
    charts = page_charts(facts)
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(TEMPLATE).render(
        title=facts["scene"] or Path(facts["file"]).name,
        subtitle=f"Contacts of {Path(facts['file']).name}",
        generator=facts["creator"] or "collide",
        style=(HERE / STYLE).read_text(encoding="utf-8"),
        charts=charts,
        tables=page_tables(facts),
        figures=figures(facts),
        sections=sections(facts, charts),
    )
