"""Two contact sets compared, for machines and pages of CI: JUnit XML, Markdown, GitHub annotations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree import ElementTree

from collidecli.report.diff_words import KINDS, deviation, frame_lines, model_line, place, verdict
from collidecli.scene.text_format import count, plural

MOST_ANNOTATIONS = 5
"""GitHub shows ten of a step; other steps want some too."""
MOST_CELL = 100


def stages(facts: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Each thing compared, and what is wrong with it; a stage without lines has passed."""
    contacts, worlds = facts["contacts"], facts["worlds"]
    of = contacts["what"]
    found: list[tuple[str, list[str]]] = [
        ("model", [model_line(one) for one in facts["model"]["listed"]]),
        ("frames", frame_lines(facts)),
        (
            "worlds",
            [f"{worlds['a']} in A and {worlds['b']} in B"] if worlds["a"] != worlds["b"] else [],
        ),
    ]
    for kind in KINDS:
        over = contacts[kind] > contacts["allowed"][kind]
        pairs = [pair for pair in facts["pairs"]["listed"] if pair[kind]] if over else []
        lines = [f"{count(contacts[kind])} {kind}, {count(contacts['allowed'][kind])} allowed"] if over else []
        lines += [f"{p['shape0']} and {p['shape1']}: {count(p[kind])}, first in {place(p['first'])}" for p in pairs]
        if kind == "changed" and over:
            lines += [
                f"{f['name']}: {count(f['changed'])} changed, by up to {deviation(f['largest'], f['unit'])}"
                for f in facts["fields"]
                if f["changed"]
            ]
        found.append((f"{of} {kind}", lines))
    return found


def junit_xml(facts: Mapping[str, Any], seconds: float) -> bytes:
    """One test case for each stage."""
    cases = stages(facts)
    failed = sum(bool(lines) for _, lines in cases)
    totals = {"tests": str(len(cases)), "failures": str(failed), "errors": "0", "time": f"{seconds:.3f}"}
    root = ElementTree.Element("testsuites", totals)
    suite = ElementTree.SubElement(root, "testsuite", {"name": "collide diff", "skipped": "0", **totals})
    for name, lines in cases:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "collide.diff", "name": name, "time": "0"})
        if lines:
            text = _xml_text("\n".join(lines))
            ElementTree.SubElement(case, "failure", {"message": _xml_text(lines[0]), "type": "difference"}).text = text
    ElementTree.indent(root)
    return ElementTree.tostring(root, "utf-8", xml_declaration=True) + b"\n"


def _xml_text(text: str) -> str:
    """Without what XML cannot hold."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def markdown(facts: Mapping[str, Any]) -> str:
    """A section for a step summary."""
    contacts = facts["contacts"]
    lines = [
        f"### collide diff: {'equal' if facts['equal'] else 'different'}",
        "",
        _cell(verdict(facts), most=1000),
        "",
        *_rows(["", "A", "B"], [[name, *_sides(facts, name)] for name in ("file", "frames", "worlds", "contacts")]),
    ]
    wrong = [model_line(one) for one in facts["model"]["listed"]] + frame_lines(facts)
    if wrong:
        lines += ["", *(f"- {_cell(line, most=300)}" for line in wrong)]
    if facts["pairs"]["listed"]:
        rows = [
            [_code(p["shape0"]), _code(p["shape1"]), *(count(p[kind]) for kind in KINDS), place(p["first"])]
            for p in facts["pairs"]["listed"]
        ]
        lines += ["", *_rows(["shape 0", "shape 1", *KINDS, "first in"], rows)]
        more = facts["pairs"]["differing"] - len(rows)
        lines += ["", f"and {plural(more, 'more pair')}"] if more else []
    fields = [one for one in facts["fields"] if one["differing"]]
    if fields:
        rows = [
            [f["name"], count(f["differing"]), count(f["changed"]), deviation(f["largest"], f["unit"])] for f in fields
        ]
        lines += ["", *_rows(["field", "not the same", "changed", "largest"], rows)]
    if contacts["ignored_shallow"]:
        lines += ["", f"{count(contacts['ignored_shallow'])} shallow contacts were left out."]
    if facts["notes"]:
        lines += ["", *(f"- note: {_cell(note, most=300)}" for note in facts["notes"])]
    return "\n".join(lines) + "\n"


def _sides(facts: Mapping[str, Any], name: str) -> list[str]:
    values = [facts[side][name] for side in ("a", "b")]
    return [_code(value) if isinstance(value, str) else count(value) for value in values]


def _rows(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def _cell(text: str, most: int = MOST_CELL) -> str:
    """Text that neither ends a table's cell nor is markup."""
    text = text if len(text) <= most else text[: most - 3] + "..."
    return "".join(f"\\{c}" if c in "\\|`*_<>[]#" else c for c in text)


def _code(text: str) -> str:
    text = text if len(text) <= MOST_CELL else "..." + text[3 - MOST_CELL :]
    return f"`{text.replace('|', chr(92) + '|').replace('`', chr(39))}`"


def github_annotations(facts: Mapping[str, Any]) -> list[str]:
    """Workflow commands: an error for each stage that failed, or one notice."""
    if facts["equal"]:
        return [_command("notice", "collide diff", verdict(facts))]
    failed = [(name, lines) for name, lines in stages(facts) if lines]
    found = [_command("error", f"collide diff: {name}", "\n".join(lines[:10])) for name, lines in failed]
    if len(found) > MOST_ANNOTATIONS:
        rest = ", ".join(name for name, _ in failed[MOST_ANNOTATIONS - 1 :])
        found = [*found[: MOST_ANNOTATIONS - 1], _command("error", "collide diff", f"and more: {rest}")]
    return found


def _command(kind: str, title: str, text: str) -> str:
    for plain, coded in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        title, text = title.replace(plain, coded), text.replace(plain, coded)
    return f"::{kind} title={title.replace(':', '%3A').replace(',', '%2C')}::{text}"
