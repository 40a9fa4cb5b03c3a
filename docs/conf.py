"""Sphinx configuration of the documentation: `make docs` builds it into docs/_build/html."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

ROOT = Path(__file__).parents[1]

project = "collide"
author = "the collide authors"
project_copyright = "the collide authors, Apache License 2.0"
version = release = re.findall(
    r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M
)[0]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
]
# of blocks without a language, which are commands; what they print is `text`
highlight_language = "bash"
copybutton_selector = "div.highlight-default pre, div.highlight-bash pre, div.highlight-python pre"
exclude_patterns = ["_build"]
default_role = "code"  # docstrings write names in single backticks

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_dmath_double_inline = True
myst_heading_anchors = (
    # every heading up to the fourth level can be the target of a link; unknown targets are warnings
    4
)

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "separated"
napoleon_use_rtype = False

# The lexer of USD's text format does not exist in Pygments, so such blocks have no highlighting.
suppress_warnings = ["misc.highlighting_failure"]

# Formulas are MathML, which browsers draw without a script: the site is whole without a network.
html_math_renderer = "mathml"

html_theme = "pydata_sphinx_theme"
html_title = "collide"
html_static_path = ["_static"]
html_css_files = ["collide.css"]
html_search_scorer = str(ROOT / "docs/_static/search_order.js")
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}

linkcheck_timeout = 20
linkcheck_anchors = False


SECTION = re.compile(
    r"\s*(Args|Returns|Raises|Yields|Example|Examples|Note|Attributes|Source|Degenerate)\b.*:?$"
)
ITEM = re.compile(r"(\s*)([\w`][\w`, .]*): +\S")


def as_plain_text(app, context, lines: list[str]) -> None:
    """Escapes what reStructuredText would read in help texts: globs are no emphasis, `foot_*` names
    no target."""
    escaped = [line.replace("*", "\\*") if "``" not in line else line for line in lines]
    escaped = [re.sub(r"_(?![\w])", r"\\_", line) if "``" not in line else line for line in escaped]
    lines[:] = [line for line in escaped if line.strip() != ":default: ````"]  # an empty list


def bullets(paragraph: list[str]) -> list[str]:
    """A paragraph of "name: text" lines with indented continuations, as a bullet list."""
    indent = min(len(line) - len(line.lstrip()) for line in paragraph)
    items: list[str] = []
    for line in paragraph:
        found = ITEM.match(line)
        if (found and len(found[1]) == indent) or not items:
            items.append(line.strip())
        else:
            items[-1] += " " + line.strip()
    if len(items) == 1:
        return [" " * indent + items[0]]
    lead = [] if ITEM.match(" " * indent + items[0]) else [" " * indent + items.pop(0), ""]
    return lead + [" " * indent + "- " + item for item in items]


def as_lists(app, what, name, obj, options, lines: list[str]) -> None:
    """Docstrings list arguments as "name: text" below the first sentence; reStructuredText needs a
    list for that."""
    result: list[str] = []
    paragraph: list[str] = []
    section = False
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line)
            continue
        if paragraph:
            section = section or (
                bool(SECTION.match(paragraph[0])) and paragraph[0].rstrip().endswith(":")
            )
            plain = (
                section
                or ">>>" in paragraph[0]
                or paragraph[0].lstrip().startswith(("-", "|", ".."))
            )
            result += [*(paragraph if plain else bullets(paragraph)), ""]
        paragraph = []
    lines[:] = result


def inline_formula(translator, node) -> None:
    """Writes a formula in a line of text as MathML."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def displayed_formula(translator, node) -> None:
    """Writes a formula in a line of its own as MathML."""
    translator.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app) -> None:
    """Sphinx calls this when it loads the configuration."""
    from pygments.lexers.special import TextLexer

    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))
    app.add_lexer("usda", TextLexer)
    app.connect("autodoc-process-docstring", as_lists, priority=100)
    for part in ("description", "options", "arguments", "usage", "epilog"):
        app.connect(f"sphinx-click-process-{part}", as_plain_text)
