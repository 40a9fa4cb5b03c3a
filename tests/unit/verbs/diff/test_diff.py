"""Shares of a comparison."""

from collidecli.verbs.diff.diff import share_of


def test_shares_are_rounded_as_people_do():
    assert [share_of(0.29, 100), share_of(0.0, 100), share_of(1.0, 7), share_of(0.299, 10)] == [
        29,
        0,
        7,
        2,
    ]
