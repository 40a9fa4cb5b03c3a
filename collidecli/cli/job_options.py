"""Options of `run` as a job file gives them, through the parser of the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collidecli.commands.run import RunRequest

FIXED = ("output", "scenes", "trajectory", "each", "force", "skip_existing", "trace")
"""Parameters of `run` that the batch sets for each episode, or that no episode has."""


def job_request(scenes: Sequence[str], options: Mapping[str, Any], where: str) -> RunRequest:
    """The request of a job for options of `run` by long name, parsed as the command line parses them."""
    from collidecli.cli.run import request_of
    from collidecli.cli.run import verb as run_verb
    from collidecli.errors import InputError

    known = {
        name[2:]: parameter
        for parameter in run_verb.params
        if isinstance(parameter, click.Option) and parameter.expose_value and parameter.name not in FIXED
        for name in parameter.opts
        if name.startswith("--")
    }
    words: list[str] = []
    for key, value in options.items():
        name = key.replace("_", "-")
        if name.replace("-", "_") in FIXED:
            raise InputError(f"the option '{key}' cannot be set in a job file", where, "remove it")
        if name not in known:
            close = get_close_matches(name, known, n=1)
            raise InputError(
                f"run has no option '{key}'", where, f"did you mean {close[0]}?" if close else "see collide run --help"
            )
        words += _words(known[name], name, value, where)
    try:
        with run_verb.make_context("run", [*words, "--", *scenes], resilient_parsing=False) as ctx:
            values = {**ctx.params, "output": "", "trajectory": None, "force": False}
    except click.ClickException as error:
        raise InputError(error.format_message(), f"{where}, options") from None
    return request_of(values.pop("scenes"), values)


def _words(parameter: click.Option, name: str, value: Any, where: str) -> list[str]:
    """Words of the command line for an option's value in TOML."""
    from collidecli.errors import InputError

    if parameter.is_flag:
        if not isinstance(value, bool):
            raise InputError(f"{name} is {value!r}", f"{where}, options", "write true or false")
        return [f"--{name}"] if value else []
    if isinstance(value, list):
        texts = [str(one) for one in value]
        return (
            [word for text in texts for word in (f"--{name}", text)]
            if parameter.multiple
            else [f"--{name}", ",".join(texts)]
        )
    if isinstance(value, (bool, dict)):
        raise InputError(f"{name} is {value!r}", f"{where}, options", "write a number, a text or a list")
    return [f"--{name}={value}"]
