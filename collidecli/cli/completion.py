"""Command line of `collide completion`."""

from __future__ import annotations

import click

from collidecli.cli.options import Verb, streams_of
from collidecli.cli.streams import unbroken_pipe

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_COLLIDE_COMPLETE"
"""Environment variable with which the script of the shell calls `collide` for the words that may follow."""
EPILOG = """\b
collide completion bash > ~/.local/share/bash-completion/completions/collide
collide completion zsh > "${fpath[1]}/_collide"
collide completion fish > ~/.config/fish/completions/collide.fish
"""


@click.command("completion", cls=Verb, epilog=EPILOG)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def verb(ctx: click.Context, shell: str) -> int:
    """Print a script that completes verbs and options of collide in a shell."""
    from click.shell_completion import get_completion_class

    from collidecli.commands.completion import CompletionResult

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "collide", VARIABLE).source()
    streams = streams_of(ctx)
    if streams.json:
        streams.result(CompletionResult(shell, script), str)
        return 0
    with unbroken_pipe():
        print(script, end="", flush=True)
    return 0
