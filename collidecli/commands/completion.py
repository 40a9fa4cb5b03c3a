"""The verb `completion`: the script with which a shell completes verbs and options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from collidecli.commands.results import Result


@dataclass(frozen=True)
class CompletionResult(Result):
    """shell: "bash", "zsh" or "fish". script: the text of the script."""

    SCHEMA: ClassVar[str] = "collide.completion/1"

    shell: str
    script: str
