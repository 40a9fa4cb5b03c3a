"""The help of `collide`: a section for each group of verbs."""

import re

import click
import pytest
from click.shell_completion import ShellComplete

from collidecli.cli.main import group, main
from collidecli.cli.verbs import ROWS, VERBS


def test_help_has_a_section_for_each_group_with_its_verbs():
    text = group.get_help(click.Context(group, info_name="collide"))
    verbs = text.split("Show this message and exit.\n\n")[1].split("\n\n  Exit codes")[0]
    found = {}
    for section in verbs.split("\n\n"):
        title, *lines = section.splitlines()
        found[title.removesuffix(":")] = [
            line.split()[0] for line in lines if re.match(r"  \S", line)
        ]
    titles = list(dict.fromkeys(row.group for row in ROWS))
    assert list(found) == titles
    assert found == {title: [row.name for row in ROWS if row.group == title] for title in titles}
    starts = [re.match(r"  \S+ +", line) for line in verbs.splitlines()]
    assert len({start.end() for start in starts if start}) == 1, (
        "one column of summaries for all sections"
    )


def printed(capsys, *words: str) -> tuple[int, str]:
    code = main(words)
    return code, capsys.readouterr().out


@pytest.mark.parametrize("words", ["", *VERBS, "traj convert", "batch plan", "engine pack"])
def test_help_and_a_verb_print_the_help_of_the_verb(capsys, words):
    found = printed(capsys, "help", *words.split())
    assert found == printed(capsys, *words.split(), "--help")
    assert (found[0], found[1].startswith("Usage: collide")) == (0, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("report a.h5 --map x", "--map is an option of collide view; collide report --help"),
        ("report a.h5 --agains x", "Did you mean '--against'?\n  collide report --help"),
        ("report a.h5 --zzz x", "No such option '--zzz'.\n  collide report --help"),
    ],
)
def test_an_option_of_another_verb_is_named_with_it(capsys, words, told):
    assert main(words.split()) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["help", "rum"], "did you mean run?"),
        (["hepl", "run"], "did you mean help?"),
        (["help", "traj", "covert"], "No such command 'covert'"),
    ],
)
def test_help_of_an_unknown_verb_is_refused(capsys, words, told):
    assert main(words) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["he"], {"help"}), (["help", "ma"], {"matrix"}), (["help", "zz"], set())],
)
def test_words_after_help_are_completed(words, expected):
    completion = ShellComplete(group, {}, "collide", "_COLLIDE_COMPLETE")
    found = completion.get_completions(words[:-1], words[-1])
    assert {item.value for item in found} == expected


def test_groups_are_those_that_users_look_for():
    groups = dict.fromkeys(row.group for row in ROWS)
    assert list(groups) == ["Compute", "Look", "Compare", "Data sets", "Engines", "Files"]
