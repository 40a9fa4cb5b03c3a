"""Makes phases.svg beside this file from the table of `collide profile` in its guide."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from docs.figures.make_figures import ACCENT, GREY, PLAIN, A, B, plt, save

PAGE = Path(__file__).parents[1] / "howto/profile-broad-phases.md"
STAGES = {"transforms": GREY, "broad phase": B, "narrow phase": A, "order": ACCENT}
MILLISECONDS = {"us": 1e-3, "ms": 1.0}


def phases() -> None:
    """Median times of the stages by broad phase, one bar each."""
    text = PAGE.read_text(encoding="utf-8")
    names = re.findall(r"^ +(nxn +.*)$", text, re.M)[0].split()
    figure, axis = plt.subplots(figsize=(8.0, 2.6))
    begin = np.zeros(len(names))
    for stage, color in STAGES.items():
        row = re.findall(rf"^ +{stage}( +\S+ (?:us|ms).*)$", text, re.M)[0]
        found = re.findall(r"([\d.]+) (us|ms)", row)
        time = np.array([float(number) * MILLISECONDS[unit] for number, unit in found])
        axis.barh(names, time, left=begin, color=color, alpha=0.7, height=0.6, label=stage)
        begin += time
    axis.invert_yaxis()
    axis.set_xlabel("time of all frames, medians [ms]")
    axis.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=len(STAGES))
    axis.spines[["top", "right"]].set_visible(False)
    save(figure, "phases")


if __name__ == "__main__":
    with plt.rc_context(PLAIN):
        phases()
