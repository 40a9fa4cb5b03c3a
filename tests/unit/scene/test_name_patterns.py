"""Patterns of names: globs, regular expressions after `re:`, lists of both."""

import random
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest

import collidecli
from collidecli.cli.value_types import NAMES, PatternPair
from collidecli.errors import InputError
from collidecli.scene.mesh_choices import mesh_choices
from collidecli.scene.name_patterns import matcher, path_patterns, split_patterns
from collidecli.scene.options import SceneOptions
from collidecli.scene.patterns import NamedItems, listed

PATHS = ("/robot/left_foot", "/robot/right_foot", "/robot/hand", "/floor")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*foot", [0, 1]),
        ("/robot/*", [0, 1, 2]),
        ("re:.*foot", [0, 1]),
        ("re:/robot/(left|right)_foot", [0, 1]),
        ("re:/robot/[^_]*", [2]),
        ("re:(?i)/FLOOR", [3]),
        ("re:/FLOOR", []),
        ("re:foot", []),  # a whole path matches
        ("re:/floor|x", [3]),
        ("re:", []),
        (".*foot", []),  # a glob, of which the dot is a character
    ],
)
def test_a_pattern_matches_whole_names(pattern, expected):
    is_met = matcher(pattern, "--body")
    assert [k for k, path in enumerate(PATHS) if is_met(path)] == expected


def test_globs_are_those_of_the_standard_library():
    draw = random.Random(4)
    for _ in range(500):
        pattern = "".join(draw.choices("ab/*?[!]-.:", k=draw.randint(0, 6)))
        name = "".join(draw.choices("ab/.", k=draw.randint(0, 6)))
        assert matcher(pattern, "")(name) == fnmatchcase(name, pattern), (pattern, name)


@pytest.mark.parametrize(
    "pattern", ["re:(", "re:*foot", "re:[a", "re:a{3,2}", "re:(?P<n>a)(?P<n>b)"]
)
def test_what_is_no_expression_is_refused(pattern):
    with pytest.raises(InputError, match="is no regular expression") as error:
        matcher(pattern, "--exclude")
    assert error.value.where == "--exclude"
    assert pattern in error.value.what


EXPRESSIONS = (
    "re:a{1,2}",
    "re:(a|b,c)",
    "re:[,)]x",
    "re:[],(]",
    "re:[^],]",
    r"re:a\,b",
    r"re:\(a",
    r"re:[\],]",
    "re:(a[(,]){2,}",
    "re:.*",
    "a{1",
    "(b",
    "*foot",
)


def test_a_comma_in_brackets_of_an_expression_divides_no_list():
    draw = random.Random(7)
    for count in range(1, 6):
        for _ in range(40):
            patterns = draw.choices(EXPRESSIONS, k=count)
            for comma in (",", " , "):
                assert split_patterns(comma.join(patterns)) == patterns
    assert split_patterns("a{1,2}") == ["a{1", "2}"], "braces of a glob are characters"
    assert split_patterns("re:(a,b") == ["re:(a,b"]
    assert split_patterns("a,,b,") == ["a", "", "b", ""]
    assert split_patterns("") == [""]


def test_each_name_of_a_path_has_an_expression():
    assert path_patterns("/World/env_*") == ["", "World", "env_*"]
    assert path_patterns(r"re:/World/env_\d+") == ["", "World", r"re:env_\d+"]


def test_options_with_lists_take_expressions():
    pair = "re:/(a|b){1,2}/.*,floor*"
    expected = ("re:/(a|b){1,2}/.*", "floor*")
    assert PatternPair().convert(pair, None, None) == expected
    assert NAMES.convert(f" x ,{pair}", None, None) == ("x", *expected)
    assert listed(pair) == expected
    for exclude in (pair, (pair,), (expected,)):
        assert SceneOptions(exclude=exclude).excluded == (expected,)
    choices = mesh_choices(NAMES.convert(r"re:arm\d{1,2}=hull,hand=exact", None, None))
    assert [choice and choice.kind for choice in map(choices.of, ("arm7", "arm", "hand"))] == [
        "hull", None, "exact",
    ]  # fmt: skip


def test_items_match_by_their_path_or_that_of_their_body():
    items = NamedItems(PATHS, np.array([0, 0, 1, -1]), ("/left_leg", "/arm"), "shape")
    assert items.matching(["re:/(left_leg|floor)"], "--body").tolist() == [True, True, False, True]
    with pytest.raises(InputError, match="'re:foot' matches no shape") as error:
        items.matching(["re:foot"], "--body")
    assert error.value.fix == "an expression matches whole paths: begin and end it with .*"
    with pytest.raises(InputError, match="'re:knee' matches no shape") as error:
        items.matching(["re:knee"], "--body")
    assert error.value.fix == items.advice


def test_python_takes_expressions_where_the_command_line_does():
    builder = collidecli.ModelBuilder()
    for name in ("foot_1", "foot_2", "hand"):
        builder.add_shape_sphere(builder.add_body(key=name), radius=0.5, key=f"{name}/ball")
    body_q = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (1, 1, 3, 1))
    contacts = collidecli.collide(builder.finalize(), body_q, device="cpu")
    assert contacts.events(include=r"re:foot_\d").row_count == 3
    assert contacts.events(include=r"re:foot_\d{1,2}", exclude="re:h.*").row_count == 1


def test_one_module_compiles_patterns_of_names():
    root = Path(collidecli.__file__).parent
    users = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if "fnmatch" in path.read_text(encoding="utf-8")
    ]
    assert users == ["scene/name_patterns.py"]
