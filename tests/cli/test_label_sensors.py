"""collide label --sensors: sensors of a scene in motion, and of a file."""

import json
import warnings
from pathlib import Path

import h5py
import numpy as np
import pandas
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.verbs.label import sensor_labels, sensors
from tests.cli import conftest
from tests.cli.conftest import FRAMES, distances, refusals, write_motion

SENSORS = """
    <contact name="ball" geom1="ball" data="found dist pos normal" reduce="mindist"/>
    <contact name="two" body1="ball" num="2" data="found"/>
    <contact name="force" geom1="ball" data="found force" reduce="netforce"/>
    <touch name="tip" site="tip"/>
    <distance name="gap" geom1="ball" geom2="base" cutoff="0.05"/>
    <insidesite name="low" site="low" objtype="xbody" objname="ball"/>
    <gyro name="gyro" site="tip"/>
    <accelerometer name="accelerometer" site="tip"/>
"""
SCENE = """<mujoco>
  <worldbody>
    <geom name="base" type="sphere" size="0.5"/>
    <site name="low" type="box" size="1 1 0.85"/>
    <body name="ball" pos="0 0 2"><freejoint/><geom name="ball" type="sphere" size="0.3"/>
      <site name="tip" pos="0 0 -0.3" size="0.05"/></body>
    <body name="far" pos="9 0 0"><freejoint/><geom name="far" type="sphere" size="0.3"/></body>
  </worldbody>
  <sensor>{sensors}</sensor>
</mujoco>
"""
FILE = """
[[sensor]]
name = "below"
shapes = "ball"
region = { sphere = "2cm", position = [0, 0, -0.3] }

[[sensor]]
name = "above"
shapes = "ball"
region = { sphere = "2cm", position = [0, 0, 0.3] }

[[sensor]]
name = "top of the base"
region = { body = "", box = [0.1, 0.1, 0.2], position = [0, 0, 0.6], test = "middle" }

[[sensor]]
name = "each"
shapes = ["ball", "far"]
each = "body"

[[sensor]]
name = "apart"
type = "distance"
shapes = "far"
partners = "b*"
"""
COMMAND = "label scene.xml -t motion.h5 --device cpu"
DEPTH = distances()


@pytest.fixture
def sensed(here: Path) -> Path:
    """scene.xml declares sensors; sensors.toml has others; motion.h5 sinks the ball into the
    base."""
    (here / "scene.xml").write_text(SCENE.format(sensors=SENSORS))
    (here / "sensors.toml").write_text(FILE)
    return here


def column(found: dict, array: str, name: str) -> np.ndarray:
    """[F] or [F, 3]: an array of a sensor."""
    return found[array][:, 0, list(found["sensors"]).index(name)]


def loaded(name: str) -> dict:
    with np.load(name) as file:
        return dict(file)


def test_sensors_of_the_scene(sensed, collide):
    result = collide.result(COMMAND, "--sensors", "scene", "--gap", "0.2", "-o", "out.npz")
    found = loaded("out.npz")
    names = ["ball", "two[0]", "two[1]", "force", "tip", "gap", "low"]
    assert result["sensors"] == names == found["sensors"].tolist()
    touches = np.float32(DEPTH) <= 0.0
    for name in ("ball", "two[0]", "force", "tip"):
        assert np.array_equal(column(found, "touch", name), touches)
        assert np.array_equal(column(found, "count", name), touches.astype(int))
        reported = np.full(FRAMES, np.inf)
        # of the site, those whose middle is within its radius
        known = DEPTH / 2.0 <= 0.05 if name == "tip" else np.ones(FRAMES, bool)
        reported[known] = DEPTH[known]
        assert np.allclose(column(found, "distance", name), reported, atol=1e-7)
    assert not column(found, "touch", "two[1]").any()
    assert np.isinf(column(found, "distance", "two[1]")).all()
    assert not column(found, "count", "two[1]").any()  # an empty slot, as in MuJoCo
    assert np.allclose(column(found, "distance", "gap"), DEPTH, atol=1e-12)
    assert (column(found, "count", "gap") == -1).all()
    centre = 0.8 + DEPTH
    assert np.array_equal(column(found, "touch", "low"), centre <= 0.85)
    assert np.isnan(column(found, "distance", "low")).all()
    shapes = found["shapes"].tolist()
    assert {shapes[row] for row in column(found, "shape", "ball")} == {"ball"}
    assert {shapes[row] for row in column(found, "partner", "ball")} == {"base"}
    assert np.allclose(column(found, "normal", "ball"), [0.0, 0.0, -1.0])
    assert np.allclose(column(found, "point", "gap")[:, 2], centre - 0.3)
    assert np.allclose(column(found, "partner_point", "gap"), [0.0, 0.0, 0.5])
    middle = (centre - 0.3 + 0.5) / 2.0
    assert np.allclose(column(found, "position", "ball")[:, 2], middle)
    assert np.allclose(column(found, "centre", "ball")[touches, 2], middle[touches])
    assert np.isnan(column(found, "centre", "ball")[~touches]).all()
    notes = " ".join(result["warnings"])
    for words in ("accelerometer (1), gyro (1)", "touch sensor 'tip'", "contact sensor 'force'"):
        assert words in notes


