"""`python -m tests.bench.tables [names]`: the tables in out/bench as Markdown.

With --into FILE, each goes between its two marks there, `<!-- bench: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import click

from tests.bench.__main__ import BENCHES
from tests.bench.result import BenchTable
from tests.bench.scenes import FOLDER

MARKS = re.compile(r"(<!-- bench: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(BENCHES))
@click.option(
    "--into", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A Markdown file to refresh."
)
def main(names: tuple[str, ...], into: Path | None) -> None:
    """Print what the benchmarks found, or put it INTO a document."""
    found = {name: as_markdown(name) for name in names or BENCHES if (FOLDER / f"{name}.json").exists()}
    missing = [name for name in names or BENCHES if name not in found]
    if missing:
        click.echo(f"not measured: {', '.join(missing)}; run python -m tests.bench {' '.join(missing)}", err=True)
    if into is None:
        click.echo("\n\n".join(found.values()))
        return
    text = into.read_text()
    into.write_text(
        MARKS.sub(lambda mark: f"{mark[1]}{found[mark[2]]}\n{mark[3]}" if mark[2] in found else mark[0], text)
    )


def as_markdown(name: str) -> str:
    """A kept result as a Markdown table, and where, when and with what it was measured."""
    facts = json.loads((FOLDER / f"{name}.json").read_text())
    table = BenchTable(**{field.name: facts[field.name] for field in fields(BenchTable)})
    versions = ", ".join(f"{package} {number}" for package, number in facts["versions"].items() if number)
    clock = "the wall clock" if facts["clock"] == "wall" else "processor time"
    machine = f"{facts['processor']}, {facts['cores']} cores, load average {facts['load_average']:.1f} at the end"
    return f"{table.markdown()}\n\nMeasured {facts['date']} by {clock}: {machine}; {versions}."


if __name__ == "__main__":
    main()
