"""Logs of simulations: export and import of each layout, and logs that are refused."""

from pathlib import Path

import numpy as np
import pytest

from collidecli.cli.main import main
from collidecli.errors import InputError
from collidecli.scene.option_values import LOG_FORMATS
from collidecli.verbs.check.check import check
from collidecli.verbs.diff.diff import DiffRequest, diff
from collidecli.verbs.diff.pairs import PairDiffRequest, diff_pairs
from tests.support.planned_engine import imported


@pytest.mark.share(2)
@pytest.mark.parametrize("layout", LOG_FORMATS)
def test_an_exported_log_is_imported_as_it_was(
    layout: str, falling: tuple[str, str], tmp_path: Path
):
    ours = str(tmp_path / "ours.h5")
    log = tmp_path / "log.npz"
    options = ["--margin", "2mm", "--gap", "5mm"]
    assert main(["run", falling[0], "-t", falling[1], "-o", ours, "-q", *options]) == 0
    scene = ["--scene", falling[0]] if layout == "mujoco" else []
    assert main(["export", ours, "--to", layout, "-o", str(log), "-q", *scene]) == 0
    # as Newton has it: the point of a sphere is its centre, and the radius is in the margin
    if layout == "newton":
        with np.load(log) as file:
            arrays = dict(file)
        for k in (0, 1):
            ball = arrays[f"rigid_contact_shape{k}"] == arrays["shape_label"].tolist().index("high")
            arrays[f"rigid_contact_point{k}"][ball] = 0.0
            arrays[f"rigid_contact_margin{k}"][ball] += 0.1
        np.savez(log, **arrays)
    path = str(tmp_path / "logged.h5")
    call = [
        "import",
        str(log),
        "--layout",
        layout,
        "--scene",
        falling[0],
        "-t",
        falling[1],
        "-o",
        path,
        "-q",
        *options,
    ]
    assert main(call) == 0
    assert check(path).good
    fields = ("distance", "normal", "point0", "point1", "offset0", "offset1")
    found = diff(DiffRequest(ours, path, fields=fields, atol=("2e-8", "normal=1e-7")))
    assert found.equal, found.reasons
    assert found.contacts["matched"] > 10
    by_pair = diff_pairs(PairDiffRequest(ours, path, band=3e-8, max_angle=1e-5))
    assert by_pair.equal
    assert by_pair.counts["both"] == by_pair.counts["a"] == by_pair.counts["b"] > 5


@pytest.fixture(scope="module")
def genesis_log(falling, tmp_path_factory) -> dict[str, np.ndarray]:
    ours, log = (str(tmp_path_factory.mktemp("log") / name) for name in ("ours.h5", "log.npz"))
    assert main(["run", falling[0], "-t", falling[1], "-o", ours, "-q"]) == 0
    assert main(["export", ours, "--to", "genesis", "-o", log, "-q"]) == 0
    with np.load(log) as file:
        return dict(file)


@pytest.mark.parametrize(
    ("name", "change", "what"),
    [
        ("geom_name", lambda names: np.char.add(names, "x"), "no shape of the scene"),
        ("step", lambda step: step + 1, "1 frame of .* is not in the motion"),
        ("cell_start", lambda start: start[::-1], "not ascending"),
        ("geom_b", lambda rows: rows * 0, "contact of 'floor' with itself"),
        ("geom_a", lambda rows: rows + 40, "are not .* indices of geom_name"),
        ("pos", lambda points: points[:, :2], "pos: is float64"),
        ("world", lambda world: world + 1, "worlds"),
    ],
)
def test_logs_that_do_not_fit(name: str, change, what: str, falling, genesis_log, tmp_path: Path):
    log = tmp_path / "log.npz"
    np.savez(log, **{**genesis_log, name: change(genesis_log[name])})
    with pytest.raises(InputError, match=what):
        imported(falling, log, "genesis")
    assert not log.with_suffix(".h5").exists()
