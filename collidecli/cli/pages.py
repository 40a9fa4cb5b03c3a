"""Pages of a verdict for CI: JUnit XML, Markdown and annotations."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Pages:
    """Outputs of a verdict. junit_xml, markdown: files, None is none. github: print annotations to stderr."""

    junit_xml: str | None
    markdown: str | None
    github: bool
    force: bool

    def write(self, junit_xml: Callable[[], bytes], markdown: Callable[[], str], github: Callable[[], list[str]]):
        """Writes the requested pages and prints the requested annotations."""
        from collidecli.commands.output_paths import write_output

        if self.junit_xml is not None:
            write_output(self.junit_xml, junit_xml(), self.force)
        if self.markdown is not None:
            write_output(self.markdown, markdown().encode(), self.force)
        if self.github:
            for line in github():
                print(line, file=sys.stderr)
