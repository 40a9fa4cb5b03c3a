"""Times of poses that are given as an array: `time`, `fps`, and what is refused without them."""

from pathlib import Path

import numpy as np
import pytest

import collidecli
from collidecli import InputError, ModelBuilder
from collidecli.storage.contact_sets.check import check_file
from tests.cli.conftest import CommandLine

FRAMES = 11
RATE = 100.0
SPEED = 1.0
"""Frames of a box that slides at SPEED [m/s], RATE of them in a second."""
TOUCHES = range(3, 6)
"""Frames in which the box lies on the plane; in the others it is 5 cm above it."""


def sliding_box() -> collidecli.Model:
    builder = ModelBuilder()
    builder.add_ground_plane(key="floor")
    builder.add_shape_box(builder.add_body(key="box"), hx=0.1, hy=0.1, hz=0.1, key="box")
    return builder.finalize()


def poses() -> np.ndarray:
    body_q = np.zeros((FRAMES, 1, 1, 7))
    body_q[:, 0, 0, 0] = SPEED / RATE * np.arange(FRAMES)
    body_q[:, 0, 0, 2] = 0.15
    body_q[list(TOUCHES), 0, 0, 2] = 0.099
    body_q[..., 6] = 1.0
    return body_q


SECONDS = np.arange(FRAMES) / RATE
TIMED = ({"time": SECONDS}, {"time": SECONDS.tolist()}, {"fps": RATE}, {"fps": 100})


@pytest.mark.share(2)
@pytest.mark.parametrize("given", TIMED)
def test_speeds_are_those_of_the_given_times(given):
    body_q = poses()
    body_q[..., 2] = 0.099
    contacts = collidecli.collide(
        sliding_box(), body_q, columns=["slip", "normal_velocity"], **given
    )
    np.testing.assert_allclose(contacts.columns["slip"], SPEED, rtol=1e-5)
    np.testing.assert_allclose(contacts.columns["normal_velocity"], 0.0, atol=1e-5)
    np.testing.assert_allclose(contacts.time, SECONDS, rtol=1e-12)
    contacts = collidecli.collide(sliding_box(), poses(), **given)
    events = contacts.events(merge_seconds=0.001)
    np.testing.assert_allclose(events["seconds"], [len(TOUCHES) / RATE], rtol=1e-12)
    np.testing.assert_allclose(events["begin_time"], [TOUCHES[0] / RATE], rtol=1e-12)
    assert contacts.to_xarray()["time"].attrs["units"] == "s"
    assert not check_file(contacts.contact_set.path)


@pytest.mark.parametrize("given", TIMED)
def test_every_function_keeps_the_given_times(given):
    model = sliding_box()
    body_q = poses()
    found = collidecli.clearance(model, body_q, **given)
    np.testing.assert_allclose(found.time, SECONDS, rtol=1e-12)
    np.testing.assert_allclose(found.events()["end_time"], [(TOUCHES[-1] + 1) / RATE], rtol=1e-12)
    swept = collidecli.sweep(model, body_q, **given)
    # From 50 mm above to 1 mm below the plane in the step before the first touch.
    np.testing.assert_allclose(swept.enter_time[0], (TOUCHES[0] - 1 / 51) / RATE, rtol=1e-3)
    contacts = collidecli.collide(model, body_q, columns="slip", **given)
    labels = collidecli.label(contacts, slip=True)
    np.testing.assert_allclose(labels.time, SECONDS, rtol=1e-12)
    assert labels.slip is not None
    np.testing.assert_allclose(np.nanmax(labels.slip), SPEED, rtol=1e-4)
    audit = collidecli.audit(contacts)
    np.testing.assert_allclose(audit.time, SECONDS, rtol=1e-12)


def test_particles_alone_have_times_too():
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_particles([[0.0, 0.0, 0.1]], radius=0.05)
    particle_q = np.full((3, 1, 1, 3), 0.04)
    contacts = collidecli.collide(builder.finalize(), particle_q=particle_q, fps=10)
    assert contacts.time.tolist() == [0.0, 0.1, 0.2]


NO_TIME = "the poses are an array without times"


@pytest.mark.parametrize("column", ["slip", "normal_velocity"])
def test_a_speed_without_times_is_refused_by_name(column):
    with pytest.raises(InputError, match=f"{column}.*{NO_TIME}") as refused:
        collidecli.collide(sliding_box(), poses(), columns=column)
    assert "time=" in str(refused.value)
    assert "fps=" in str(refused.value)


