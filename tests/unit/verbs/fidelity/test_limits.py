"""Limits of `collide fidelity`, factors of depths, distances apart and repros, by a planned engine
of two spheres."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collidecli.pages.canvas import PAGE, Canvas, drawing
from collidecli.storage.trajectory_writer import TrajectoryWriter
from collidecli.verbs.fidelity.page import depths_chart
from collidecli.verbs.fidelity.words import engine_columns, faults_text, worst_columns
from tests.cli.conftest import CommandLine
from tests.support.engine_rows import row_texts

RADIUS = 0.1
APART = 0.3
DEPTHS = np.linspace(2e-4, 9e-4, 40)
"""Depths of the first frames [m]; in the last one the spheres are APART."""
SCENE = f"""<mujoco><worldbody>
  <geom name="low" type="sphere" size="{RADIUS}" gap="0.5"/>
  <body name="high"><freejoint/><geom name="high" type="sphere" size="{RADIUS}"/></body>
</worldbody></mujoco>"""


class Planned:
    """The command on a scene of two spheres, of which the upper one moves along z, and rows of
    given distances."""

    def __init__(self, folder: Path, distances: np.ndarray) -> None:
        self.folder = folder
        self.distances = distances
        (folder / "scene.xml").write_text(SCENE)
        poses = np.zeros((len(distances), 1, 1, 7))
        poses[:, 0, 0, 2] = distances + 2.0 * RADIUS
        poses[..., 6] = 1.0
        with TrajectoryWriter(folder / "motion.h5", body_names=("high",), force=True) as writer:
            writer.append(0.1 * np.arange(len(poses)), np.arange(len(poses)), body_q=poses)

    def words(self, reported: np.ndarray, engine: str = "planned", version: str = "1") -> str:
        """The command for an engine with the rows of distances; NaN is no row."""
        known = np.flatnonzero(~np.isnan(reported))
        count = len(known)
        middle = np.zeros((count, 3))
        middle[:, 2] = RADIUS + 0.5 * self.distances[known]
        np.savez(
            self.folder / "rows.npz",
            **row_texts(engine, version),
            stateful=np.array(False),
            cell=known,
            pair=np.zeros(count, int),
            distance=reported[known],
            normal=np.tile([0.0, 0.0, 1.0], (count, 1)),
            point=middle,
            shape_treated=np.full(2, "exact"),
            shape_reason=np.full(2, ""),
            pair_asked=np.ones(1, bool),
            seconds=np.full(2, np.nan),
        )
        return (
            f"fidelity {self.folder}/scene.xml -t {self.folder}/motion.h5 --engines"
            f" eng={self.folder}/rows.npz"
        )


@pytest.fixture
def planned(tmp_path: Path) -> Planned:
    return Planned(tmp_path, np.append(-DEPTHS, APART))


@pytest.fixture
def collide(capfd) -> CommandLine:
    return CommandLine(capfd)


def code(collide: CommandLine, words: str, *more: str) -> int:
    return collide(words, *more).code


def test_halved_depths_are_named(planned, collide):
    reported = np.append(-DEPTHS, APART)
    assert code(collide, planned.words(reported), "--max-depth-error", "1mm") == 0
    halved = np.arange(len(DEPTHS)) % 4 > 0
    reported[:-1][halved] *= 0.5
    result = collide.result(planned.words(reported))
    (row,) = result["rows"]
    assert (row["scaled"], row["asked"], row["wrong"]) == (30, 40, 30)
    assert row["factor"] == pytest.approx(0.5, rel=1e-6)
    assert row["relative_error"]["worst"] == pytest.approx(0.5, rel=1e-6)
    assert row["depth_error"]["worst"] < 1e-3
    assert "30 of 40 have half the depth" in faults_text(row)
    answer = collide(planned.words(reported), "--max-depth-error", "1mm")
    assert (answer.code, "30 of 40 have half the depth" in answer.out) == (1, True)


def test_each_part_of_a_limit_of_depths_holds_by_itself(planned, collide):
    """Errors of 11 to 40 % of depths below 1 mm, with no factor in common."""
    reported = np.append(-DEPTHS, APART)
    reported[:-1] *= 1.0 + np.where(np.arange(len(DEPTHS)) % 2, 1.0, -1.0) * np.linspace(
        0.11, 0.4, len(DEPTHS)
    )
    words = planned.words(reported)
    limits = {
        "1mm": 0,
        "10%": 1,
        "1mm,10%": 1,
        "10%,1mm": 1,
        "1mm,50%": 0,
        "0.1mm,50%": 1,
        "50%": 0,
    }
    assert {limit: code(collide, words, "--max-depth-error", limit) for limit in limits} == limits
    result = collide.result(words, "--max-depth-error", "1mm,10%", code=1)
    (row,) = result["rows"]
    assert (row["scaled"], row["exceeds"]) == (0, ["max_depth_error_relative"])
    assert (result["limits"]["max_depth_error"], result["limits"]["max_depth_error_relative"]) == (
        1e-3,
        0.1,
    )
    assert row["wrong"] == len(DEPTHS)


def test_one_pose_in_many_frames_is_no_factor(tmp_path, collide):
    planned = Planned(tmp_path, np.full(30, -6e-4))
    (row,) = collide.result(planned.words(np.full(30, -3e-4)))["rows"]
    assert (row["scaled"], row["factor"]) == (0, None)


def test_distances_apart_have_a_limit_of_their_own(planned, collide):
    reported = np.append(-DEPTHS, APART)
    assert code(collide, planned.words(reported), "--max-distance-error", "1um") == 0
    reported[-1] = 0.02
    result = collide.result(planned.words(reported))
    (row,) = result["rows"]
    assert (row["apart"], row["wrong_apart"], row["wrong"]) == (1, 1, 0)
    assert row["distance_error"]["worst"] == pytest.approx(APART - 0.02, rel=1e-6)
    assert result["worst"][0]["what"] == "distance"
    assert "1 of 1 distances apart are wrong" in faults_text(row)
    answer = collide(
        planned.words(reported),
        "--max-distance-error",
        "1mm",
        "--markdown",
        planned.folder / "a.md",
    )
    assert answer.code == 1
    told = "eng: sphere and sphere: distance error, apart: up to 280 mm, the limit is 1 mm"
    assert told in (planned.folder / "a.md").read_text()


def test_nothing_asked_is_no_pass(tmp_path, collide):
    planned = Planned(tmp_path, np.full(3, APART))
    words = planned.words(np.full(3, np.nan))
    answer = collide.ok(words)
    assert "nothing asked of eng" in answer.out
    assert "passed" not in answer.out
    collide.ok(f"{words} --junit-xml {tmp_path}/b.xml")
    assert 'failures="0"' in (tmp_path / "b.xml").read_text(), "without a limit"
    for limit in ("--max-missed 0", "--max-depth-error 1mm", "--max-distance-error 1mm"):
        answer = collide(f"{words} {limit} --junit-xml {tmp_path}/a.xml --force")
        assert (answer.code, "nothing asked of eng" in answer.out) == (2, True)
        assert 'failures="1"' in (tmp_path / "a.xml").read_text()
    answer = collide(f"{planned.words(np.full(3, APART))} --max-distance-error 1mm")
    assert answer.code == 0


@pytest.mark.parametrize("limit", ["1mm,2mm", "1%,2%", "x%", "-1%", "1mm,nan%", "", "1mm,"])
def test_limits_that_are_none_are_refused(planned, collide, limit):
    answer = collide(planned.words(np.append(-DEPTHS, APART)), f"--max-depth-error={limit}")
    assert answer.code == 2
    assert "--max-depth-error" in answer.err


@pytest.mark.parametrize(
    ("version", "package"), [("3.3.0", "mujoco==3.3.0"), ("", "mujoco"), ("my own", "mujoco")]
)
def test_repros_name_the_version(planned, collide, version, package):
    words = planned.words(np.append(-0.5 * DEPTHS, APART), "mujoco", version)
    collide.ok(words, "--repro", planned.folder / "repros")
    (script,), (scene,) = ([*planned.folder.glob(f"repros/*{end}")] for end in (".py", ".xml"))
    assert f"pip install {package}\n" in script.read_text()
    assert "asset" not in scene.read_text() + script.read_text()


def test_a_folder_of_repros_is_used_again_by_force_alone(planned, collide):
    words = f"{planned.words(np.append(-0.5 * DEPTHS, APART), 'mujoco')} --repro {planned.folder}/r"
    assert [code(collide, words, *more) for more in ((), (), ("--force",))] == [0, 3, 0]


@pytest.mark.share(3)
@pytest.mark.parametrize("width", [920, 320])
@pytest.mark.parametrize(("low", "high"), [(-4.0, -3.0), (-4.0, 0.0), (-6.0, -1.0), (-9.0, 0.0)])
def test_labels_of_depths_do_not_overlap(width, low, high):
    """920 and 320 px are the widths of charts on pages of 1280 and 390 px."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    points = [[10.0**low, 10.0**high, 1, True], [0.0, 10.0**high, 1, True]]
    with drawing():
        figure = depths_chart(
            {"depths": {f"engine {k}": points for k in range(8)}}, Canvas(width, PAGE)
        )
        FigureCanvasAgg(figure).draw()
        boxes = []
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                labels = [
                    label
                    for label in axis.get_ticklabels()
                    if label.get_text() and label.get_visible()
                ]
                boxes += [(label.get_text(), label.get_window_extent()) for label in labels]
    boxes = [(text, box) for text, box in boxes if box.width > 1.0]
    assert len(boxes) >= 8
    overlaps = [
        (a, b) for k, (a, one) in enumerate(boxes) for b, other in boxes[:k] if one.overlaps(other)
    ]
    assert not overlaps