@pytest.mark.parametrize(
    ("pattern", "named"),
    [("ball", []), ("t*", ["touch sensor 'tip'"]), ("force", ["contact sensor 'force'"])],
)
def test_notes_are_about_the_chosen_sensors(sensed, collide, pattern, named):
    notes = collide.result(COMMAND, "--sensors", f"scene:{pattern}")["warnings"]
    of_sensors = [note.partition(":")[0] for note in notes if "keeps its scene pose" not in note]
    assert of_sensors == named


def test_sensors_of_a_file(sensed, collide):
    collide.ok(COMMAND, "--sensors", "sensors.toml", "-o", "out.npz")
    found = loaded("out.npz")
    touches = np.float32(DEPTH) <= 0.0
    assert found["sensors"].tolist() == [
        "below",
        "above",
        "top of the base",
        "each/ball",
        "each/far",
        "apart",
    ]
    for name in ("below", "top of the base", "each/ball"):
        assert np.array_equal(column(found, "touch", name), touches), name
    for name in ("above", "each/far"):
        assert not column(found, "touch", name).any()
    centre = 0.8 + DEPTH
    nearest = np.minimum(np.hypot(9.0, centre) - 0.6, 9.0 - 0.8)
    assert np.allclose(column(found, "distance", "apart"), nearest, atol=1e-12)


@pytest.mark.rest
def test_files_of_every_form_have_equal_values(sensed, collide, monkeypatch):
    for ending in ("npz", "h5", "csv", "parquet"):
        # the others in blocks of 4 frames
        monkeypatch.setattr(sensor_labels, "BLOCK_VALUES", 30 if ending != "npz" else 1 << 17)
        collide.ok(COMMAND, "--sensors", "scene", "-o", f"out.{ending}")
    arrays = loaded("out.npz")
    with h5py.File("out.h5") as file:
        assert file.attrs["format"] == "collide-sensors"
        assert file["distance"].attrs["unit"] == "m"
    stored = conftest.arrays("out.h5")
    assert stored.keys() == arrays.keys()
    for name, values in arrays.items():
        assert np.array_equal(values, stored[name], equal_nan=values.dtype.kind == "f"), name
    csv = pandas.read_csv("out.csv", keep_default_na=False, na_values=[""])
    parquet = pandas.read_parquet("out.parquet")
    names = arrays["sensors"].tolist()
    assert len(csv) == len(parquet) == FRAMES * len(names)
    assert csv.columns.tolist() == parquet.columns.tolist()
    for table in (csv, parquet):
        at = table["frame"], 0, table["sensor"].map(names.index)
        at = tuple(np.broadcast_arrays(*(np.asarray(axis, int) for axis in at)))
        for name in ("touch", "count", "distance"):
            expected = arrays[name][at]
            assert np.array_equal(table[name], expected, equal_nan=name == "distance"), name
        for k, axis in enumerate("xyz"):
            expected = arrays["point"][at][:, k]
            assert np.array_equal(table[f"point_{axis}"], expected, equal_nan=True)
        shapes = np.array([*arrays["shapes"], ""])
        shown = table["shape"].astype(object).fillna("")
        assert shown.tolist() == shapes[arrays["shape"][at]].tolist()


