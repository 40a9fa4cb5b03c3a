"""collide export and merge on real runs of the samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pxr import Usd, UsdGeom

from collidecli.cli.main import main
from collidecli.storage.contact_sets.reader import ContactSet

SAMPLES = Path(__file__).parents[2] / "samples"
PILE = SAMPLES / "01_usd_pile" / "pile.usda"
HUMANOID = [str(SAMPLES / "02_humanoid" / name) for name in ("humanoid.xml", "motion.h5")]


def run(output: Path, *words: str) -> None:
    assert main(["run", *words, "-o", str(output), "--device", "cpu", "-q"]) == 0


@pytest.fixture(scope="module")
def humanoid(tmp_path_factory) -> Path:
    """whole.h5 of 60 frames, and a.h5 and b.h5 of its halves."""
    folder = tmp_path_factory.mktemp("humanoid")
    for name, frames in (("whole", ":60"), ("a", ":31"), ("b", "31:60")):
        run(folder / f"{name}.h5", HUMANOID[0], "-t", HUMANOID[1], "--frames", frames)
    return folder


def test_a_layer_over_the_pile(tmp_path):
    """Composed, it has the scene's moving shapes and, at their time codes, every contact near the two that it names."""
    run(tmp_path / "pile.h5", str(PILE), "--frames", "20:100:39")
    words = ["--to", "usd", "-o", str(tmp_path / "over.usdc"), "--scene", str(PILE), "-q"]
    assert main(["export", str(tmp_path / "pile.h5"), *words]) == 0
    stage = Usd.Stage.Open(str(tmp_path / "over.usdc"))
    assert not stage.GetCompositionErrors()
    points = UsdGeom.Points(stage.GetPrimAtPath("/collide_contacts/world_0/points"))
    paths = stage.GetPrimAtPath("/collide_contacts").GetAttribute("collide:shapes").Get()
    with ContactSet.open(tmp_path / "pile.h5") as contacts:
        counts = np.diff(contacts.cell_start()).tolist()
        codes = contacts.step.tolist()
    assert points.GetPointsAttr().GetTimeSamples() == codes == [20, 59, 98]
    made = UsdGeom.PrimvarsAPI(points)
    purposes = [UsdGeom.Tokens.default_]
    for code, count in zip(codes, counts, strict=True):
        places = np.array(points.GetPointsAttr().Get(code))
        assert len(places) == count > 20
        boxes = UsdGeom.BBoxCache(code, purposes)
        for k in (0, 1):
            shapes = made.GetPrimvar(f"shape{k}").Get(code)
            for row, place in zip(shapes, places, strict=True):
                prim = stage.GetPrimAtPath(paths[row])
                assert prim
                if prim.IsA(UsdGeom.Plane):
                    continue  # infinite to physics, drawn finite
                box = boxes.ComputeWorldBound(prim).ComputeAlignedRange()
                # Half of the gap, or of the depth, keeps the middle from the surface itself.
                low, high = np.array(box.GetMin()) - 0.06, np.array(box.GetMax()) + 0.06
                assert np.all((low <= place) & (place <= high)), (paths[row], code)


def test_halves_of_the_humanoid_are_the_whole(humanoid):
    parts = [str(humanoid / f"{name}.h5") for name in "ba"]
    assert main(["merge", *parts, "-o", str(humanoid / "merged.h5"), "-q"]) == 0
    assert main(["check", str(humanoid / "merged.h5"), "-q"]) == 0
    with ContactSet.open(humanoid / "whole.h5") as one, ContactSet.open(humanoid / "merged.h5") as other:
        assert one.content_sha256 == other.content_sha256
        assert other.contact_count > 100


@pytest.mark.parametrize("name", ["csv", "parquet", "npz", "newton", "genesis", "dart", "raisim", "mujoco"])
def test_the_humanoid_in_every_format(humanoid, name):
    ending = name if name in ("csv", "parquet") else "npz"
    output = humanoid / f"{name}.{ending}"
    scene = ["--scene", HUMANOID[0]] if name == "mujoco" else []
    assert main(["export", str(humanoid / "whole.h5"), "--to", name, "-o", str(output), "-q", *scene]) == 0
    assert output.stat().st_size > 10_000
