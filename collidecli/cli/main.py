"""The command `collide`: a group of verbs, each imported only when it is called.

Its exit codes are those of `exit_codes`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import click

from collidecli.cli.error_messages import exit_code_of
from collidecli.cli.stop import StopHandler, Stopped, stopping_in_time
from collidecli.cli.streams import Streams
from collidecli.cli.verbs import HELP, VERBS
from collidecli.engine.runtime.owned_process import owned_process
from collidecli.exit_codes import EXIT_CODES, SUCCESS, UNUSABLE_INPUT

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

EPILOG = "\b\nExit codes\n" + "".join(
    f"  {code:<3}  {meaning}\n" for code, meaning in EXIT_CODES.items()
)


class LazyGroup(click.Group):
    """A group that imports a verb only when it is called; `collide --help` imports none.

    `collide help VERB` is `collide VERB --help`.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == [HELP] else args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        items = super().shell_complete(ctx, incomplete)
        if HELP.startswith(incomplete):
            items.append(CompletionItem(HELP, help="Show the options of a verb."))
        return items

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        return import_module(f"collidecli.verbs.{VERBS[cmd_name].module}").verb

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, VERBS))
        for title in dict.fromkeys(row.group for row in VERBS.values()):
            of_group = [row for row in VERBS.values() if row.group == title]
            with formatter.section(title):
                formatter.write_dl([(row.name.ljust(width), row.summary) for row in of_group])

    def resolve_command(self, ctx: click.Context, args: list[str]):
        # Click would import every verb to find similar names.
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            from collidecli.wording import did_you_mean

            hint = did_you_mean(args[0], [*VERBS, HELP], f"the verbs are: {', '.join(VERBS)}")
            raise click.UsageError(f"there is no verb '{args[0]}': {hint}", ctx)
        return super().resolve_command(ctx, args)


def print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Callback of --version: prints the version and exits."""
    if wanted and not ctx.resilient_parsing:
        from collidecli.installed_versions import installed_version

        click.echo(f"collide {installed_version('collidecli')}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    subcommand_metavar="VERB ...",
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=print_version,
    help="Show the version.",
)
@click.pass_context
def group(ctx: click.Context) -> int:
    """Batch collision: computes the exact contact set of a scene and a recorded motion.

    \b
    collide run robot.xml -t motion.h5 -o out.h5
    collide help VERB, or collide VERB --help, shows the options of a verb.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        return UNUSABLE_INPUT
    return SUCCESS


def main(args: Sequence[str] | None = None) -> int:
    """Runs the command line in this process; returns the exit code. The entry point of `collide` is
    `guard.command`.

    args: without the program's name; None is those of sys.argv.
    """
    streams = Streams()
    streams.prepare()
    # for an error before the options are read
    streams.json = "--json" in (sys.argv[1:] if args is None else args)
    stop = StopHandler()
    try:
        with stopping_in_time() as stop, owned_process():
            streams.is_stopping = partial(getattr, stop, "stopping")
            code = group.main(
                args, "collide", standalone_mode=False, obj=streams, auto_envvar_prefix="COLLIDE"
            )
            streams.warn_of_kernels()
            streams.flush()
        return int(code or SUCCESS)
    except BaseException as error:
        # A library may replace the Stopped exception that a signal raised in its callback.
        return exit_code_of(Stopped() if stop.stopping else error, streams)