def test_python_returns_the_arrays_of_the_file(sensed, collide):
    collide.ok(COMMAND, "--sensors", "scene", "--enter", "2cm", "--gap", "5cm", "-o", "out.npz")
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        found = collidecli.label_sensors(
            "scene.xml", "motion.h5", enter="2cm", gap="5cm", device="cpu"
        )
    assert any("touch sensor 'tip'" in str(note.message) for note in notes)
    for name, values in loaded("out.npz").items():
        ours = np.asarray(getattr(found, "frame" if name == "frame_index" else name))
        assert np.array_equal(ours, values, equal_nan=values.dtype.kind == "f"), name
    assert len(found) == len(found.to_pandas()) == FRAMES * 7
    assert len(found.events()["sensor"]) == 6
    with pytest.raises(InputError, match="no argument 'sensor'"):
        collidecli.label_sensors("scene.xml", sensor="scene")


def test_a_label_lasts_to_the_distance_of_leave(sensed, collide):
    words = ("--sensors", "scene:ball", "--enter=-5cm", "--leave", "1cm", "--gap", "2cm")
    collide.ok(COMMAND, *words, "-o", "out.npz")
    assert np.array_equal(column(loaded("out.npz"), "touch", "ball"), DEPTH <= -0.05 + 1e-9)


def test_every_copy_of_the_scene_has_its_sensors(sensed, collide):
    collide.ok(COMMAND, "--sensors", "scene", "-o", "one.npz")
    collide.ok(COMMAND, "--sensors", "scene", "--worlds", "3", "--chunk-cells", "7", "-o", "n.npz")
    one, many = loaded("one.npz"), loaded("n.npz")
    for name in ("touch", "count", "distance", "point", "normal", "centre"):
        assert np.array_equal(np.repeat(one[name], 3, axis=1), many[name], equal_nan=True), name


def test_a_world_without_the_sensor_has_no_value(sensed, collide):
    """Two scenes are two worlds: the second has no site, and a larger ball."""
    other = SCENE.replace('name="ball" type="sphere" size="0.3"', 'name="ball" size="0.4"')
    sensors = '<contact name="ball" geom1="ball" data="found"/>'
    (sensed / "other.xml").write_text(other.format(sensors=sensors))
    collide.ok("label scene.xml other.xml --sensors scene -o out.npz --device cpu --gap 1")
    found = loaded("out.npz")
    names = found["sensors"].tolist()
    assert names[0] == "ball"
    assert found["present"][1].tolist() == [name == "ball" for name in names]
    at_rest = found["distance"][0, :, names.index("ball")]
    assert np.allclose(at_rest, [1.2, 1.1], atol=1e-6)
    assert np.isnan(found["distance"][0, 1, names.index("gap")])
    collide.ok("label scene.xml other.xml --sensors scene -o out.csv --device cpu")
    assert len(pandas.read_csv("out.csv")) == len(names) + 1


def test_several_recordings_have_a_file_each(sensed, collide):
    (sensed / "demos").mkdir()
    for number, frames in enumerate((4, 15)):
        write_motion(sensed / "demos" / f"d{number}.h5", frames)
    result = collide.result("label scene.xml -t demos --sensors sensors.toml -o out --device cpu")
    assert result["schema"] == "collide.label_list/1"
    touch = conftest.arrays("out/d1.sensors.h5")["touch"]
    assert touch.shape == (15, 1, 6)
    assert touch[:, 0, 0].tolist() == (np.float32(DEPTH[:15]) <= 0.0).tolist()


def test_without_a_recording_the_scene_is_at_rest(sensed, collide):
    result = collide.result("label scene.xml --sensors scene:gap --device cpu")
    assert result["shape"] == {"frames": 1, "worlds": 1, "sensors": 1}
    assert result["listed"][0]["least_distance"] == pytest.approx(1.2)
    assert result["output"] is None


REFUSED = """
    <contact name="strong" geom1="ball" data="found pos" reduce="maxforce"/>
    <contact name="net" geom1="ball" data="pos" reduce="netforce"/>
"""


