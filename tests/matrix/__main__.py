"""`python -m tests.matrix --into docs/reference/shape-matrix.md`: measures every pair of shapes,
writes the tables."""

from pathlib import Path

import click

from tests.matrix.cells import (
    CELLS,
    NEVER,
    collider_table,
    depth_table,
    error_table,
    measure,
    measure_depths,
    refreshed,
    route,
)

POSES = 90


@click.command()
@click.option(
    "--poses",
    default=POSES,
    show_default=True,
    help="Random poses of each cell, at each of three sizes.",
)
@click.option("--seed", default=0, show_default=True)
@click.option(
    "--into",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The Markdown file to refresh.",
)
@click.option("--colliders", is_flag=True, help="Only the table of colliders; measures nothing.")
def main(poses: int, seed: int, into: Path | None, colliders: bool) -> None:
    """Measure the shape matrix, and print its tables or put them INTO a document."""
    cells = [cell for cell in CELLS if route(*cell) != NEVER]
    tables = {"colliders": collider_table()}
    if not colliders:
        tables |= {
            "pairs": error_table(measure(cells, poses, seed)),
            "depths": depth_table(measure_depths(poses, seed + 1)),
        }
    if into is None:
        click.echo("\n\n".join(tables.values()))
    else:
        into.write_text(refreshed(into.read_text(), tables))


if __name__ == "__main__":
    main()
