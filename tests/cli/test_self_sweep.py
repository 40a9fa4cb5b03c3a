"""`collide run --sweep --self-contacts` of two cloths: table, summary, any execution, Python, events, view, export."""

import json

import h5py
import numpy as np
import pytest

import collidecli
from collidecli.commands.view import ViewRequest, opened_view
from collidecli.storage.contact_sets.check import check_file
from collidecli.storage.contact_sets.reader import ContactSet
from tests.support.meshes import grid

CLOTH = """
def Mesh "NAME" (prepend apiSchemas = ["PhysicsCollisionAPI"])
{
    int[] faceVertexCounts = COUNTS
    int[] faceVertexIndices = INDICES
    point3f[] points.timeSamples = {
        SAMPLES
    }
}
"""
STAGE = """#usda 1.0
(
    endTimeCode = 3
    metersPerUnit = 1
    startTimeCode = 0
    timeCodesPerSecond = 60
    upAxis = "Z"
)
"""
FRAMES, LIMIT = 4, 0.01
RUN = ("run", "scene.usda", "--sweep", "--self-contacts", str(LIMIT))
FALL = 0.5
"""Of the upper cloth in a frame [m]: 30 m/s."""


def cloths() -> tuple[np.ndarray, np.ndarray]:
    """float64[frames, 2, n, 3]: a cloth falls through another, which rests, from the second to the third frame."""
    vertices, faces = grid(2)
    positions = np.tile(vertices, (FRAMES, 2, 1, 1))
    positions[:, 1] += np.array([0.1, 0.05, 0.7])
    positions[:, 1, :, 2] -= FALL * np.arange(FRAMES)[:, None]
    return positions.astype(np.float32).astype(np.float64), faces


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    positions, faces = cloths()
    text = STAGE
    for k, name in enumerate(("lower", "upper")):
        frames = (", ".join(str(tuple(map(float, point))) for point in frame) for frame in positions[:, k])
        samples = ", ".join(f"{n}: [{points}]" for n, points in enumerate(frames))
        counts, indices = [3] * len(faces), faces.ravel().tolist()
        text += CLOTH.replace("NAME", name).replace("COUNTS", str(counts)).replace("INDICES", str(indices)).replace(
            "SAMPLES", samples
        )  # fmt: skip
    (tmp_path / "scene.usda").write_text(text)
    return tmp_path


def rows_of(path) -> tuple[dict[str, np.ndarray], np.ndarray]:
    with ContactSet.open(path) as contacts:
        table = contacts.groups["self_sweep"]
        columns = {column.name: table.column(column.name) for column in table.columns}
        return columns, np.repeat(np.arange(contacts.cell_count), np.diff(table.cell_start()))


def test_the_table_and_the_summary(folder, collide):
    answer = collide(*RUN, "--json", "-o", "out.h5")
    assert answer.code == 0, answer.err
    result, (columns, frame) = json.loads(answer.out), rows_of("out.h5")
    assert check_file("out.h5") == []
    assert (frame == 1).all()
    assert set(columns["kind"].tolist()) == {0, 1}
    with ContactSet.open("out.h5") as contacts:
        assert contacts.version == (1, 4)
        assert contacts.groups["self_contacts"].row_count == 0
    assert result["self_sweep"] == {"touches": len(frame), "tunnels": len(frame), "undecided": 0}
    assert result["groups"]["self_sweep"]["rows"] == len(frame) > 10
    faces = columns["kind"] == 0
    np.testing.assert_allclose(columns["enter"][faces], (0.2 - LIMIT) / FALL, atol=1e-5)
    np.testing.assert_allclose(columns["leave"][faces], (0.2 + LIMIT) / FALL, atol=1e-5)
    shown = collide(*RUN, "-o", "out.h5", "--force").out
    assert f"self-contacts: {len(frame)} touches missed by the frame rate, of {len(frame)} in steps" in shown
    with collidecli.ContactSet.open("out.h5") as contacts:
        table = contacts.to_pandas(group="self_sweep")
        assert set(map(tuple, table[["object0", "object1"]].to_numpy().tolist())) == {
            ("/lower", "/upper"), ("/upper", "/lower")
        }  # fmt: skip
    assert collide("export", "out.h5", "--to", "csv", "--group", "self_sweep", "-o", "t.csv").code == 0
    assert len((folder / "t.csv").read_text().splitlines()) == len(frame) + 1


