"""`python -m tests.bench [names]`: runs benchmarks one by one, prints their tables and keeps
out/bench/*.json."""

import importlib
import os
import time
from collections.abc import Callable

import click
from rich.console import Console

from tests.bench.result import BENCHES, MODULE_OF, BenchTable
from tests.bench.timing import CLOCKS


def measure_of(name: str) -> Callable[[int, str], BenchTable]:
    """The function of a benchmark: of repeats and the name of a clock."""
    return getattr(importlib.import_module(f"tests.bench.{MODULE_OF[name]}"), f"measure_{name}")


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(BENCHES))
@click.option(
    "--repeats", default=5, show_default=True, help="Measured repeats, after one that warms up."
)
@click.option(
    "--clock",
    default="wall",
    type=click.Choice(list(CLOCKS)),
    help="cpu: on a machine that is not quiet.",
)
def main(names: tuple[str, ...], repeats: int, clock: str) -> None:
    """Measure this engine. Without NAMES, all of it, in some minutes."""
    console = Console(width=140)
    load = os.getloadavg()[0]
    if load > 0.5:
        console.print(
            f"[yellow]the machine is busy (load average {load:.1f}): times of the wall clock will"
            " be too long"
        )
    for name in names or BENCHES:
        start = time.perf_counter()
        table = measure_of(name)(repeats, clock)
        table.print(console)
        path = table.write(clock)
        console.print(f"  {path}, {time.perf_counter() - start:.0f} s\n", style="dim")


if __name__ == "__main__":
    main()
