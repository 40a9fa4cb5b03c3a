"""Tables of benchmarks: printed, kept as JSON in out/bench, and as Markdown by `python -m
tests.bench.result [names]`.

With --into FILE, each goes between its two marks there, `<!-- bench: NAME -->` and `<!-- end -->`.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from collidecli.motions.machine import processor_name, versions
from tests.bench.scenes import FOLDER

PLACES = {
    "passes": ("peers", "threads", "sap", "crossover", "growth", "methods", "stages"),
    "runs": ("start", "writing", "memory", "environments", "fields"),
    "meshes": ("newton", "meshes"),
    "depths": ("depths",),
    "surfaces": ("hydroelastic", "particles"),
    "lanes": ("lanes",),
    "traffic": ("traffic",),
}
"""Benchmarks of each module: functions `measure_NAME`."""
MODULE_OF = {name: module for module, names in PLACES.items() for name in names}
BENCHES = tuple(MODULE_OF)
UNITS = (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))


@dataclass
class BenchTable:
    """columns: titles. rows: texts. notes: what a reader has to know. samples: every measured
    number, by what it is."""

    name: str
    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    samples: dict[str, list[float]] = field(default_factory=dict)

    def add(self, *cells: object) -> None:
        self.rows.append([str(cell) for cell in cells])

    def keep(self, label: str, numbers: object) -> None:
        self.samples[label] = [float(x) for x in np.atleast_1d(np.asarray(numbers, float))]

    def add_times(
        self,
        cells: Sequence[object],
        times: Mapping[str, np.ndarray],
        label: str,
        per: float,
        slower: str,
        faster: str,
    ) -> None:
        """A row of cells, of each time over `per`, and of how many times as fast `faster` is; the
        seconds are kept."""
        each = [spread_time(seconds / per) for seconds in times.values()]
        self.add(*cells, *each, ratio(times[slower], times[faster]))
        for name, seconds in times.items():
            self.keep(f"{label} {name} seconds", seconds)

    def print(self, console: Console) -> None:
        table = Table(title=self.title, title_justify="left", title_style="bold")
        for column in self.columns:
            table.add_column(column, justify="left" if column == self.columns[0] else "right")
        for row in self.rows:
            table.add_row(*row)
        console.print(table)
        for note in self.notes:
            console.print(f"  {note}", highlight=False)
        console.print()

    def write(self, clock: str) -> Path:
        """JSON in out/bench: this table, on what machine, with which versions, by which clock."""
        path = FOLDER / f"{self.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**asdict(self), **environment(), "clock": clock}, indent=1))
        return path

    def markdown(self) -> str:
        lines = [
            f"### {self.title}",
            "",
            _row(self.columns),
            _row(["---", *["---:"] * (len(self.columns) - 1)]),
        ]
        return "\n".join([*lines, *map(_row, self.rows), *(f"\n{note}" for note in self.notes)])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def in_process(code: str, *words: str) -> list[float]:
    """The numbers that a program prints as JSON."""
    command = [sys.executable, "-c", code, *words]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def environment() -> dict[str, object]:
    """The machine, the versions, and how busy the machine is with other things."""
    return {
        "processor": processor_name(),
        "cores": os.cpu_count() or 1,
        "load_average": os.getloadavg()[0],
        "versions": {**versions(), **_peer_versions()},
        "date": time.strftime("%Y-%m-%d"),
    }


def _peer_versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for package in ("newton", "dm_control"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = ""
    return found


def interleaved(measures: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, np.ndarray]:
    """Each measure `repeats` times, in turn, after one that warms up: a slow minute of the machine
    meets all alike."""
    for measure in measures.values():
        measure()
    taken: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(repeats):
        for name, measure in measures.items():
            taken[name].append(measure())
    return {name: np.array(numbers) for name, numbers in taken.items()}


def spread(values: np.ndarray) -> str:
    """Median and, in brackets, least and most."""
    low, mid, high = (_digits(q) for q in (np.min(values), np.median(values), np.max(values)))
    return f"{mid} ({low} to {high})"


def spread_time(seconds: np.ndarray) -> str:
    """As `spread`, in a unit that suits the median."""
    unit, factor = next(((u, f) for u, f in UNITS if np.median(seconds) * f >= 1.0), UNITS[-1])
    low, mid, high = (
        _digits(factor * q) for q in (np.min(seconds), np.median(seconds), np.max(seconds))
    )
    return f"{mid} {unit} ({low} to {high})"


def _digits(value: float) -> str:
    """Three significant digits, without an exponent."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:#.3g}"


def ratio(slower: np.ndarray, faster: np.ndarray) -> str:
    """How many times as fast, of repeats taken in turn: the median, least and most of their
    ratios."""
    return spread(np.asarray(slower) / np.asarray(faster))


MARKS = re.compile(r"(<!-- bench: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(BENCHES))
@click.option(
    "--into",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A Markdown file to refresh.",
)
def main(names: tuple[str, ...], into: Path | None) -> None:
    """Print what the benchmarks found, or put it INTO a document."""
    found = {
        name: as_markdown(name) for name in names or BENCHES if (FOLDER / f"{name}.json").exists()
    }
    missing = [name for name in names or BENCHES if name not in found]
    if missing:
        click.echo(
            f"not measured: {', '.join(missing)}; run python -m tests.bench {' '.join(missing)}",
            err=True,
        )
    if into is None:
        click.echo("\n\n".join(found.values()))
        return
    text = into.read_text()
    into.write_text(
        MARKS.sub(
            lambda mark: f"{mark[1]}{found[mark[2]]}\n{mark[3]}" if mark[2] in found else mark[0],
            text,
        )
    )


def as_markdown(name: str) -> str:
    """A kept result as a Markdown table, and where, when and with what it was measured."""
    facts = json.loads((FOLDER / f"{name}.json").read_text())
    table = BenchTable(**{field.name: facts[field.name] for field in fields(BenchTable)})
    versions = ", ".join(
        f"{package} {number}" for package, number in facts["versions"].items() if number
    )
    clock = "the wall clock" if facts["clock"] == "wall" else "processor time"
    machine = (
        f"{facts['processor']}, {facts['cores']} cores, load average {facts['load_average']:.1f} at"
        " the end"
    )
    return f"{table.markdown()}\n\nMeasured {facts['date']} by {clock}: {machine}; {versions}."


if __name__ == "__main__":
    main()
