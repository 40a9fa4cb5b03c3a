"""Messages stay in their lines, whatever names a file brings."""

from __future__ import annotations

from collidecli.errors import InputError
from collidecli.escaping import one_line


def test_a_message_has_two_lines_at_most():
    error = InputError("the format is 'a\nb\r\u2028c'", "x\ny.h5", "do\nthis")
    assert str(error) == "x\\ny.h5: the format is 'a\\nb\\r\\u2028c'\n  do\\nthis"
    assert error.what == "the format is 'a\nb\r\u2028c'"


def test_long_names_lose_their_middle():
    assert one_line("x" * 1200) == "x" * 1200
    short = one_line("a" * 5000 + "b" * 5000)
    assert len(short) < 1210
    assert short.startswith("aaa")
    assert short.endswith("bbb")
    assert " ... " in short
