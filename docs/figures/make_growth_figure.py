"""Makes growth.svg beside this file from the measurements of `python -m tests.bench growth`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np

from docs.figures.make_figures import GREY, PLAIN, A, plt, save

MEASURED = Path("out/bench/growth.json")
LABELS = {
    "frames": "frames of a humanoid",
    "shapes": "shapes",
    "worlds": "worlds",
    "speed": "lengths of a body moved a frame",
}


def growth() -> None:
    """Microseconds a cell by each of what grows; for shapes also n log n."""
    samples = json.loads(MEASURED.read_text())["samples"]
    figure, axes = plt.subplots(1, 4, figsize=(12.0, 2.6))
    for axis, (what, label) in zip(axes, LABELS.items(), strict=True):
        found = [re.fullmatch(rf"{what} (\S+) seconds a cell", name) for name in samples]
        numbers = [float(match[1]) for match in found if match]
        cost = [1e6 * np.median(samples[match[0]]) for match in found if match]
        axis.plot(numbers, cost, color=A, marker="o", markersize=3)
        if what == "shapes":
            axis.plot(
                numbers,
                cost[0] * np.array(numbers) * np.log(numbers) / numbers[0] / np.log(numbers[0]),
                "--",
                color=GREY,
            )
            axis.set_yscale("log")
        else:
            axis.set_ylim(0, 1.6 * max(cost))
        axis.set_xscale(
            "symlog" if what == "speed" else "log",
            **({"linthresh": 0.01} if what == "speed" else {}),
        )
        axis.set_xlabel(label)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("time of a cell [µs]")
    figure.tight_layout()
    save(figure, "growth")


if __name__ == "__main__":
    with plt.rc_context(PLAIN):
        growth()
