"""Makes the charts beside this file that commands of the guides draw: `make docs-figures`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from collidecli.cli import main as cli

FOLDER = Path(__file__).parent
SAMPLES = FOLDER.parents[1] / "samples"
BAG = SAMPLES / "09_ros_bag"
SCENE = str(SAMPLES / "02_humanoid/humanoid.xml")
PILE = str(SAMPLES / "01_usd_pile/pile.usda")
MOTION = ("-t", str(SAMPLES / "02_humanoid/motion.h5"))
SECONDS = ("--frames", ":200")
"""The first two seconds, so that the charts are small files."""


def collide(*words: str) -> None:
    if cli.main([*words, "-q", "--force"]) not in (0, 1):
        raise RuntimeError(" ".join(words))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        contacts = f"{folder}/humanoid.contacts.h5"
        collide("run", SCENE, *MOTION, *SECONDS, "--gap", "0.01", "-o", contacts)
        feet = ("--between", "foot_*,floor", "--enter", "0", "--leave", "2mm", "--min-frames", "3")
        labels = ("-o", f"{folder}/feet.npz", "--chart", str(FOLDER / "labels.svg"))
        collide("label", contacts, *feet, *labels)
        chart = ("--plot", str(FOLDER / "clearance.svg"))
        collide("clearance", SCENE, *MOTION, *SECONDS, "--top", "3", *chart)
        limits = ("--max-depth", "1cm", "--self", "--max-ground", "12mm")
        collide("audit", SCENE, *MOTION, *limits, "--chart", str(FOLDER / "audit.svg"))
        cell = f"{folder}/cell.contacts.h5"
        bag = ("-t", str(BAG / "drive.mcap"), "--body-from", "crate=tf:base:crate")
        collide("run", str(BAG / "cell.xml"), *bag, "-o", cell)
        collide("plot", cell, "--kind", "pair-depths", "-o", str(FOLDER / "crate.svg"))
        sets = {phase: f"{folder}/{phase}.contacts.h5" for phase in ("gjk", "mpr")}
        for phase, output in sets.items():
            collide("run", PILE, "--narrow-phase", phase, "-o", output)
        words = ("--kind", "deviations", "-o", str(FOLDER / "deviations.svg"))
        collide("plot", sets["mpr"], "--against", sets["gjk"], *words)


if __name__ == "__main__":
    main()