@pytest.fixture
def refusing(sensed: Path) -> Path:
    """refused.xml has sensors that poses do not determine; bare.xml has none; files of sensors that
    are wrong."""
    (sensed / "refused.xml").write_text(SCENE.format(sensors=SENSORS + REFUSED))
    (sensed / "bare.xml").write_text(SCENE.format(sensors=""))
    (sensed / "nothing.toml").write_text("")
    (sensed / "pattern.toml").write_text('[[sensor]]\nname = "x"\nshapes = ".*all"\n')
    region = 'region = { body = "nobody", sphere = 1 }'
    (sensed / "body.toml").write_text(f'[[sensor]]\nname = "x"\nshapes = "ball"\n{region}\n')
    (sensed / "fixed.toml").write_text(
        '[[sensor]]\nname = "x"\nshapes = "base"\nregion = { sphere = 1 }\n'
    )
    return sensed


test_refused = refusals(
    "label",
    ("refused.xml --sensors scene", ("sensor 'strong' cannot be evaluated", 'reduce="mindist"')),
    ("refused.xml --sensors scene:net", "weighted by forces"),
    ("bare.xml --sensors scene", "declares no sensor"),
    ("scene.xml --sensors scene:gyr*", ("none of 6 sensors", "they are: 'ball', 'two', 'force'")),
    ("scene.xml --sensors nothing.toml", "has no sensor"),
    ("scene.xml --sensors missing.toml", "cannot be read"),
    ("scene.xml --sensors pattern.toml", ("pattern.toml: sensor 1 'x': shapes", "as 're:.*all'")),
    ("scene.xml --sensors body.toml", ("sensor 1 'x'", "'nobody' is no body")),
    ("scene.xml --sensors fixed.toml", ("'base', which is fixed", 'body = ""')),
    ("scene.xml --sensors scene --leave 1cm", ("reported only up to 0 m", "--gap 0.005")),
    ("scene.xml --sensors scene --enter 1cm", ("--enter 0.01: ", "or give --enter 0 at most")),
    ("scene.xml --sensors scene --enter 1cm --leave 5mm", "below --enter"),
    ("scene.xml --sensors scene -o out.txt", "extension"),
    ("scene.xml --sensors scene -o scene.xml --force", "extension"),
    ("scene.xml --sensors scene --by shapes", "--by is for contact sets"),
    ("scene.xml --sensors scene -t missing.h5", "missing.h5"),
    needs="refusing",
)


def test_names_of_bodies_that_look_like_a_file_stay_patterns(here, collide):
    """Without a scene, `scene` is a pattern."""
    collide.ok("run scene.xml -t motion.h5 --device cpu -o out.h5")
    collide.refused("label out.h5 --sensors scene -o x.npz", told="'scene' matches no shape")


def test_bins_of_sensors_over_time(sensed, collide, monkeypatch):
    """The labelled fraction of each bin of 3 frames, of the last one of 2, in any blocks; and of
    the listed sensors alone."""
    monkeypatch.setattr(sensors, "MAX_BINS", 7)
    touches = np.float32(DEPTH) <= 0.0
    low = 0.8 + DEPTH <= 0.85
    of_bins = [np.split(values, range(3, FRAMES, 3)) for values in (touches, low)]
    means = [[part.mean() for part in parts] for parts in of_bins]
    for block in (30, 1 << 17):
        monkeypatch.setattr(sensor_labels, "BLOCK_VALUES", block)
        result = collide.result(COMMAND, "--sensors", "scene")
        series = result["series"]
        assert [result["sensors"][row] for row in (0, 2, 6)] == ["ball", "two[1]", "low"]
        assert series["frames_per_bin"] == 3
        assert series["frame"] == list(range(0, FRAMES, 3))
        assert series["time"] == pytest.approx([0.01 * frame for frame in series["frame"]])
        assert series["labelled"][0] == pytest.approx(means[0])
        assert series["labelled"][2] == [0.0] * 7
        assert series["labelled"][6] == pytest.approx(means[1])
    few = collide.result(COMMAND, "--sensors", "scene", "--first", "2")["series"]["labelled"]
    assert few == series["labelled"][:2]