def test_a_column_has_one_unit(planned, collide):
    reported = np.append(-DEPTHS, 0.02)
    reported[0] -= 0.05
    reported[1] -= 3e-6
    result = collide.result(planned.words(reported), "--first", "9")
    rows = [
        *result["rows"],
        *({**row, "depth_error": dict.fromkeys(("p99", "worst"), 2e-7)} for row in result["rows"]),
    ]
    tables: list[tuple[list[Any], list[Any]]] = [
        (engine_columns(rows), rows),
        (worst_columns(0, result["worst"]), result["worst"]),
    ]
    for columns, listed in tables:
        measured = [column for column in columns if "[" in column[0]]
        assert measured
        for _, _, text in measured:
            assert all(re.fullmatch(r"|none|[<>]?-?[0-9 .]+", text(row)) for row in listed)
    shown = {title: text(rows[1]) for title, _, text in engine_columns(rows)}
    assert shown["depth error, worst [mm]"] == "<0.001"


def test_columns_of_the_worst_answers():
    answer = {"distance": -1e-3, "reported_distance": -2e-3, "reported_separation": -3e-3}
    shown = {title: text(answer) for title, _, text in worst_columns(0, [answer]) if "[" in title}
    assert shown == {"distance [mm]": "-1", "reported [mm]": "-2", "along its normal [mm]": "-3"}


def test_the_page_has_versions_in_its_head(planned, collide):
    page = planned.folder / "page.html"
    collide.ok(planned.words(np.append(-0.5 * DEPTHS, APART), "mujoco", "3.3.0"), "-o", page)
    head = page.read_text().split('id="map"')[0]
    assert "eng (mujoco 3.3.0)" in head


def test_exact_points_are_larger_than_those_on_them(planned, collide):
    pytest.importorskip("viser")
    view = planned.folder / "view.html"
    collide.ok(planned.words(np.append(-0.5 * DEPTHS, APART)), "--view", view)
    data = json.loads(re.search(r'id="collide-data">(.*?)</script>', view.read_text())[1])  # pyright: ignore
    assert 0.0 < data["sizes"]["second"] < 1.0
