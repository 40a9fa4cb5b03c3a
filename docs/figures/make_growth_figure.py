"""Makes growth.svg beside this file from the table of `python -m tests.bench growth` in the page of
measurements."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from docs.figures.make_figures import GREY, PLAIN, A, plt, save

PAGE = Path(__file__).parents[1] / "explanation/measurements.md"
LABELS = {
    "frames": "frames of a humanoid",
    "shapes": "shapes",
    "worlds": "worlds",
    "speed": "lengths of a body moved a frame",
}
MICROSECONDS = {"us": 1.0, "ms": 1e3}


def measured(what: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of what grows, and the median time of a cell [us] at each."""
    row = re.compile(rf"^\| {what} \| ([\d. ]+) \| ([\d.]+) (us|ms) ", re.M)
    table = PAGE.read_text(encoding="utf-8").partition("<!-- bench: growth -->")[2]
    found = row.findall(table.partition("<!-- end -->")[0])
    numbers = np.array([float(number.replace(" ", "")) for number, _, _ in found])
    return numbers, np.array([float(time) * MICROSECONDS[unit] for _, time, unit in found])


def growth() -> None:
    """Microseconds a cell by each of what grows; for shapes also n log n."""
    figure, axes = plt.subplots(2, 2, figsize=(8.0, 4.8))
    for axis, (what, label) in zip(axes.flat, LABELS.items(), strict=True):
        numbers, cost = measured(what)
        axis.plot(numbers, cost, color=A, marker="o", markersize=3)
        if what == "shapes":
            growing = numbers * np.log(numbers)
            axis.plot(numbers, cost[0] * growing / growing[0], "--", color=GREY)
            axis.set_yscale("log")
        else:
            axis.set_ylim(0, 1.6 * max(cost))
        axis.set_xscale(
            "symlog" if what == "speed" else "log",
            **({"linthresh": 0.01} if what == "speed" else {}),
        )
        if what == "speed":
            axis.set_xlim(-0.002, 1.5)
        axis.set_xlabel(label)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel("time of a cell [µs]")
    figure.tight_layout()
    save(figure, "growth")


if __name__ == "__main__":
    with plt.rc_context(PLAIN):
        growth()
