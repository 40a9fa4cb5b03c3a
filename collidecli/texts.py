"""Texts of counts, sizes and lists of names; escaping of texts from files, such as names of shapes, by kind of output.

HTML is escaped by jinja2, or by `html.escape`; JSON, XML, Parquet and USD by the libraries that write them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20", "'")
"""Beginnings of cells that spreadsheets compute, full-width forms included; and the mark that prevents it."""
_COMMAND = re.compile(r"^\s*:(?=:)|#(?=#\[)")
"""Beginnings of workflow commands, which GitHub executes if a step prints them: at the start of a line, or anywhere."""
_MARKDOWN = re.compile(r"[\\`*_{}<>\[\]|#~&!$@]|^[-+=]|(?<=:)/(?=/)|(?<=www)\.", re.IGNORECASE)


def one_line(text: str, most: int = 1200) -> str:
    """`text` with its line ends as escape sequences, and without its middle if it has more than `most` characters."""
    if len(text) > most:
        text = f"{text[: most * 3 // 4]} ... {text[-most // 4 :]}"
    return "".join(repr(c)[1:-1] if c in LINE_ENDS else c for c in text)


def printable(text: str) -> str:
    """`text` with escaped control characters, so that a name from a file cannot control the terminal."""
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

    A text that a spreadsheet would compute as a formula, or that begins with an apostrophe, gets an apostrophe in
    front: every text is recovered by removing one.
    """
    if text.lstrip()[:1] in FORMULA_STARTS or text[:1] in FORMULA_STARTS:
        text = f"'{text}"
    if any(letter in text for letter in ',"\n\r') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def markdown_text(text: str) -> str:
    """Text for a paragraph, list item or table cell of GitHub's Markdown, on one line and without links or markup."""
    return _MARKDOWN.sub(lambda match: f"\\{match[0]}", printable_line(text))


def markdown_code(text: str) -> str:
    """Code for a table cell of GitHub's Markdown, on one line.

    Where a code span cannot contain the text it is a `<code>` element with character references.
    """
    text = printable_line(text)
    if text.strip() == text and not set("|`\\") & set(text):
        return f"`{text}`" if text else ""
    return f"<code>{''.join(c if c.isalnum() or c in '/. ' else f'&#{ord(c)};' for c in text)}</code>"


def github_command(kind: str, title: str, text: str, file: str = "", line: int = 0) -> str:
    """A workflow command of GitHub Actions, such as an annotation. text: may have several lines.

    file, line: of the repository, at which it is shown; "" for none.
    """

    def coded(words: str, others: str = "") -> str:
        return "".join(f"%{ord(character):02X}" if character in f"%\r\n{others}" else character for character in words)

    where = f"file={coded(printable_line(file), ':,')},line={line}," if file else ""
    return f"::{kind} {where}title={coded(printable_line(title), ':,')}::{coded(printable(text))}"


def dot_string(text: str) -> str:
    """A quoted identifier of DOT, with escaped backslashes, so that a label contains no escape sequences."""
    return '"' + printable_line(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def script_json(text: str) -> str:
    """JSON for a `script` element of HTML, which would end at `</`."""
    return text.replace("<", "\\u003c")


# Text of counts, sizes, lengths and lists of names, for messages and tables.

NAMES_SHOWN = 12

LENGTH_UNITS = (("mm", 1e3), ("cm", 1e2), ("µm", 1e6), ("μm", 1e6), ("um", 1e6), ("m", 1.0))
"""Units of lengths and their number in a metre; m is last, as the others end with it. µ has two code points."""


def count(number: int) -> str:
    """A number with its digits in groups of three: 12 345 678."""
    return f"{number:,}".replace(",", " ")


def plural(number: int, noun: str, several: str = "") -> str:
    """A number and its noun, in the plural unless the number is 1. several: the plural, if it is not the noun and s."""
    return f"{count(number)} {noun if number == 1 else several or noun + 's'}"


def numbered(number: int, noun: str) -> str:
    """The range of `number` indices from 0: `frames 0 to 9`, `only world 0`, `no frames`."""
    if number < 2:
        return f"only {noun} 0" if number else f"no {noun}s"
    return f"{noun}s 0 to {number - 1}"


def memory(size: int) -> str:
    """A size in bytes, with its unit."""
    value = float(size)
    for unit in ("B", "KiB", "MiB"):
        if value < 999.5:
            return f"{value:.3g} {unit}" if unit != "B" else f"{size} B"
        value /= 1024.0
    return f"{value:.3g} GiB" if value < 999.5 else f"{count(round(value))} GiB"


def metres(value: object) -> float:
    """A length [m] from a number, or from a text with one of LENGTH_UNITS or none: "2mm", "0.002".

    Raises ValueError for another text, and for a number that is not finite.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number, unit = float(value), 1.0
    else:
        text = str(value).strip()
        ending, unit = next(((ending, unit) for ending, unit in LENGTH_UNITS if text.endswith(ending)), ("", 1.0))
        number = float(text.removesuffix(ending))
    if not math.isfinite(number):
        raise ValueError(f"{value} is not finite")
    return number / unit


def in_order(names: Iterable[str]) -> list[str]:
    """Names with their numbers in numeric order: demo_2 before demo_10."""
    return sorted(names, key=number_parts)


def number_parts(name: str) -> list[int | str]:
    """The texts and numbers that a name consists of, texts first: a key by which numbers are in numeric order."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def did_you_mean(name: str, known: Iterable[str], otherwise: str | None = None, shown: int = 1) -> str:
    """The remedy for an unknown name: the most similar names, whole or in their part after the last slash.

    otherwise: the remedy if none is similar; None is a list of all.
    """
    from difflib import get_close_matches  # imported only for a message, as the command line starts without it

    named = {word.rsplit("/", 1)[-1]: word for word in reversed(in_order(known))} if "/" not in name else {}
    named |= {word: word for word in known}
    close = dict.fromkeys(named[word] for word in get_close_matches(name, named, n=shown))
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"known here: {', '.join(sorted(known))}" if otherwise is None else otherwise


def first_and_count(names: Sequence[str]) -> str:
    """The first of some names, and the number of the others."""
    return names[0] + (f" and {count(len(names) - 1)} more" if len(names) > 1 else "")


def some_names(names: Sequence[str]) -> str:
    """Up to `NAMES_SHOWN` names in quotes, and the number of the others."""
    shown = ", ".join(f"'{name}'" for name in names[:NAMES_SHOWN])
    return shown + (f" and {count(len(names) - NAMES_SHOWN)} more" if len(names) > NAMES_SHOWN else "")
