"""Makes touches.svg beside this file: the touches of the sample's humanoid over time."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import collidecli
from docs.figures.make_figures import PLAIN, A, plt, save
from docs.figures.runs import SAMPLES, run

HUMANOID = SAMPLES / "02_humanoid"
ROWS = 7


def touches() -> None:
    """The touches of the pairs that touch the longest: a bar from begin to end of each, as dark as
    it is deep."""
    with tempfile.TemporaryDirectory() as folder:
        motion = str(HUMANOID / "motion.h5")
        name = run(Path(folder), HUMANOID / "humanoid.xml", "-t", motion).filename
        with collidecli.ContactSet.open(name) as contacts:
            events = contacts.events()
    pairs = [f"{a} – {b}" for a, b in zip(events["shape0"], events["shape1"], strict=True)]
    begin = np.asarray(events["begin_time"])
    lasts = np.asarray(events["end_time"]) - begin
    names, of_pair = np.unique(pairs, return_inverse=True)
    listed = np.argsort(-np.bincount(of_pair, weights=lasts), kind="stable")[:ROWS]
    figure, axis = plt.subplots(figsize=(8.0, 3.2))
    for row, pair in enumerate(listed):
        here = of_pair == pair
        axis.broken_barh(
            list(zip(begin[here], lasts[here], strict=True)), (row - 0.35, 0.7), color=A
        )
    axis.set_yticks(range(len(listed)), names[listed])
    axis.invert_yaxis()
    axis.set_xlabel("time [s]")
    axis.spines[["top", "right"]].set_visible(False)
    save(figure, "touches")


if __name__ == "__main__":
    with plt.rc_context(PLAIN):
        touches()
