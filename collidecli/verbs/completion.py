"""The verb `completion`: the script with which a shell completes verbs and options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import click

from collidecli.cli.commands import Verb
from collidecli.cli.pipes import unbroken_pipe
from collidecli.cli.streams import streams_of
from collidecli.exit_codes import SUCCESS
from collidecli.results.result import Result


@dataclass(frozen=True)
class CompletionResult(Result):
    """shell: "bash", "zsh" or "fish". script: the text of the script."""

    SCHEMA: ClassVar[str] = "collide.completion/1"

    shell: str
    script: str


VARIABLE = "_COLLIDE_COMPLETE"
"""Environment variable with which the script of the shell calls `collide` for the words that may
follow."""
COMPLETION_EPILOG = """\b
collide completion bash > ~/.local/share/bash-completion/completions/collide
collide completion zsh > "${fpath[1]}/_collide"
collide completion fish > ~/.config/fish/completions/collide.fish
"""


@click.command("completion", cls=Verb, epilog=COMPLETION_EPILOG)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def verb(ctx: click.Context, shell: str) -> int:
    """Print a script that completes verbs and options of collide in a shell."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "collide", VARIABLE).source()
    streams = streams_of(ctx)
    if streams.json:
        streams.result(CompletionResult(shell, script), str)
        return SUCCESS
    with unbroken_pipe():
        print(script, end="", flush=True)
    return SUCCESS
