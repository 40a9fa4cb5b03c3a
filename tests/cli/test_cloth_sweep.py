"""`collide run --sweep` of a cloth that passes a thin peg between its vertices: table, events, view, report, export."""

import csv
import json

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
def Capsule "peg" (prepend apiSchemas = ["PhysicsCollisionAPI"])
{
    double radius = 0.01
    double height = 0.18
    uniform token axis = "Z"
}
def Cube "post" (prepend apiSchemas = ["PhysicsCollisionAPI"])
{
    double size = 1
    double3 xformOp:translate = (1, 1, 0)
    double3 xformOp:scale = (0.02, 0.02, 0.2)
    uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
}
def Mesh "cloth" (prepend apiSchemas = ["PhysicsCollisionAPI"])
{
    bool collide:deformable = 1
    float collide:particleRadius = 0
    int[] faceVertexCounts = [3, 3]
    int[] faceVertexIndices = [0, 1, 2, 0, 2, 3]
    point3f[] points.timeSamples = {
        SAMPLES
    }
}
"""
FRAMES, FALL = 4, 0.5
"""Of the cloth in a frame [m]: 30 m/s."""


def cloth() -> np.ndarray:
    """float64[frames, 4, 3]: a square falls past the peg, which is inside one triangle, and past the post with a
    corner."""
    found = np.zeros((FRAMES, 4, 3))
    found[..., :2] = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]
    found[..., 0] -= 0.2 * (found[..., 1] < 0.0)
    found[..., 2] = 0.75 - FALL * np.arange(FRAMES)[:, None]
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = [
        f"{frame}: [{', '.join(str(tuple(point)) for point in points.tolist())}]"
        for frame, points in enumerate(cloth())
    ]
    (tmp_path / "scene.usda").write_text(SCENE.replace("SAMPLES", ", ".join(texts)))
    return tmp_path


def test_the_rows_of_a_set(folder, collide):
    answer = collide("run", "scene.usda", "--sweep", "--json", "-o", "out.h5")
    assert answer.code == 0, answer.err
    assert "swept" not in answer.err
    result = json.loads(answer.out)
    assert check_file("out.h5") == []
    assert result["soft_sweep"] == {"touches": 2, "tunnels": 2, "undecided": 0}
    with ContactSet.open("out.h5") as contacts:
        table = contacts.groups["soft_sweep"]
        columns = {column.name: table.column(column.name) for column in table.columns}
        shapes = [contacts.shapes.path[row] for row in columns["shape"]]
        frame = np.repeat(np.arange(contacts.cell_count), np.diff(table.cell_start())).tolist()
    assert (frame, shapes, columns["kind"].tolist()) == ([1, 1], ["/post", "/peg"], [0, 2])
    assert columns["indices"].tolist() == [[2, -1, -1], [0, 1, 2]]
    np.testing.assert_allclose(columns["enter"], (0.25 - 0.1) / FALL, atol=1e-5)
    np.testing.assert_allclose(columns["barycentric"].sum(axis=1), 1.0, atol=1e-6)
    builder = collidecli.ModelBuilder()
    builder.add_usd("scene.usda")
    positions = cloth()[:, None].astype(np.float32).astype(float)
    found = collidecli.sweep(builder.finalize(), None, particle_q=positions).particles
    assert found is not None
    for name in ("kind", "indices", "barycentric", "shape", "enter", "leave", "least", "least_bound"):
        np.testing.assert_array_equal(getattr(found, name), columns[name])


def test_any_execution_gives_the_same_rows(folder, collide):
    hashes = set()
    for more in ((), ("--threads", "1", "--chunk-cells", "2"), ("--memory-limit", "256MiB"), ("--broad-phase", "nxn")):
        answer = collide("run", "scene.usda", "--sweep", "-o", "o.h5", "--force", "--json", *more)
        assert answer.code == 0, answer.err
        hashes.add(json.loads(answer.out)["content_sha256"])
    assert len(hashes) == 1


def test_events_view_report_and_export(folder, collide):
    assert collide("run", "scene.usda", "--sweep", "-o", "out.h5").code == 0

    def events(*options):
        answer = collide("events", "out.h5", "--sweep", "--json", *options)
        assert answer.code == 0, answer.err
        return json.loads(answer.out)["between_frames"]

    found = events()
    assert (found["count"], found["missed"], found["undecided"]) == (2, 2, 0)
    assert {(one["shape0"], one["shape1"]) for one in found["listed"]} == {("/peg", "/cloth"), ("/post", "/cloth")}
    alone = events("--by", "particles")["listed"]
    touched = sorted((one["shape"], one["particle"]) for one in alone)
    assert touched == [("/peg", f"/cloth[{n}]") for n in (0, 1, 2)] + [("/post", "/cloth[2]")]
    with opened_view(ViewRequest("out.h5")) as view:
        points = view.frames.contacts(1, 0)["point0"]
    assert len(points) == 2
    assert collide("report", "out.h5", "-o", "page.html").code == 0
    assert collide("export", "out.h5", "--to", "csv", "--group", "soft_sweep", "-o", "rows.csv").code == 0
    with open("rows.csv", newline="") as file:
        assert [row["kind"] for row in csv.DictReader(file)] == ["vertex", "face"]
