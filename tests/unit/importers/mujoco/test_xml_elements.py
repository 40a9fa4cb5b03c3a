"""Elements of texts that are no XML, or XML that only tinyxml2 reads."""

import pytest

from collidecli.importers.mujoco.xml_elements import elements_of, values_of


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b"<a><b c='>'/></a>", [b"a", b"b", b"a"]),
        (b"<a/><!-- <b/> --><c/><!--> <d/> --><e/>", [b"a", b"c", b"e"]),
        (b"<?xml version='1.0'?><!DOCTYPE a><a/><![CDATA[<b/>]]><c/>", [b"a", b"c"]),
        (b"< a/>\n<\tb c='<!--'/> it's text <d e=\"'\"/>", [b"a", b"b", b"d"]),
        (b"<a/><!-- <b/>", [b"a"]),
        (b"<a/><b c='<d/>", [b"a"]),
        (b"<a/><b <c/>", [b"a"]),
        (b"", []),
    ],
)
def test_elements(text, names):
    assert [element.name for element in elements_of(text)] == names


@pytest.mark.parametrize(
    "part", [b"<!--", b"<include '", b'<a "', b"<", b"< ", b"'", b"<![CDATA[", b"<?", b"<a b"]
)
def test_parts_without_an_end_are_read_once(part):
    """A text of 4 MB; a search to the end for each part would take hours."""
    assert sum(1 for _ in elements_of(b"<mujoco>" + part * (4_000_000 // len(part)))) == 1


def test_values():
    assert values_of(b""" a="1"\n b = 'x="y"' c:d="&lt;&#50;"/""") == {
        "a": "1",
        "b": 'x="y"',
        "c:d": "<2",
    }
    assert values_of(b"a" * 4_000_000 + b"='1'")["a" * 4_000_000] == "1"
