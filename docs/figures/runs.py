"""Contact sets that figures are drawn from."""

from __future__ import annotations

from pathlib import Path

import h5py

from collidecli.cli import main as cli

SAMPLES = Path(__file__).parents[2] / "samples"


def run(folder: Path, scene: Path, *options: str) -> h5py.File:
    """The contact set of a scene, computed in a folder."""
    output = folder / "figure.contacts.h5"
    words = ["run", str(scene), *options, "-o", str(output), "--device", "cpu", "-q", "--force"]
    if cli.main(words):
        raise RuntimeError(" ".join(words))
    return h5py.File(output)
