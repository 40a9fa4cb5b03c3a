"""The command `collide`: a group of verbs, each imported only when it is asked for.

Exit codes: 0 done (for check and diff: no difference); 1 a difference or a failed check; 2 a usage error or an input
that cannot be used; 3 an output that cannot be written, a closed pipe included; 70 an error in this program itself;
130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from collidecli.cli.stop import StopHandler, Stopped, stopping_in_time
from collidecli.cli.streams import Streams, exit_code_of

VERBS = {
    "run": "Find every contact of a scene in motion, in every frame of every world.",
    "profile": "Time every broad phase on the same motion, and recommend one.",
    "inspect": "Show a scene, a recording or a contact set as tables.",
    "record": "Simulate an MJCF or URDF scene in MuJoCo and record its motion.",
    "traj": "Convert a recording of any known kind to a trajectory: collide traj convert.",
    "diff": "Compare two contact sets: what is missing, extra or changed.",
    "events": "List when pairs begin and stop touching, and how deep they get.",
    "report": "Write a contact set as one HTML page: over time, pairs, depths, timing, differences.",
    "plot": "Draw one chart of a contact set, as PNG or SVG.",
    "view": "Show scene, motion and contacts in a browser, or write them as a page.",
    "textconv": "Print a contact set as text, so that git diff shows what changed.",
    "export": "Write a contact set for other programs: USD, CSV, Parquet, NPZ, simulators' layouts.",
    "merge": "Join contact sets of disjoint frames or worlds into one.",
    "cache": "Show what signed distance fields are kept on disk between runs, or remove them.",
    "check": "Check that a contact set or a trajectory is well formed and complete.",
}
"""Each verb is `verb` in the module of its name in collidecli.cli."""

EPILOG = """\b
Exit codes
  0    done; for check and diff: no difference
  1    a difference, or a failed check
  2    a usage error, or an input that cannot be used
  3    an output that cannot be written
  70   an error in collide itself
  130  interrupted
"""


class LazyGroup(click.Group):
    """The verbs by name; `collide --help` imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        return import_module(f"collidecli.cli.{cmd_name}").verb

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]):
        # Click would import every verb to look for one of a similar name.
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], VERBS, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"the verbs are: {', '.join(VERBS)}"
            raise click.UsageError(f"there is no verb '{args[0]}': {hint}", ctx)
        return super().resolve_command(ctx, args)


def print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Prints the version and ends, where it is asked for."""
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"collide {version('collidecli')}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    subcommand_metavar="VERB ...",
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=print_version, help="Show the version."
)
@click.pass_context
def group(ctx: click.Context) -> int:
    """Batch collision: a scene and a recorded motion in, an exact contact set out.

    \b
    collide run robot.xml -t motion.h5 -o out.h5
    collide <verb> --help says more about each verb.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        return 2
    return 0


def main(args: Sequence[str] | None = None) -> int:
    """Runs the command line in this process; returns the exit code. `guard.command` is what `collide` calls.

    args: without the program's name; sys.argv's where None.
    """
    streams = Streams()
    streams.prepare()
    stop = StopHandler()
    try:
        with stopping_in_time() as stop:
            code = group.main(args, "collide", standalone_mode=False, obj=streams, auto_envvar_prefix="COLLIDE")
            streams.flush()
        return int(code or 0)
    except BaseException as error:
        # What a library makes of an exception in its callback is still the signal's doing.
        return exit_code_of(Stopped() if stop.stopping else error, streams)


if __name__ == "__main__":
    from collidecli.cli.guard import command

    sys.exit(command())
