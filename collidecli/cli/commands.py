"""The commands of verbs, and groups of them, with the options that every verb has."""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import partial
from typing import Any, TypeVar

import click

from collidecli.cli.error_messages import source_of
from collidecli.cli.settings import (
    CONFIG_FILE,
    PREFIX,
    Setting,
    VerbOption,
    read_config,
    variables_of,
    verbs_of,
)
from collidecli.cli.streams import streams_of
from collidecli.cli.value_types import PatternPair
from collidecli.errors import InputError
from collidecli.exit_codes import SUCCESS, UNUSABLE_INPUT
from collidecli.wording import did_you_mean

Group = TypeVar("Group")
COMMON = "Every verb"
WIDEST_TERM = 30
"""Width of an option and its value up to which its help begins on the same line of `--help`
[characters]."""


class Verb(click.Command):
    """A verb: its own options, and the options that every verb has."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)

        def store(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
            setattr(streams_of(ctx), str(parameter.name), value)

        common = partial(Setting, expose_value=False, section=COMMON)
        flag = partial(common, is_flag=True, callback=store)
        file = f"Read options from this file. [default: {CONFIG_FILE} in this folder, if it exists]"
        self.params += [
            common(["--config"], metavar="FILE", is_eager=True, callback=read_config, help=file),
            flag(["--json"], help="Print one JSON object instead of tables."),
            flag(["-q", "--quiet"], help="Print only errors, and with --json the object."),
            flag(["-v", "--verbose"], is_eager=True, help="Print a traceback with an error."),
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Joins the two values that a `PatternPair` had in earlier versions."""
        pairs = {
            name
            for param in self.params
            if isinstance(param.type, PatternPair)
            for name in param.opts
        }
        for at in reversed(range(len(args) - 2)):
            one, other = args[at + 1 : at + 3]
            if args[at] in pairs and not set(one) & {",", " "} and other[:1] != "-":
                args = [*args[: at + 1], f"{one} {other}", *args[at + 3 :]]
        try:
            left = super().parse_args(ctx, args)
        except click.MissingParameter:
            self._check_swallowed_scene(ctx)
            raise
        self._check_swallowed_scene(ctx)
        return left

    def _check_swallowed_scene(self, ctx: click.Context) -> None:
        """Raises UsageError where an option that needs no value has taken the only scene as its
        value: `run --visuals-as-colliders robot.urdf`."""
        arguments = [x for x in self.params if isinstance(x, click.Argument)]
        if any(ctx.params.get(str(argument.name)) for argument in arguments):
            return
        for parameter in self.params:
            value = ctx.params.get(str(parameter.name))
            values = value if isinstance(value, tuple) else (value,)
            if isinstance(parameter, click.Option) and isinstance(parameter.flag_value, str):
                for file in (text for text in values if isinstance(text, str)):
                    if os.path.isfile(file):
                        raise click.UsageError(
                            f"'{file}' is taken as the value of {parameter.opts[-1]}: give the"
                            " option after the scene.",
                            ctx,
                        )

    def make_parser(self, ctx: click.Context) -> Any:
        """Click's parser, which uses the last value of a repeated option; this one refuses it."""
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_once(args: list[str]) -> Any:
            parsed = parse(args)
            times = Counter(
                parameter for parameter in parsed[2] if isinstance(parameter, click.Option)
            )
            for parameter, number in times.items():
                if number > 1 and not (parameter.multiple or parameter.is_flag):
                    words = f"{parameter.opts[-1]} is given {number} times and takes one value"
                    several = ": 're:a|b' is a pattern of several names"
                    hint = several if isinstance(parameter.type, PatternPair) else ""
                    raise click.UsageError(f"{words}{hint}.", ctx)
            return parsed

        parser.parse_args = parse_once
        return parser

    def invoke(self, ctx: click.Context) -> Any:
        given = sorted(name for name in os.environ if name.startswith(PREFIX))
        verbs = verbs_of(ctx) if given else {}
        known = {name for words, verb in verbs.items() for name in variables_of(verb, words)}
        for name in given:
            if name not in known:
                streams_of(ctx).warn(
                    f"{name} sets no option; {did_you_mean(name, known, 'it is ignored')}"
                )
        try:
            return super().invoke(ctx)
        except InputError as error:
            source = _source(error, ctx)
            if not source:
                raise
            raise InputError(
                error.what, ", ".join(filter(None, (source, error.where))), error.fix
            ) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options under the headings of their sections, in the order of declaration,
        common options last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and row is not None:
                section = parameter.section if isinstance(parameter, VerbOption) else COMMON
                sections.setdefault(section, []).append(row)
        common = sections.pop(COMMON)
        width = max(
            len(term)
            for rows in (*sections.values(), common)
            for term, _ in rows
            if len(term) <= WIDEST_TERM
        )
        for heading, rows in (*sections.items(), (COMMON, common)):
            with formatter.section(heading):
                formatter.write_dl(
                    [(term.ljust(width), words) for term, words in rows], WIDEST_TERM
                )


def _source(error: InputError, ctx: click.Context) -> str:
    """The configuration file or variable that set the option of a refused value; "" for a flag, or
    no named option.

    Errors about options are located at "options" or at the flag, and name the option.
    """
    if not error.where.startswith(("options", "--")):
        return ""
    words = set(
        re.findall(r"[a-z_]+", f"{error.where} {error.what}".replace("--", "").replace("-", "_"))
    )
    for parameter in ctx.command.params:
        if parameter.name in words and (source := source_of(parameter, ctx)):
            return source
    return ""


@click.pass_context
def _print_help(ctx: click.Context) -> int:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        return UNUSABLE_INPUT
    return SUCCESS


class VerbGroup(click.Group):
    """A group whose help has the heading of `collide --help`, and which prints it without a
    verb."""

    def __init__(self, name: str, text: str, epilog: str) -> None:
        super().__init__(
            name,
            callback=_print_help,
            invoke_without_command=True,
            subcommand_metavar="VERB ...",
            help=text,
            epilog=epilog,
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            rows = [(name, self.commands[name].get_short_help_str(200)) for name in self.commands]
            formatter.write_dl(rows)
