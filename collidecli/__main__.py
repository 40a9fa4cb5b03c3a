"""The command `collide` as `python -m collidecli`."""

from __future__ import annotations

import sys

from collidecli.cli.guard import command

if __name__ == "__main__":
    sys.exit(command())
