"""Reader of a file of pairs that may touch: lines of two patterns, or SRDF."""

from __future__ import annotations

import os
import shlex

from collidecli.errors import InputError
from collidecli.importers.srdf import LinkRules, read_srdf
from collidecli.scene.name_patterns import EXPRESSION
from collidecli.storage.regular_files import open_input

ListedPairs = dict[str, tuple[str, str]]
FIX = "see docs/howto/which-pairs-may-touch.md for the file of --pairs-file"


def read_pairs_file(path: str | os.PathLike[str]) -> ListedPairs | LinkRules:
    """The pairs of patterns of a file by their place in it, or the rules of an SRDF file.

    A line has two patterns, apart by spaces; one with spaces is in quotes. In a line with a regular
    expression a backslash is a part of it, in another it quotes the next character. Empty lines,
    and what follows a `#`, are ignored. A file whose first character is `<` is SRDF. Raises
    InputError with the line for one that has not two patterns, and for a file without any.
    """
    location = os.fspath(path)
    try:
        with open_input(location) as file:
            text = file.read().decode("utf-8-sig")
    except OSError as error:
        what = f"the file of pairs cannot be read: {(error.strerror or str(error)).lower()}"
        raise InputError(what, location, FIX) from error
    except UnicodeDecodeError as error:
        raise InputError("the file of pairs is not UTF-8 text", location, FIX) from error
    if text.lstrip().startswith("<"):
        return read_srdf(location)
    listed: ListedPairs = {}
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{location}: line {number}"
        try:
            words = _words(line)
        except ValueError as error:
            raise InputError(f"cannot be read: {error}".lower(), where, "close it") from error
        if not words:
            continue
        if len(words) != 2:
            what = f"has {len(words)} words in place of two patterns"
            fix = "write 'A B'; quote a pattern that contains a space"
            raise InputError(what, where, fix)
        listed[where] = (words[0], words[1])
    if not listed:
        raise InputError("lists no pair", location, "write a line 'A B' for each, or give SRDF")
    return listed


def _words(line: str) -> list[str]:
    """The words of a line. Raises ValueError for a quote that is not closed."""
    words = shlex.shlex(line, posix=True)
    words.whitespace_split = True
    if EXPRESSION in line:
        words.escape = ""
    return list(words)
