"""Escaping of texts from files, such as names of shapes, by kind of output.

HTML is escaped by jinja2, or by `html.escape`; JSON, XML, Parquet and USD by the libraries that
write them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20", "'")
"""Beginnings of cells that spreadsheets compute, full-width forms included; and the mark that
prevents it."""
_COMMAND = re.compile(r"^\s*:(?=:)|#(?=#\[)")
"""Beginnings of workflow commands, which GitHub executes if a step prints them: at the start of a
line, or anywhere."""
_MARKDOWN = re.compile(r"[\\`*_{}<>\[\]|#~&!$@]|^[-+=]|(?<=:)/(?=/)|(?<=www)\.", re.IGNORECASE)


def unicode_text(text: str) -> str:
    """`text` with the bytes of a path that are not UTF-8 as escape sequences, for formats that take
    Unicode only; Python has such bytes as surrogates."""
    return utf8(text).decode()


def utf8(text: str) -> bytes:
    """The UTF-8 of `unicode_text`."""
    return text.encode("utf-8", "backslashreplace")


def one_line(text: str, most: int = 1200) -> str:
    """`text` with its line ends as escape sequences, and without its middle if it has more than
    `most` characters."""
    if len(text) > most:
        text = f"{text[: most * 3 // 4]} ... {text[-most // 4 :]}"
    return "".join(repr(c)[1:-1] if c in LINE_ENDS else c for c in text)


def printable(text: str) -> str:
    """`text` with escaped control characters, so that a name from a file cannot control the
    terminal."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def printable_line(text: str) -> str:
    """The whole `text`, `printable`, on one line and without workflow commands of GitHub."""
    if not text.isprintable():
        text = printable(one_line(text, most=len(text)))
    return _COMMAND.sub(lambda match: f"{match[0][:-1]}\\x{ord(match[0][-1]):02x}", text)


def printable_values(value: Any) -> Any:
    """A JSON-like value with `printable_line` of every text in it, keys included."""
    if isinstance(value, str):
        return printable_line(value)
    if isinstance(value, Mapping):
        return {printable_values(key): printable_values(item) for key, item in value.items()}
    return [printable_values(item) for item in value] if isinstance(value, (list, tuple)) else value


def csv_text(text: str) -> str:
    """A cell of CSV with a text, by RFC 4180.

    A text that a spreadsheet would compute as a formula, or that begins with an apostrophe, gets an
    apostrophe in front: every text is recovered by removing one.
    """
    text = unicode_text(text)
    if text.lstrip()[:1] in FORMULA_STARTS or text[:1] in FORMULA_STARTS:
        text = f"'{text}"
    if any(letter in text for letter in ',"\n\r') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def markdown_text(text: str) -> str:
    """Text for a paragraph, list item or table cell of GitHub's Markdown, on one line and without
    links or markup."""
    return _MARKDOWN.sub(lambda match: f"\\{match[0]}", printable_line(text))


def markdown_code(text: str) -> str:
    """Code for a table cell of GitHub's Markdown, on one line.

    Where a code span cannot contain the text it is a `<code>` element with character references.
    """
    text = printable_line(text)
    if text.strip() == text and not set("|`\\") & set(text):
        return f"`{text}`" if text else ""
    return (
        f"<code>{''.join(c if c.isalnum() or c in '/. ' else f'&#{ord(c)};' for c in text)}</code>"
    )


def github_command(kind: str, title: str, text: str, file: str = "", line: int = 0) -> str:
    """A workflow command of GitHub Actions, such as an annotation. text: may have several lines.

    file, line: of the repository, at which it is shown; "" for none.
    """

    def coded(words: str, others: str = "") -> str:
        return "".join(
            f"%{ord(character):02X}" if character in f"%\r\n{others}" else character
            for character in words
        )

    where = f"file={coded(printable_line(file), ':,')},line={line}," if file else ""
    return f"::{kind} {where}title={coded(printable_line(title), ':,')}::{coded(printable(text))}"


def dot_string(text: str) -> str:
    """A quoted identifier of DOT, with escaped backslashes, so that a label contains no escape
    sequences."""
    return '"' + printable_line(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def script_json(text: str) -> str:
    """JSON for a `script` element of HTML, which would end at `</`."""
    return text.replace("<", "\\u003c")