@pytest.mark.rest
def test_a_chart_and_a_report_of_sensors(sensed, collide):
    result = collide.result(COMMAND, "--sensors", "scene", "--chart", "sensors.svg")
    assert result["chart"] == "sensors.svg"
    chart = (sensed / "sensors.svg").read_text()
    for words in ("<title>ball</title>", "<title>low</title>", "low, frames 6 to 19"):
        assert words in chart, words
    collide.ok("run scene.xml -t motion.h5 -o out.h5 --device cpu -q")
    (sensed / "sensors.json").write_text(json.dumps(result))
    collide.ok("report out.h5 --labels sensors.json -o page.html")
    page = (sensed / "page.html").read_text()
    for words in (">Sensors</h2>", "When 7 sensors touch.", "two[1]", "insidesite"):
        assert words in page, words
    few = collide.result(COMMAND, "--sensors", "scene", "--first", "2")
    (sensed / "few.json").write_text(json.dumps(few))
    collide.ok("report out.h5 --labels few.json -o few.html")
    assert "The first 2 of 7 sensors are shown." in (sensed / "few.html").read_text()
    few["listed"][0]["share"] = "half"
    (sensed / "few.json").write_text(json.dumps(few))
    collide.refused("report out.h5 --labels few.json -o no.html", told="few.json: lacks values")
    for words, told in (
        ("--chart x.txt", "extension"),
        ("--chart x.svg --first 0", "--first 0 lists none"),
        ("--chart motion.h5.svg -o motion.h5.svg", "extension"),
    ):
        collide.refused(COMMAND, "--sensors", "scene", *words.split(), told=told)


