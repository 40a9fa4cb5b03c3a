"""`collide run --sweep` of a scene with particles: table, summary, any execution, events, view, refused input."""

import json

import h5py
import numpy as np
import pytest

import collidecli
from collidecli.commands.view import ViewRequest, opened_view
from collidecli.storage.contact_sets.check import check_file
from collidecli.storage.contact_sets.reader import ContactSet

SCENE = """#usda 1.0
(
    endTimeCode = 3
    metersPerUnit = 1
    startTimeCode = 0
    timeCodesPerSecond = 60
    upAxis = "Z"
)
def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI"])
{
    double radius = 0.3
}
def Cube "plate" (prepend apiSchemas = ["PhysicsCollisionAPI"])
{
    double size = 1
    double3 xformOp:translate = (2, 0, 0)
    double3 xformOp:scale = (0.5, 0.5, 0.001)
    uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
}
def Points "grains" (prepend apiSchemas = ["PhysicsCollisionAPI"])
{
    float[] widths = [0.002, 0.002, 0.002]
    point3f[] points.timeSamples = {
        SAMPLES
    }
}
"""
FRAMES = 4
FALL = 1.0 / 6.0
"""Of a grain in a frame [m]: 10 m/s."""


def grains() -> np.ndarray:
    """float64[frames, 3, 3]: one grain falls through the plate between frames, one onto the ball, one beside both."""
    found = np.zeros((FRAMES, 3, 3))
    found[:, 0] = [2.1, 0.05, 0.25]
    found[:, 1] = [0.0, 0.0, 0.7]
    found[:, 2] = [9.0, 0.0, 0.25]
    found[..., 2] -= FALL * np.arange(FRAMES)[:, None]
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = [
        f"{frame}: [{', '.join(str(tuple(point)) for point in points.tolist())}]"
        for frame, points in enumerate(grains())
    ]
    (tmp_path / "scene.usda").write_text(SCENE.replace("SAMPLES", ", ".join(texts)))
    return tmp_path


def rows_of(path) -> tuple[dict[str, np.ndarray], np.ndarray]:
    with ContactSet.open(path) as contacts:
        table = contacts.groups["soft_sweep"]
        columns = {column.name: table.column(column.name) for column in table.columns}
        return columns, np.repeat(np.arange(contacts.cell_count), np.diff(table.cell_start()))


def test_the_table_and_the_summary(folder, collide):
    answer = collide("run", "scene.usda", "--sweep", "--json", "-o", "out.h5")
    assert answer.code == 0, answer.err
    assert "swept" not in answer.err
    result, (columns, frame) = json.loads(answer.out), rows_of("out.h5")
    assert check_file("out.h5") == []
    assert frame.tolist() == [1, 2]
    assert columns["indices"][:, 0].tolist() == [0, 1]
    with ContactSet.open("out.h5") as contacts:
        assert contacts.version == (1, 4)
    assert result["sweep"] == {"touches": 0, "tunnels": 0, "undecided": 0}
    assert result["soft_sweep"] == {"touches": 2, "tunnels": 1, "undecided": 0}
    assert columns["tunnel"].tolist() == [1, 0]
    assert columns["enter"][0] == pytest.approx((0.25 - FALL - 0.0015) / FALL, abs=1e-5)
    assert result["groups"]["soft_sweep"]["rows"] == 2
    shown = collide("run", "scene.usda", "--sweep", "-o", "out.h5", "--force")
    assert "particles: 1 touch missed by the frame rate, of 2 in steps" in shown.out
    with collidecli.ContactSet.open("out.h5") as contacts:
        assert contacts.to_pandas(group="soft_sweep")["object"].tolist() == ["/grains"] * 2


def test_the_contacts_in_frames_are_those_without_sweep(folder, collide):
    for name, more in (("a.h5", ()), ("b.h5", ("--sweep",))):
        assert collide("run", "scene.usda", "-o", name, *more).code == 0
    with h5py.File("a.h5") as a, h5py.File("b.h5") as b:
        assert set(b) - set(a) == {"sweep", "soft_sweep"}
        for name in a["soft_contacts"]:
            assert np.array_equal(a[f"soft_contacts/{name}"][()], b[f"soft_contacts/{name}"][()])
    with ContactSet.open("a.h5") as contacts:
        assert contacts.version == (1, 3)


def test_any_execution_gives_the_same_rows(folder, collide):
    hashes = set()
    for more in ((), ("--threads", "1", "--chunk-cells", "2"), ("--memory-limit", "256MiB"), ("--worlds", "3")):
        answer = collide("run", "scene.usda", "--sweep", "-o", "o.h5", "--force", "--json", *more)
        assert answer.code == 0, answer.err
        if "--worlds" not in more:
            hashes.add(json.loads(answer.out)["content_sha256"])
        else:
            columns, cell = rows_of("o.h5")
            assert cell.tolist() == [3, 4, 5, 6, 7, 8]
            assert columns["indices"][:, 0].tolist() == [0, 0, 0, 1, 1, 1]
    assert len(hashes) == 1


def test_python_has_the_rows_of_the_command(folder, collide):
    assert collide("run", "scene.usda", "--sweep", "-o", "out.h5").code == 0
    columns, frame = rows_of("out.h5")
    builder = collidecli.ModelBuilder()
    builder.add_usd("scene.usda")
    scene = builder.finalize()
    found = collidecli.sweep(scene, None, particle_q=grains()[:, None].astype(np.float32).astype(float)).particles
    assert found is not None
    assert found.frame.tolist() == frame.tolist()
    assert found.particle.tolist() == columns["indices"][:, 0].tolist()
    for name in ("shape", "enter", "leave", "least", "least_bound"):
        np.testing.assert_array_equal(getattr(found, name), columns[name])


def test_events_and_view(folder, collide):
    assert collide("run", "scene.usda", "--sweep", "-o", "out.h5").code == 0

    def events(*options):
        answer = collide("events", "out.h5", "--sweep", "--json", *options)
        assert answer.code == 0, answer.err
        return json.loads(answer.out)["between_frames"]

    found = events()
    assert (found["count"], found["missed"], found["undecided"]) == (2, 1, 0)
    first, second = found["listed"]
    assert (first["shape0"], first["shape1"], first["missed"]) == ("/plate", "/grains", True)
    assert (second["shape0"], second["shape1"], second["missed"]) == ("/ball", "/grains", False)
    assert second["begin_time"] == pytest.approx((0.7 - 0.301) / 10.0, abs=1e-6)
    alone = events("--by", "particles")["listed"]
    assert [(one["shape"], one["particle"]) for one in alone] == [("/plate", "/grains[0]"), ("/ball", "/grains[1]")]
    assert events("--include", "/ball")["count"] == 1
    with opened_view(ViewRequest("out.h5")) as view:
        columns = view.frames.contacts(1, 0)
        assert len(columns["distance"]) == 1
        np.testing.assert_allclose(columns["point0"], [[2.1, 0.05, 0.0005]], atol=1e-6)


def test_refused(folder, collide):
    answer = collide("run", "scene.usda", "--sweep", "--frames", "1", "-o", "out.h5")
    assert (answer.code, "has one frame" in answer.err) == (2, True)
    for name, frames in (("a.h5", ":2"), ("b.h5", "2:")):
        assert collide("run", "scene.usda", "--sweep", "--frames", frames, "-o", name).code == 0
    answer = collide("merge", "a.h5", "b.h5", "-o", "c.h5")
    assert (answer.code, "contacts between frames" in answer.err) == (2, True)
