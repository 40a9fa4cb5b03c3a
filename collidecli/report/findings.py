"""Verdicts of a verb as JUnit XML, a section of Markdown, and annotations of GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from collidecli.escaping import github_command

MAX_ANNOTATIONS = 5
"""GitHub shows at most ten annotations of a step; the rest is left to other commands of the step."""


@dataclass(frozen=True)
class Finding:
    """What a verb has checked, and a line for each failure; without a line it has passed."""

    name: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Suite:
    """Findings about one input. kind: "failure", or "error" if the input cannot be checked. seconds: duration."""

    name: str
    classname: str
    findings: Sequence[Finding]
    seconds: float
    kind: str = "failure"

    def element(self) -> ElementTree.Element:
        """The suite in JUnit XML, with a test case for each finding."""
        failed = sum(bool(one.lines) for one in self.findings)
        totals = {"failures": "0", "errors": "0", f"{self.kind}s": str(failed)}
        counts = {"skipped": "0", "tests": str(len(self.findings)), **totals, "time": f"{self.seconds:.3f}"}
        suite = ElementTree.Element("testsuite", {"name": self.name, **counts})
        for one in self.findings:
            names = {"classname": self.classname, "name": one.name, "time": "0"}
            case = ElementTree.SubElement(suite, "testcase", names)
            if one.lines:
                failure = ElementTree.SubElement(case, self.kind, {"message": one.lines[0], "type": "difference"})
                failure.text = "\n".join(one.lines)
        return suite


@dataclass(frozen=True)
class Verdict:
    """A verb's verdict. words: the verdict in one line. failures: title and text of each annotation.

    markdown: a section for a step summary.
    """

    verb: str
    words: str
    suites: Sequence[Suite]
    failures: Sequence[tuple[str, str]]
    markdown: str

    @classmethod
    def of(cls, verb: str, words: str, findings: Sequence[Finding], seconds: float, markdown: str) -> Verdict:
        """The verdict about one input. seconds: duration of the check."""
        failures = [(one.name, "\n".join(one.lines[:10])) for one in findings if one.lines]
        suite = Suite(f"collide {verb}", f"collide.{verb}", findings, seconds)
        return cls(verb, words, [suite], failures, markdown)

    def junit_xml(self) -> bytes:
        """JUnit XML of the suites, with their totals."""
        suites = [suite.element() for suite in self.suites]
        names = ("tests", "failures", "errors")
        totals = {name: str(sum(int(suite.attrib[name]) for suite in suites)) for name in names}
        seconds = sum(float(suite.attrib["time"]) for suite in suites)
        root = ElementTree.Element("testsuites", {**totals, "time": f"{seconds:.3f}"})
        root.extend(suites)
        ElementTree.indent(root)
        return ElementTree.tostring(root, "utf-8", xml_declaration=True) + b"\n"

    def annotations(self) -> list[str]:
        """Workflow commands of GitHub Actions: an error for each of the first failures, or one notice."""
        title = f"collide {self.verb}"
        if not self.failures:
            return [github_command("notice", title, self.words)]
        found = [github_command("error", f"{title}: {name}", text) for name, text in self.failures]
        if len(found) > MAX_ANNOTATIONS:
            rest = ", ".join(name for name, _ in self.failures[MAX_ANNOTATIONS - 1 :])
            found = [*found[: MAX_ANNOTATIONS - 1], github_command("error", title, f"and more: {rest}")]
        return found


def markdown_section(heading: str, *blocks: Iterable[str]) -> str:
    """A section of blocks of lines; a block without lines is left out. heading, blocks: in Markdown."""
    parts = ["\n".join(lines) for lines in ([f"### {heading}"], *blocks)]
    return "\n\n".join(filter(None, parts)) + "\n"


def markdown_rows(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    """The lines of a Markdown table, of cells in Markdown; none without rows."""
    held = list(rows)
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *held)] if held else []