def test_without_either_option_there_is_no_table(folder, collide):
    for name, more in (("a.h5", ("--self-contacts", str(LIMIT))), ("b.h5", ("--sweep",))):
        assert collide("run", "scene.usda", "-o", name, *more).code == 0
    assert collide(*RUN, "-o", "c.h5").code == 0
    with h5py.File("a.h5") as a, h5py.File("b.h5") as b, h5py.File("c.h5") as c:
        assert "self_sweep" not in a
        assert "self_sweep" not in b
        for name in a["self_contacts"]:
            assert np.array_equal(a[f"self_contacts/{name}"][()], c[f"self_contacts/{name}"][()])


def test_any_execution_gives_the_same_rows(folder, collide):
    hashes = set()
    for more in ((), ("--threads", "1", "--chunk-cells", "2"), ("--memory-limit", "256MiB"), ("--worlds", "3")):
        answer = collide(*RUN, "-o", "o.h5", "--force", "--json", *more)
        assert answer.code == 0, answer.err
        if "--worlds" not in more:
            hashes.add(json.loads(answer.out)["content_sha256"])
            columns, _ = rows_of("o.h5")
        else:
            copies, cell = rows_of("o.h5")
            assert sorted(set(cell.tolist())) == [3, 4, 5]
            for world in range(3):
                np.testing.assert_array_equal(copies["enter"][cell == 3 + world], columns["enter"])
    assert len(hashes) == 1


def test_python_has_the_rows_of_the_command(folder, collide):
    assert collide(*RUN, "-o", "out.h5").code == 0
    columns, frame = rows_of("out.h5")
    builder = collidecli.ModelBuilder()
    builder.add_usd("scene.usda")
    positions = cloths()[0].reshape(FRAMES, 1, -1, 3)
    found = collidecli.sweep(builder.finalize(), None, particle_q=positions, self_contacts=LIMIT).elements
    assert found is not None
    assert found.frame.tolist() == frame.tolist()
    for name in ("kind", "indices", "enter", "leave", "least", "least_bound"):
        np.testing.assert_array_equal(getattr(found, name), columns[name])


def test_events_and_view(folder, collide):
    assert collide(*RUN, "-o", "out.h5").code == 0
    columns, _ = rows_of("out.h5")

    def events(*options):
        answer = collide("events", "out.h5", "--sweep", "--json", *options)
        assert answer.code == 0, answer.err
        return json.loads(answer.out)["between_frames"]

    found = events()
    assert (found["count"], found["missed"], found["undecided"]) == (1, 1, 0)
    (one,) = found["listed"]
    assert (one["shape0"], one["shape1"], one["missed"]) == ("/lower", "/upper", True)
    assert one["begin_time"] == pytest.approx((1.0 + (0.2 - LIMIT) / FALL) / 60.0, abs=1e-6)
    alone = events("--by", "particles", "--first", "100")["listed"]
    expected = set()
    for kind, row in zip(columns["kind"].tolist(), columns["indices"].tolist(), strict=True):
        first = row[: kind + 1]
        expected |= {(particle, particle in first) for particle in row}
    assert len(alone) == len({particle for particle, _ in expected})
    with opened_view(ViewRequest("out.h5")) as view:
        points = view.frames.self_contacts(1, 0)
        assert len(points) == len(columns["kind"])
        np.testing.assert_allclose(points[:, 2], 0.5 * LIMIT, atol=2e-6)


def test_refused(folder, collide):
    for name, frames in (("a.h5", ":2"), ("b.h5", "2:")):
        assert collide(*RUN, "--frames", frames, "-o", name).code == 0
    answer = collide("merge", "a.h5", "b.h5", "-o", "c.h5")
    assert (answer.code, "contacts between frames" in answer.err) == (2, True)
