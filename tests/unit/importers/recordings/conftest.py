"""Fixtures of the command line's tests that these use too."""

from tests.cli.conftest import collide, here

__all__ = ["collide", "here"]
