"""The help of `collide`: a section for each group of verbs."""

import re

import click

from collidecli.cli.main import group
from collidecli.cli.verbs import ROWS


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
