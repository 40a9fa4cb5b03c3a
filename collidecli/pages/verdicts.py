"""Verdicts of a verb as JUnit XML, a section of Markdown, and annotations of GitHub Actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.text import Text

from collidecli.escaping import github_command


def verdict_text(words: str, is_good: bool) -> Text:
    """A verdict for a terminal: green if it is good, else red; its words say which without
    colours."""
    return Text(words, style=f"bold {'green' if is_good else 'red'}")


MAX_ANNOTATIONS = 5
"""GitHub shows at most ten annotations of a step; the rest is left to other commands of the
step."""


@dataclass(frozen=True)
class Finding:
    """What a verb has checked, and a line for each failure; without a line it has passed, or was
    not checked for the reason `skipped`."""

    name: str
    lines: Sequence[str]
    skipped: str = ""


@dataclass(frozen=True)
class Suite:
    """Findings about one input. kind: "failure", or "error" if the input cannot be checked.
    seconds: duration."""

    name: str
    classname: str
    findings: Sequence[Finding]
    seconds: float
    kind: str = "failure"


@dataclass(frozen=True)
class Verdict:
    """A verb's verdict. words: the verdict in one line. failures: title and text of each
    annotation.

    markdown: a section for a step summary.
    """

    verb: str
    words: str
    suites: Sequence[Suite]
    failures: Sequence[tuple[str, str]]
    markdown: str

    @classmethod
    def of(
        cls, verb: str, words: str, findings: Sequence[Finding], seconds: float, markdown: str
    ) -> Verdict:
        """The verdict about one input. seconds: duration of the check."""
        failures = [
            (finding.name, "\n".join(finding.lines[:10])) for finding in findings if finding.lines
        ]
        suite = Suite(f"collide {verb}", f"collide.{verb}", findings, seconds)
        return cls(verb, words, [suite], failures, markdown)

    def junit_xml(self) -> bytes:
        """JUnit XML of the suites, with a test case for each finding and with their totals."""
        from xml.etree import ElementTree

        names = ("tests", "failures", "errors", "skipped")
        totals: Counter[str] = Counter(dict.fromkeys(names, 0))
        root = ElementTree.Element("testsuites")
        for part in self.suites:
            counts = Counter(
                {
                    "tests": len(part.findings),
                    f"{part.kind}s": sum(bool(f.lines) for f in part.findings),
                    "skipped": sum(bool(f.skipped) for f in part.findings),
                }
            )
            totals.update(counts)
            numbers = {name: str(counts[name]) for name in names} | {"time": f"{part.seconds:.3f}"}
            suite = ElementTree.SubElement(root, "testsuite", {"name": part.name, **numbers})
            for finding in part.findings:
                attributes = {"classname": part.classname, "name": finding.name, "time": "0"}
                case = ElementTree.SubElement(suite, "testcase", attributes)
                if finding.skipped:
                    ElementTree.SubElement(case, "skipped", {"message": finding.skipped})
                if finding.lines:
                    about = {"message": finding.lines[0], "type": "difference"}
                    ElementTree.SubElement(case, part.kind, about).text = "\n".join(finding.lines)
        seconds = sum(round(part.seconds, 3) for part in self.suites)
        root.attrib.update({name: str(totals[name]) for name in names} | {"time": f"{seconds:.3f}"})
        ElementTree.indent(root)
        return ElementTree.tostring(root, "utf-8", xml_declaration=True) + b"\n"

    def annotations(self) -> list[str]:
        """Workflow commands of GitHub Actions: an error for each of the first failures, or one
        notice."""
        title = f"collide {self.verb}"
        if not self.failures:
            return [github_command("notice", title, self.words)]
        found = [github_command("error", f"{title}: {name}", text) for name, text in self.failures]
        if len(found) > MAX_ANNOTATIONS:
            rest = ", ".join(name for name, _ in self.failures[MAX_ANNOTATIONS - 1 :])
            found = [
                *found[: MAX_ANNOTATIONS - 1],
                github_command("error", title, f"and more: {rest}"),
            ]
        return found


def markdown_section(heading: str, *blocks: Iterable[str]) -> str:
    """A section of blocks of lines; a block without lines is left out. heading, blocks: in
    Markdown."""
    parts = ["\n".join(lines) for lines in ([f"### {heading}"], *blocks)]
    return "\n\n".join(filter(None, parts)) + "\n"


def markdown_rows(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    """The lines of a Markdown table, of cells in Markdown; none without rows."""
    body = list(rows)
    return (
        [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *body)] if body else []
    )