def test_times_of_sensors(sensed, collide):
    """The ball touches from its first frame of contact on: air before, contact after, in every
    form of file and in Python."""
    collide.ok(COMMAND, "--sensors", "scene", "--times", "-o", "out.npz")
    found = loaded("out.npz")
    touches = np.float32(DEPTH) <= 0.0
    begin = int(np.argmax(touches))
    assert 0 < begin < FRAMES - 1
    time = found["time"]
    for name, expected in (
        ("begins", np.arange(FRAMES) == begin),
        ("ends", np.zeros(FRAMES, bool)),
        ("contact_time", np.where(touches, time - time[begin], 0.0)),
        ("air_time", np.where(touches, 0.0, time)),
        ("last_air_time", np.where(touches, time[begin], np.nan)),
        ("last_contact_time", np.full(FRAMES, np.nan)),
    ):
        np.testing.assert_array_equal(column(found, name, "ball"), expected, err_msg=name)
    collide.ok(COMMAND, "--sensors", "scene", "--times", "-o", "out.h5")
    stored = conftest.arrays("out.h5")
    assert stored.keys() == found.keys()
    np.testing.assert_array_equal(stored["air_time"], found["air_time"])
    collide.ok(COMMAND, "--sensors", "scene", "--times", "-o", "out.csv")
    csv = pandas.read_csv("out.csv")
    ball = csv[csv["sensor"] == "ball"]
    np.testing.assert_allclose(ball["air_time"], column(found, "air_time", "ball"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inside = collidecli.label_sensors("scene.xml", "motion.h5", times=True, device="cpu")
        without = collidecli.label_sensors("scene.xml", "motion.h5", device="cpu")
    np.testing.assert_array_equal(inside.last_air_time, found["last_air_time"])
    assert inside.to_pandas()["begins"].sum() == found["begins"].sum()
    assert without.air_time is None
    collide.ok("run scene.xml -t motion.h5 -o set.h5 --device cpu -q")
    collide.refused("label set.h5 --times -o x.npz", told="--times is for sensors of a scene")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_wide_table_has_a_row_for_each_frame(sensed, collide, monkeypatch, ending):
    """The values of the table with a row for each sensor, in columns of the sensors."""
    monkeypatch.setattr(sensor_labels, "BLOCK_VALUES", 30)
    collide.ok(COMMAND, "--sensors", "scene", "-o", f"rows.{ending}")
    collide.ok(COMMAND, "--sensors", "scene", "-o", f"wide.{ending}", "--wide")
    read = pandas.read_csv if ending == "csv" else pandas.read_parquet
    rows, wide = read(f"rows.{ending}"), read(f"wide.{ending}")
    names = rows["sensor"].unique().tolist()
    assert wide["frame"].tolist() == list(range(FRAMES))
    arrays = [name for name in rows.columns[4:] if name != "sensor"]
    assert wide.columns.tolist() == [
        *("frame", "step", "time", "world"),
        *(f"{name}.{array}" for name in names for array in arrays),
    ]
    for name in names:
        of_sensor = rows[rows["sensor"] == name].reset_index()
        for array in arrays:
            one, other = (
                values.astype(object).where(values.notna(), None).tolist()
                for values in (of_sensor[array], wide[f"{name}.{array}"])
            )
            assert one == other, (name, array)


def test_a_wide_table_is_refused_in_other_files(sensed, collide):
    for output in ("x.npz", "x.h5"):
        words = (COMMAND, "--sensors", "scene", "--wide", "-o", output)
        collide.refused(*words, told="write .parquet or .csv")
    collide.refused(COMMAND, "--sensors", "scene", "--wide", told="write .parquet or .csv")


def test_bins_of_what_sensors_measure(sensed, collide, monkeypatch):
    """The most contacts, the least distance and the greatest force of each bin of 3 frames."""
    monkeypatch.setattr(sensors, "MAX_BINS", 7)
    monkeypatch.setattr(sensor_labels, "BLOCK_VALUES", 30)
    options = ("--sensors", "scene", "--gap", "2", "--nominal-stiffness", "1e4")
    series = collide.result(COMMAND, *options)["series"]
    bins = np.split(np.arange(FRAMES), range(3, FRAMES, 3))
    depth = np.float32(DEPTH)
    assert series["count"][0] == [int((depth[of_bin] <= 0.0).any()) for of_bin in bins]
    assert series["distance"][0] == pytest.approx([DEPTH[of_bin].min() for of_bin in bins])
    force = [1e4 * max(0.0, -DEPTH[of_bin].min()) for of_bin in bins]
    assert series["force"][0] == pytest.approx(force, rel=1e-5)
    assert series["count"][5] == series["force"][6] == series["distance"][6] == [None] * 7
    assert "force" not in collide.result(COMMAND, "--sensors", "scene")["series"]


@pytest.mark.rest
def test_charts_of_what_sensors_measure(sensed, collide):
    options = ("--sensors", "scene", "--gap", "2", "--nominal-stiffness", "1e4", "--force")
    for name, words in (
        ("distance", "least distance"),
        ("count", "most contacts"),
        ("force", "greatest nominal force"),
    ):
        collide.ok(COMMAND, *options, "--chart", f"{name}.svg", "--chart-of", name)
        chart = (sensed / f"{name}.svg").read_text()
        assert f"ball, frame 0, 0 s: {words}" in chart, name
    for given, told in (
        ("--chart-of count", "give --chart too"),
        ("--chart x.svg --chart-of force", "give --nominal-stiffness"),
        ("--chart x.svg --chart-of distance", "no listed sensor has a distance"),
    ):
        sensor = "scene:low" if "distance" in given else "scene"
        collide.refused(COMMAND, "--sensors", sensor, *given.split(), told=told)


def test_a_file_of_sensors_in_place_of_other_inputs(sensed, collide):
    collide.ok(COMMAND, "--sensors", "scene", "-o", "l.h5")
    collide.refused("plot l.h5 -o x.png", told="--chart-of distance")
    collide.ok("run scene.xml -t motion.h5 --device cpu -o out.h5")
    told = "give the output of collide label --json, in a file"
    answer = collide.refused("report out.h5 --labels l.h5 -o x.html", told=told)
    assert "is HDF5, not JSON" in answer


def test_contacts_outside_a_region_are_counted(sensed, collide):
    """The region on top of the ball, which touches the base below."""
    touches = int((np.float32(DEPTH) <= 0.0).sum())
    result = collide.result(COMMAND, "--sensors", "sensors.toml")
    listed = {entry["sensor"]: entry for entry in result["listed"]}
    assert touches > 0
    assert listed["above"]["outside_region"] == touches
    assert "outside_region" not in listed["apart"]
    below = listed["below"]
    assert below["outside_region"] == touches - below["most"] * below["cells"]
    assert (
        f"none: {touches} contacts outside the region"
        in collide.ok(COMMAND, "--sensors", "sensors.toml").out
    )
