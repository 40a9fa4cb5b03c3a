"""Messages stay in their lines, whatever names a file brings."""

import pickle

import pytest

from collidecli.errors import CollideError, InputError, Interrupted, OutputError
from collidecli.escaping import one_line


def test_a_message_has_two_lines_at_most():
    error = InputError("the format is 'a\nb\r\u2028c'", "x\ny.h5", "do\nthis")
    assert str(error) == "x\\ny.h5: the format is 'a\\nb\\r\\u2028c'\n  do\\nthis"
    assert error.what == "the format is 'a\nb\r\u2028c'"


def test_long_names_lose_their_middle():
    assert one_line("x" * 1200) == "x" * 1200
    short = one_line("a" * 5000 + "b" * 5000)
    assert len(short) < 1210
    assert (short[:3], " ... " in short, short[-3:]) == ("aaa", True, "bbb")


@pytest.mark.parametrize("kind", [CollideError, InputError, OutputError, Interrupted])
def test_a_pickled_error_keeps_all_its_parts(kind):
    """Workers of a batch send their errors to the process that prints them."""
    error = pickle.loads(pickle.dumps(kind("no body 'arm'", "robot.xml", "give one of: hand, leg")))
    assert type(error) is kind
    assert (error.what, error.where, error.fix) == (
        "no body 'arm'",
        "robot.xml",
        "give one of: hand, leg",
    )
    assert str(error) == "robot.xml: no body 'arm'\n  give one of: hand, leg"
    assert error.exit_code == kind.exit_code