@pytest.mark.parametrize(
    ("result", "name"),
    [
        (lambda contacts, _: contacts.events()["seconds"], "seconds"),
        (lambda contacts, _: contacts.events().get("seconds"), "seconds"),
        (lambda contacts, _: contacts.events(merge_seconds=0.02), "merge_seconds"),
        (lambda contacts, path: contacts.export("mcap", path / "out.mcap"), "mcap"),
        (lambda contacts, path: contacts.export("usd", path / "out.usda"), "usd"),
    ],
)
def test_results_in_seconds_without_times_are_refused_by_name(result, name, tmp_path):
    contacts = collidecli.collide(sliding_box(), poses())
    with pytest.raises(InputError, match=NO_TIME) as refused:
        result(contacts, tmp_path)
    assert name in f"{refused.value.where}: {refused.value.what}"
    assert not list(tmp_path.iterdir())


def test_without_times_a_time_is_the_number_of_its_frame():
    model = sliding_box()
    body_q = poses()
    numbers = np.arange(FRAMES)
    contacts = collidecli.collide(model, body_q)
    events = contacts.events()
    assert "seconds" not in events
    assert "seconds" not in list(events)
    assert "seconds" not in events.to_pandas().columns
    assert (events["begin_time"].tolist(), events["end_time"].tolist()) == ([3.0], [6.0])
    assert contacts.time.tolist() == numbers.tolist()
    assert contacts.to_pandas()["time"].tolist() == contacts.to_pandas()["frame"].tolist()
    assert contacts.to_xarray()["time"].attrs["units"] == "frame"
    shown = contacts.contact_set._repr_html_()
    assert ", 0 to" not in shown.split("frames</th>")[1].split("</tr>")[0]
    assert collidecli.sweep(model, body_q).enter_time[0] == pytest.approx(3 - 1 / 51, rel=1e-3)
    assert collidecli.clearance(model, body_q).events()["begin_time"].tolist() == [3.0]
    assert not check_file(contacts.contact_set.path)


def test_a_set_without_times_is_refused_by_verbs_that_show_seconds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "set.h5"
    contacts = collidecli.collide(sliding_box(), poses()).contact_set
    path.write_bytes(Path(contacts.path).read_bytes())
    collide = CommandLine()
    for words in (f"events {path}", f"label {path} -o {tmp_path}/labels.npz", f"report {path}"):
        collide.refused(words, told=NO_TIME)
    assert [entry.name for entry in tmp_path.iterdir()] == ["set.h5"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"time": SECONDS, "fps": 10}, "time, fps: both are given"),
        ({"time": SECONDS[:-1]}, "time: has shape"),
        ({"time": SECONDS[::-1]}, "frame 1 is before frame 0"),
        ({"time": np.where(SECONDS > 0.05, np.nan, SECONDS)}, "the time of frame 6 is nan"),
        ({"time": ["now"] * FRAMES}, "time: time is"),
        ({"fps": 0}, "fps: 0 is no number of frames a second"),
        ({"fps": np.inf}, "fps: inf is no number"),
        ({"fps": "100"}, "fps is '100'"),
    ],
)
@pytest.mark.parametrize("function", ["collide", "clearance", "sweep"])
def test_times_that_do_not_fit_are_refused(given, words, function):
    with pytest.raises(InputError, match=words):
        getattr(collidecli, function)(sliding_box(), poses(), **given)


def test_times_of_no_poses_are_refused():
    model = sliding_box()
    with pytest.raises(InputError, match="fps: there are no poses to give times to"):
        collidecli.collide(model, fps=10)


def test_times_of_a_motion_are_refused():
    model = sliding_box()
    motion = collidecli.motions.pose_arrays.PoseArray(poses(), model)
    with pytest.raises(InputError, match="time: body_q is a motion, which has its own times"):
        collidecli.collide(model, motion, time=SECONDS)


def test_clearances_and_contacts_have_the_same_events():
    """A box that touches a plane: every column of the clearances is one of the contacts, and equal."""
    model = sliding_box()
    body_q = poses()
    of_contacts = collidecli.collide(model, body_q, fps=RATE).events().to_pandas()
    of_clearance = collidecli.clearance(model, body_q, fps=RATE).events().to_pandas()
    assert len(of_contacts) == len(of_clearance) > 0
    assert len(of_clearance.columns) > 8
    for name, values in of_clearance.items():
        assert name in of_contacts, name
        if name in ("shape0", "shape1"):
            assert values.tolist() == of_contacts[name].tolist()
        else:
            np.testing.assert_allclose(
                values.to_numpy(float), of_contacts[name].to_numpy(float), atol=1e-7
            )
