"""A comparison of two contact sets as JUnit XML, Markdown and GitHub annotations."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree

from collidecli.escaping import github_command, markdown_code, markdown_text, printable_values
from collidecli.report.diff_words import (
    KINDS,
    at_limit_text,
    cell_text,
    deviation,
    frame_lines,
    group_lines,
    model_line,
    verdict,
)
from collidecli.report.words import ResultDict
from collidecli.scene.contact_groups import group_words
from collidecli.scene.text_format import count, plural

MAX_ANNOTATIONS = 5
"""GitHub shows at most ten annotations of a step; the rest is left to other commands of the step."""
MAX_CELL_LENGTH = 100


def stages(result: ResultDict) -> list[tuple[str, list[str]]]:
    """Name and failures of each stage of the comparison; a stage without failures has passed."""
    contacts, worlds = result["contacts"], result["worlds"]
    of = contacts["what"]
    found: list[tuple[str, list[str]]] = [
        ("model", [model_line(one) for one in result["model"]["listed"]]),
        ("frames", frame_lines(result)),
        (
            "worlds",
            [f"{worlds['a']} in A and {worlds['b']} in B"] if worlds["a"] != worlds["b"] else [],
        ),
    ]
    for kind in KINDS:
        over = contacts[kind] > contacts["allowed"][kind]
        pairs = [pair for pair in result["pairs"]["listed"] if pair[kind]] if over else []
        lines = [f"{count(contacts[kind])} {kind}, {count(contacts['allowed'][kind])} allowed"] if over else []
        lines += [f"{p['shape0']} and {p['shape1']}: {count(p[kind])}, first in {cell_text(p['first'])}" for p in pairs]
        if kind == "changed" and over:
            lines += [
                f"{f['name']}: {count(f['changed'])} changed, by up to {deviation(f['largest'], f['unit'])}"
                for f in result["fields"]
                if f["changed"]
            ]
        found.append((f"{of} {kind}", lines))
    for group in result["groups"]:
        over = any(group[kind] > group["allowed"][kind] for kind in KINDS)
        found.append((group_words(group["name"]), group_lines({"groups": [group]}) if over else []))
    return found


def junit_xml(result: ResultDict, seconds: float) -> bytes:
    """JUnit XML with a test case per stage. seconds: duration of the comparison."""
    return junit_document([junit_suite("collide diff", "collide.diff", stages(printable_values(result)), seconds)])


def junit_suite(
    name: str, classname: str, cases: list[tuple[str, list[str]]], seconds: float, kind: str = "failure"
) -> ElementTree.Element:
    """A suite with a test case per stage. kind: "failure", or "error" if the comparison was not possible."""
    failed = sum(bool(lines) for _, lines in cases)
    totals = {"failures": "0", "errors": "0", f"{kind}s": str(failed)}
    suite = ElementTree.Element(
        "testsuite", {"name": name, "skipped": "0", "tests": str(len(cases)), **totals, "time": f"{seconds:.3f}"}
    )
    for case_name, lines in cases:
        case = ElementTree.SubElement(suite, "testcase", {"classname": classname, "name": case_name, "time": "0"})
        if lines:
            failure = ElementTree.SubElement(case, kind, {"message": lines[0], "type": "difference"})
            failure.text = "\n".join(lines)
    return suite


def junit_document(suites: list[ElementTree.Element]) -> bytes:
    """JUnit XML of suites, with their totals."""
    totals = {name: str(sum(int(suite.attrib[name]) for suite in suites)) for name in ("tests", "failures", "errors")}
    seconds = sum(float(suite.attrib["time"]) for suite in suites)
    root = ElementTree.Element("testsuites", {**totals, "time": f"{seconds:.3f}"})
    root.extend(suites)
    ElementTree.indent(root)
    return ElementTree.tostring(root, "utf-8", xml_declaration=True) + b"\n"


def markdown(result: ResultDict, title: str = "collide diff") -> str:
    """A Markdown section for a step summary."""
    result = printable_values(result)
    contacts = result["contacts"]
    lines = [
        f"### {_cell(title)}: {'equal' if result['equal'] else 'different'}",
        "",
        _cell(verdict(result), most=1000),
        "",
        *markdown_rows(
            ["", "A", "B"], [[name, *_sides(result, name)] for name in ("file", "frames", "worlds", "contacts")]
        ),
    ]
    wrong = [model_line(one) for one in result["model"]["listed"]] + frame_lines(result)
    if wrong:
        lines += ["", *(f"- {_cell(line, most=300)}" for line in wrong)]
    if result["pairs"]["listed"]:
        rows = [
            [_code(p["shape0"]), _code(p["shape1"]), *(count(p[kind]) for kind in KINDS), cell_text(p["first"])]
            for p in result["pairs"]["listed"]
        ]
        lines += ["", *markdown_rows(["shape 0", "shape 1", *KINDS, "first in"], rows)]
        more = result["pairs"]["differing"] - len(rows)
        lines += ["", f"and {plural(more, 'more pair')}"] if more else []
    fields = [one for one in result["fields"] if one["differing"]]
    if fields:
        rows = [
            [f["name"], count(f["differing"]), count(f["changed"]), deviation(f["largest"], f["unit"])] for f in fields
        ]
        lines += ["", *markdown_rows(["field", "differ", "beyond tolerance", "largest"], rows)]
    if differing := group_lines(result):
        lines += ["", *(f"- {_cell(line.strip(), most=300)}" for line in differing)]
    if contacts["ignored_shallow"]:
        ignored = plural(contacts["ignored_shallow"], "contact")
        lines += ["", f"Ignored: {ignored} within --ignore-shallow of the gap."]
    if at_limit := at_limit_text(result):
        lines += ["", f"At the limit, not counted: {at_limit} within the tolerance of the pair's gap."]
    if result["notes"]:
        lines += ["", *(f"- note: {_cell(note, most=300)}" for note in result["notes"])]
    return "\n".join(lines) + "\n"


def _sides(result: ResultDict, name: str) -> list[str]:
    values = [result[side][name] for side in ("a", "b")]
    return [_code(value) if isinstance(value, str) else count(value) for value in values]


def markdown_rows(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    """The lines of a Markdown table, of cells in Markdown."""
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def _cell(text: str, most: int = MAX_CELL_LENGTH) -> str:
    return markdown_text(text if len(text) <= most else text[: most - 3] + "...")


def _code(text: str) -> str:
    return markdown_code(text if len(text) <= MAX_CELL_LENGTH else "..." + text[3 - MAX_CELL_LENGTH :])


def github_annotations(result: ResultDict) -> list[str]:
    """Workflow commands of GitHub Actions: an error per failed stage, or one notice."""
    result = printable_values(result)
    if result["equal"]:
        return [github_command("notice", "collide diff", verdict(result))]
    failed = [(name, lines) for name, lines in stages(result) if lines]
    found = [github_command("error", f"collide diff: {name}", "\n".join(lines[:10])) for name, lines in failed]
    if len(found) > MAX_ANNOTATIONS:
        rest = ", ".join(name for name, _ in failed[MAX_ANNOTATIONS - 1 :])
        found = [*found[: MAX_ANNOTATIONS - 1], github_command("error", "collide diff", f"and more: {rest}")]
    return found
