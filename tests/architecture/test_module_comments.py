"""Comments between the definitions of a module explain the line below them: a heading means that
the file has two subjects."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = sorted((ROOT / "collidecli").rglob("*.py"))
PRAGMA = re.compile(r"# (?:ruff|pyright|type|fmt):")
MOST_LINES = 2
"""Lines of a comment above a definition; what is longer belongs in a docstring."""


def blocks(text: str) -> Iterator[tuple[int, list[str], str]]:
    """Comments of a module that are inside of no statement: number of the first line, the lines,
    and the line below them."""
    inside: set[int] = set()
    for node in ast.parse(text).body:
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(one.lineno for one in decorators)])
        inside.update(range(first, (node.end_lineno or node.lineno) + 1))
    lines = [*text.splitlines(), ""]
    begin = None
    for number, line in enumerate(lines, 1):
        is_comment = line.startswith("#") and number not in inside
        if is_comment and begin is None:
            begin = number
        elif not is_comment and begin is not None:
            yield begin, lines[begin - 1 : number - 1], line
            begin = None


def headings(text: str) -> list[int]:
    """Lines of a module at which a comment begins that is no pragma, and that has an empty line
    below it or more than MOST_LINES lines."""
    return [
        number
        for number, lines, below in blocks(text)
        if len([line for line in lines if not PRAGMA.match(line)]) > MOST_LINES
        or not (below.strip() or PRAGMA.match(lines[-1]))
    ]


def test_no_module_has_headings():
    assert len(PACKAGE) > 600
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in PACKAGE
        for number in headings(path.read_text())
    ]
    assert found == [], "split the file by subject, or move the comment into a docstring"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("import os\n\n# The second subject.\n\nA = 1\n", [3]),
        ("# The second subject.\n#\n# In two paragraphs.\n\n\ndef f(): ...\n", [1]),
        ("# One.\n# Two.\n# Three.\nA = 1\n", [1]),
        ("# One.\n# Two.\nA = 1\n\n# At the end.\n", [5]),
        ("# Why a pragma.\n# ruff: noqa: F811\n\nA = 1\n", []),
        ("# ruff: noqa: F811\n# The second subject.\n\nA = 1\n", [1]),
        ("# One.\n# Two.\n# Three.\n# ruff: noqa: F811\n\nA = 1\n", [1]),
        ('A = """\n# in a text\n\n"""\n', []),
        ("A = (\n# in a statement\n\n    1,\n)\n", []),
        ("# Why.\n@cache\n# Why this one.\n\ndef f(): ...\n", []),
    ],
)
def test_what_a_heading_is(text, lines):
    assert headings(text) == lines
