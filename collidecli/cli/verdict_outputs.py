"""Outputs of a verdict for CI: JUnit XML, Markdown, annotations."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from collidecli.escaping import utf8

if TYPE_CHECKING:
    from collidecli.pages.verdicts import Verdict


@dataclass(frozen=True)
class Pages:
    """Outputs of a verdict. junit_xml, markdown: files, None is none. github: print annotations to
    stderr."""

    junit_xml: str | None
    markdown: str | None
    github: bool
    force: bool

    def write(self, verdict: Verdict) -> None:
        """Writes the requested pages and prints the requested annotations."""
        from collidecli.results.outputs import write_output

        if self.junit_xml is not None:
            write_output(self.junit_xml, verdict.junit_xml(), self.force)
        if self.markdown is not None:
            write_output(self.markdown, utf8(verdict.markdown), self.force)
        self.annotate(verdict)

    def annotate(self, verdict: Verdict) -> None:
        """Prints the requested annotations, and writes no page: for inputs that cannot be used."""
        for line in verdict.annotations() if self.github else ():
            print(line, file=sys.stderr)


def check_outputs(
    outputs: Mapping[str, str | None], names: str, force: bool, inputs: Iterable[str | None]
) -> dict[str, str]:
    """The requested outputs by name. names: of the options of all, for errors.

    Raises the errors of `check_output`, and UsageError for two outputs of one path.
    """
    from collidecli.results.outputs import check_output

    inputs = tuple(inputs)
    given = {name: path for name, path in outputs.items() if path is not None}
    for path in given.values():
        check_output(path, force, inputs)
    if len(set(given.values())) < len(given):
        raise click.UsageError(f"{names} have one path")
    return given
