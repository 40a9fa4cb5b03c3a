"""An audit as JUnit XML, Markdown and GitHub annotations."""

from __future__ import annotations

from collidecli.escaping import github_command, markdown_code, markdown_text, printable_values
from collidecli.report.audit_words import CHECKS, audit_verdict, check_limit, stages, usable_text
from collidecli.report.diff_pages import junit_document, junit_suite, markdown_rows
from collidecli.report.words import ResultDict, length
from collidecli.scene.text_format import count, plural

MOST_ROWS = 20


def junit_audit(result: ResultDict, seconds: float) -> bytes:
    """JUnit XML with a test case per check. seconds: duration of the audit."""
    return junit_document([junit_suite("collide audit", "collide.audit", stages(printable_values(result)), seconds)])


def markdown_audit(result: ResultDict) -> str:
    """A Markdown section for a step summary."""
    result = printable_values(result)
    checks = [
        [CHECKS[one["name"]], check_limit(one), count(one["pairs"]), length(one["deepest"]), _state(one)]
        for one in result["checks"]
    ]
    lines = [
        f"### collide audit: {'passed' if result['passed'] else 'failed'}",
        "",
        markdown_text(audit_verdict(result)),
        "",
        markdown_text(f"Usable frames: {usable_text(result)}"),
        "",
        *markdown_rows(["check", "limit", "pairs", "deepest", "result"], checks),
    ]
    failing = [one for one in result["pairs"] if one["exceeds"]]
    if failing:
        rows = [
            [
                markdown_code(one["shape0"]), markdown_code(one["shape1"]), length(one["depth"]), str(one["frame"]),
                str(one["world"]), count(one["cells_over"]),
            ]
            for one in failing[:MOST_ROWS]
        ]  # fmt: skip
        lines += ["", *markdown_rows(["shape 0", "shape 1", "deepest", "frame", "world", "frames over"], rows)]
        more = len(failing) - len(rows)
        lines += ["", f"and {plural(more, 'more pair')}"] if more else []
    if result["warnings"]:
        lines += ["", *(f"- note: {markdown_text(note)}" for note in result["warnings"])]
    return "\n".join(lines) + "\n"


def _state(check: ResultDict) -> str:
    if check["failing"]:
        return f"failed: {plural(check['failing'], 'pair')}"
    return "no limit" if check["limit"] is None and check["name"] != "tunnel" else "passed"


def github_audit(result: ResultDict) -> list[str]:
    """Workflow commands of GitHub Actions: an error per failed check, or one notice."""
    result = printable_values(result)
    if result["passed"]:
        return [github_command("notice", "collide audit", audit_verdict(result))]
    failed = [(name, lines) for name, lines in stages(result) if lines]
    return [github_command("error", f"collide audit: {name}", "\n".join(lines[:10])) for name, lines in failed]
