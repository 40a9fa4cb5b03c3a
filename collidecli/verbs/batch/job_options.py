"""Options of `run` as a job file gives them, through the parser of the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from collidecli.cli.shared_options import request_of
from collidecli.errors import InputError
from collidecli.wording import did_you_mean

if TYPE_CHECKING:
    from collidecli.verbs.run.run import RunRequest

FIXED = ("output", "scenes", "trajectory", "each", "force", "skip_existing", "trace")
"""Parameters of `run` that the batch sets for each episode, or that no episode has."""
OF_AN_ENGINE = ("engine", "engine-option", "engine-python")
"""Options of `run` for contacts of another engine. The key of an episode stands for contacts that
are the same wherever they are computed; those of another engine change with its version and its
Python, which each worker has of its own."""


def job_options() -> dict[str, click.Option]:
    """The options of `run` that a job file may have, by long name without dashes."""
    from collidecli.verbs.run.command import verb as run_verb

    by_name = {
        name[2:]: parameter
        for parameter in run_verb.params
        if isinstance(parameter, click.Option)
        and parameter.expose_value
        and parameter.name not in FIXED
        for name in parameter.opts
        if name.startswith("--")
    }
    return {name: parameter for name, parameter in by_name.items() if name not in OF_AN_ENGINE}


def job_request(scenes: Sequence[str], given: Mapping[str, Any], where: str) -> RunRequest:
    """The request of a job for options of `run` by long name, parsed as the command line parses
    them."""
    from collidecli.verbs.run.command import verb as run_verb
    from collidecli.verbs.run.run import RunRequest

    known = job_options()
    words: list[str] = []
    for key, value in given.items():
        name = key.replace("_", "-")
        if name.replace("-", "_") in FIXED or name in OF_AN_ENGINE:
            other = "; collide run --engine computes contacts of another engine"
            fix = "remove it" + (other if name in OF_AN_ENGINE else "")
            raise InputError(f"the option '{key}' cannot be set in a job file", where, fix)
        if name not in known:
            raise InputError(
                f"run has no option '{key}'",
                where,
                did_you_mean(name, known, "see collide run --help"),
            )
        if isinstance(value, dict) or isinstance(value, bool) != known[name].is_flag:
            fix = (
                "write true or false" if known[name].is_flag else "write a number, a text or a list"
            )
            raise InputError(f"{name} is {value!r}", f"{where}, options", fix)
        texts = [str(item) for item in value] if isinstance(value, list) else [str(value)]
        if known[name].is_flag:
            words += [f"--{name}"] if value else []
        else:
            words += [
                f"--{name}={text}"
                for text in (texts if known[name].multiple else [",".join(texts)])
            ]
    try:
        with run_verb.make_context("run", [*words, "--", *scenes], resilient_parsing=False) as ctx:
            values = ctx.params
            fixed = {"scenes": values["scenes"], "output": "", "trajectory": None, "force": False}
            return request_of(RunRequest, values, **fixed)
    except click.ClickException as error:
        raise InputError(error.format_message(), f"{where}, options") from None
