"""Terminal tables of an import."""

from __future__ import annotations

from rich.console import Group, RenderableType

from collidecli.pages.engine_text import engine_text
from collidecli.pages.pair_tables import contact_text, deepest_text, pair_tables
from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import name_value_table
from collidecli.wording import count, plural


def import_table(result: ResultDict) -> RenderableType:
    """Tables of collide.import/1."""
    engine = result["engine"]
    rows = [
        ("engine", engine_text(engine)),
        ("options", engine["options"]),
        (
            "scene",
            (
                f"{result['scene']}, {plural(result['cells'], 'cell')},"
                f" {plural(result['pairs'], 'pair')}"
            ),
        ),
        (
            "shapes",
            ", ".join(f"{count(number)} {state}" for state, number in engine["shapes"].items()),
        ),
        *(("", reason) for reason in engine["reasons"]),
        ("contacts", contact_text(result)),
        ("deepest", deepest_text(result["deepest"])),
    ]
    if result["unusable_rows"]:
        zero = f"{count(result['zero_normals'])} normals that are zero"
        rows.append(
            ("unusable", f"{plural(result['unusable_rows'], 'contact')}, with {zero}: kept")
        )
    rows += [("written", result["output"]), ("content", result["content_sha256"])]
    return Group(name_value_table(rows), *pair_tables(result))
