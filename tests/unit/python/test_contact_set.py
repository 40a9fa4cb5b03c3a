"""Contact sets of runs from Python: cells, particles, first calls, wrong arguments."""

import re
import subprocess
import sys

import h5py
import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.scene.contact_columns import RIGID_COLUMNS
from tests.support.contact_sets import Touch, intervals, made_up, ordered
from tests.support.waits import PATIENCE

EDITED = made_up(frames=7, worlds=3)


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    return EDITED.write(tmp_path_factory.mktemp("set") / "a.h5")


@pytest.fixture
def contacts(path):
    with collidecli.ContactSet.open(path) as contacts:
        yield contacts


COLUMNS = (EDITED.columns[name].tolist() for name in ("shape0", "shape1", "distance"))
ROWS = [
    Touch(*divmod(cell, 3), *row) for cell, *row in zip(EDITED.cell.tolist(), *COLUMNS, strict=True)
]


def test_a_closed_set_is_refused(path):
    with collidecli.open_contacts(path) as opened:
        assert type(opened) is collidecli.ContactSet
    with pytest.raises(InputError, match="is closed"):
        opened.column("distance")


def test_a_set_is_iterated_over(contacts, path):
    assert repr(contacts) == f"<ContactSet {path} contacts={len(EDITED.cell)} frames=7 worlds=3>"
    assert sum(block.contact_count for block in contacts) == len(EDITED.cell)
    some = list(contacts.blocks(max_rows=4, first=5, last=11))
    assert sum(len(block.cell_counts) for block in some) == 6
    assert some[0].first_cell == 5
    assert (
        sum(block.contact_count for block in some)
        == ((EDITED.cell >= 5) & (EDITED.cell < 11)).sum()
    )


def test_columns_are_attributes(contacts):
    whole = contacts.cells(0, contacts.cell_count)
    for column in RIGID_COLUMNS:
        np.testing.assert_array_equal(getattr(whole, column.name), contacts.column(column.name))
        assert getattr(type(whole), column.name).__doc__.startswith(
            ("int32[n", "float32", "uint8[n")
        )
    depth = [max(0.0, -distance) for distance in contacts.column("distance").tolist()]
    assert (whole.depth.dtype, whole.depth.tolist(), max(depth) > 0.0) == (np.float32, depth, True)
    assert whole.cell.tolist() == sorted(EDITED.cell.tolist())
    frame = 2
    world = 1
    alone = contacts.cell(frame, world)
    assert alone.contact_count == (EDITED.cell == frame * 3 + world).sum()
    with pytest.raises(KeyError, match="normal"):
        _ = next(contacts.blocks(names=("shape0",))).normal


def test_pairs_are_counted(contacts):
    pairs = contacts.pairs()
    expected = {(row.shape0, row.shape1) for row in ROWS}
    assert set(zip(pairs["row0"].tolist(), pairs["row1"].tolist(), strict=True)) == expected
    assert pairs.row_count == len(expected) > 5
    assert (np.diff(pairs["contacts"]) <= 0).all()
    for n, pair in enumerate(zip(pairs["row0"], pairs["row1"], strict=True)):
        of = [row for row in ROWS if (row.shape0, row.shape1) == pair]
        least = np.float32(min(row.distance for row in of))
        found = tuple(
            pairs[name][n] for name in ("contacts", "cells", "least_distance", "shape0", "shape1")
        )
        cells = len({(row.frame, row.world) for row in of})
        assert found == (len(of), cells, least, *(EDITED.path[row] for row in pair))


def test_events_are_those_of_plain_python(contacts):
    events = contacts.events(merge_gap=1, threshold=0.01)
    times = EDITED.time.tolist()
    name_of = EDITED.path.__getitem__
    expected = intervals(ROWS, range(7), times, lambda last, next: next - last <= 2, name_of, 0.01)
    found = events.to_pandas().to_dict("records")
    for row in found:
        row["end_time"] = row["end_time"] if row["end_known"] else None
    assert ordered(found) == expected
    assert contacts.events(worlds=[9 % 3], frames="2:5")["world"].max() == 0


def test_patterns_are_a_text_with_commas_or_a_sequence(contacts):
    paths = contacts.shapes.path
    first, second = (
        f"*{paths[row]}" for row in (contacts.pairs()["row0"][0], contacts.pairs()["row1"][0])
    )
    for name in ("include", "exclude"):
        text, sequence = (
            contacts.events(**{name: value}) for value in (f"{first},{second}", [first, second])
        )
        assert text.row_count == sequence.row_count != contacts.events().row_count
    between = contacts.events(between=f"{first},{second}", threshold="any")
    assert (
        0
        < between.row_count
        == contacts.events(between=(first, second), threshold=np.inf).row_count
    )


@pytest.mark.parametrize(
    ("given", "text"), [(slice(1, 6, 2), "1:6:2"), (slice(None, 4), ":4"), (3, "3"), (-1, "-1")]
)
def test_frames_are_a_slice_a_number_or_a_text(contacts, given, text):
    assert contacts.to_pandas(given).equals(contacts.to_pandas(text))
    assert (
        contacts.events(frames=given).to_pandas().equals(contacts.events(frames=text).to_pandas())
    )


def test_data_of_pairs_that_patterns_select(contacts):
    whole = contacts.to_pandas()
    wanted = str(whole.shape0.iloc[0])
    has = (whole.shape0 == wanted) | (whole.shape1 == wanted)
    assert 0 < has.sum() < len(whole)
    for kept, options in ((has, {"include": wanted}), (~has, {"exclude": [wanted]})):
        assert contacts.to_pandas(**options).equals(whole[kept].reset_index(drop=True))
        assert contacts.to_xarray(**options).sizes["contact"] == kept.sum()
        some = kept & (whole.frame >= 2)
        assert contacts.to_pandas("2:", **options).equals(whole[some].reset_index(drop=True))


def test_export_is_that_of_the_command(contacts, tmp_path):
    wanted = str(contacts.to_pandas().shape0.iloc[0])
    written = contacts.export("csv", tmp_path / "a.csv", include=wanted, frames=slice(1, None))
    assert written == str(tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert len(lines) - 1 == len(contacts.to_pandas("1:", include=wanted)) > 0
    with pytest.raises(InputError, match=r"(?s)'colour'.*known here.*include"):
        contacts.export("npz", tmp_path / "a.npz", colour="red")
    assert not (tmp_path / "a.npz").exists()


@pytest.mark.parametrize("frames", [slice(None), slice(1, 6, 2), slice(3, 4)])
def test_frames_of_data(contacts, frames):
    order = np.lexsort(
        (*[EDITED.columns[n] for n in ("feature1", "feature0", "shape1", "shape0")], EDITED.cell)
    )
    order = order[np.isin(EDITED.cell[order] // 3, range(7)[frames])]
    table = contacts.to_pandas(frames)
    data = contacts.to_xarray(frames)
    cell = EDITED.cell[order]
    assert len(table) == data.sizes["contact"] == len(cell)
    for name, values in (
        ("frame", cell // 3),
        ("world", cell % 3),
        ("time", EDITED.time[cell // 3]),
    ):
        assert table[name].tolist() == data[name].to_numpy().tolist() == values.tolist()
    words = {
        "kind": ("point", "edge", "face", "patch"),
        "shape0": EDITED.path,
        "shape1": EDITED.path,
    }
    for name, values in EDITED.columns.items():
        values = values[order]
        np.testing.assert_array_equal(data[name], values)
        assert data[name].dtype == values.dtype
        held = table[name] if values.ndim == 1 else table[[f"{name}_{axis}" for axis in "xyz"]]
        np.testing.assert_array_equal(
            held, [words[name][row] for row in values] if name in words else values
        )
    assert data["distance"].attrs["units"] == "m"
    assert data["shape_path"].to_numpy().tolist() == EDITED.path


def test_a_package_that_is_not_there_is_named(contacts, monkeypatch):
    for package, call in (("pandas", contacts.to_pandas), ("xarray", contacts.to_xarray)):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(InputError, match=f"{package}, which is not installed") as error:
            call()
        assert error.value.fix == "pip install 'collidecli[tables]'"
    with pytest.raises(InputError, match="pandas"):
        contacts.pairs().to_pandas()


def test_a_notebook_shows_a_table_with_escaped_texts(tmp_path):
    path = tmp_path / "<b>.h5"
    EDITED.write(path)
    with h5py.File(path, "r+") as file:
        file.attrs["scene"] = "<script>alert(1)</script>"
    with collidecli.ContactSet.open(path) as contacts:
        shown = contacts._repr_html_()
        cells = dict(re.findall(r"<th [^>]*>([^<]*)</th><td [^>]*>([^<]*)</td>", shown))
        expected = {
            "contacts": str(contacts.contact_count),
            "frames": f"7, 0 to {contacts.time[-1]:.6g} s",
            "worlds": "3",
        }
        assert cells.items() >= expected.items()
        assert "optional columns" not in cells
    assert shown.count('style="text-align: left"') == 2 * len(cells)
    assert "&lt;script&gt;" in shown
    assert "<script" not in shown
    assert "<b>" not in shown


def model(worlds: int = 1):
    builder = collidecli.ModelBuilder()
    body = builder.add_body()
    builder.add_shape_sphere(body, radius=0.5)
    builder.add_cloth_mesh(
        vertices=[[0, 0, 2], [1, 0, 2], [0, 1, 2]], indices=[0, 1, 2], particle_radius=0.0
    )
    return builder.finalize(worlds)


def test_contacts_are_those_of_the_given_positions():
    positions = np.full((2, 1, 3, 3), 5.0, np.float32)
    positions[1, 0, 1] = [0.0, 0.0, 0.505]
    contacts = collidecli.collide(model(2), particle_q=positions, device="cpu")
    rows = contacts.groups["soft_contacts"]
    assert rows.cell_counts.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(rows.columns["distance"], 0.005, atol=1e-6)
    assert contacts.cell(1, 1).groups["soft_contacts"].columns["indices"].tolist() == [[1, -1, -1]]
    none = collidecli.collide(model(), particle_q=positions, soft_gap=0.004, device="cpu")
    assert none.groups["soft_contacts"].row_count == 0


@pytest.mark.parametrize(
    ("positions", "said"),
    [
        (np.zeros((1, 1, 4, 3)), r"has shape \(1, 1, 4, 3\)"),
        (np.zeros((1, 2, 3, 3)), r"has shape \(1, 2, 3, 3\)"),
        (np.full((1, 1, 3, 3), np.nan), "frame 0, world 0, particle 0"),
        (np.zeros((2, 1, 3, 3)), "has 2 frames, and body_q 1"),
    ],
)
def test_positions_that_do_not_fit_are_refused(positions, said):
    with pytest.raises(InputError, match=said):
        collidecli.collide(
            model(), np.array([[[[0, 0, 0, 0, 0, 0, 1.0]]]]), particle_q=positions, device="cpu"
        )


ADDERS = {
    "add_particles": ([[0, 0, 2]],),
    "add_cloth_mesh": (
        (0, 0, 0),
        (0, 0, 0, 1),
        1.0,
        None,
        [[0, 0, 2], [1, 0, 2], [0, 1, 2]],
        [0, 1, 2],
    ),
    "add_soft_mesh": (
        (0, 0, 0),
        (0, 0, 0, 1),
        1.0,
        None,
        [[0, 0, 2], [1, 0, 2], [0, 1, 2], [0, 0, 3]],
        [0, 1, 2, 3],
    ),
}


@pytest.mark.parametrize("name", ADDERS)
def test_particles_have_a_margin_but_no_gap(name):
    builder = collidecli.ModelBuilder()
    builder.default_shape_cfg = collidecli.ShapeConfig(margin=0.5, gap=0.5)
    radius = "radius" if name == "add_particles" else "particle_radius"

    def add(**cfg):
        getattr(builder, name)(
            *ADDERS[name], **{radius: 0.25}, cfg=collidecli.ShapeConfig(**cfg) if cfg else None
        )

    add(margin=0.125)
    add()
    with pytest.raises(
        InputError, match=r"gap of 0\.01 m, which has no effect on particles"
    ) as refused:
        add(gap=0.01)
    assert "soft_gap" in refused.value.fix
    assert sorted(set(builder.finalize().particles.radius.tolist())) == [0.25, 0.375]


CALLS = """
import faulthandler, os, sys, threading
import numpy as np
import collidecli
import warp as wp

THREADS = 8
faulthandler.enable()
settings = lambda: (wp.config.log_level, sys.getswitchinterval(), os.fstat(2).st_ino, os.get_inheritable(2))
before, started, found = settings(), threading.Barrier(THREADS), [None] * THREADS

def model(number):
    builder = collidecli.ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_sphere(builder.add_body(), radius=0.5)
    if number % 2:
        builder.add_shape_box(builder.add_body(), hx=0.5, hy=0.5, hz=0.5)
    if number % 3:
        builder.add_shape_capsule(builder.add_body(), radius=0.2, half_height=0.3)
    return builder.finalize()

def first_call(number):
    started.wait()
    made = model(number)
    poses = np.zeros((3, 1, len(made.bodies.path), 7))
    poses[..., 2] = np.array([0.6, 0.52, 0.4]).reshape(3, 1, 1)
    poses[..., 6] = 1.0
    contacts = collidecli.collide(made, poses, device="cpu", memory_limit=1 << 30)
    found[number] = contacts.distance.tobytes()

threads = [threading.Thread(target=first_call, args=(number,)) for number in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert None not in found
assert found[0] == found[6] and found[1] == found[7] and found[2] == found[4] and found[1] == found[5]
assert settings() == before, (settings(), before)
os.write(2, b"by the descriptor\\n")
print("by Python", file=sys.stderr)
"""


@pytest.mark.parametrize(
    "run", [0, *(pytest.param(run, marks=pytest.mark.slow) for run in range(1, 20))]
)
def test_first_calls_from_eight_threads(run):
    done = subprocess.run(
        [sys.executable, "-c", CALLS], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    # Warp prints nothing
    assert (done.stdout, done.stderr) == ("", "by the descriptor\nby Python\n")


OF_PACKAGE = [
    ("clearance", "betwen", "between"),
    ("sweep", "tolerence", "tolerance"),
    ("run", "gaps", "gap"),
]
OF_PACKAGE += [("audit", "max_dept", "max_depth"), ("label", "sensor", "sensors")]


@pytest.mark.parametrize(
    ("name", "arguments", "options", "words"),
    [
        ("column", ["depth"], {}, r"(?s)no column 'depth'.*distance, normal"),
        ("events", [], {"merge_seconds": -1.0}, "at least 0"),
        ("events", [], {"by": "worlds"}, "give one of: shapes, bodies, particles"),
        ("events", [], {"threshold": "all"}, "is not a length"),
        ("events", [], {"merge_gap": "20ms"}, "merge_seconds"),
        ("to_pandas", [3.0], {}, "frames is 3.0"),
        ("to_pandas", [], {"include": "nothing"}, "matches no shape"),
        ("export", ["xlsx"], {}, r"(?s)no format.*npz"),
        ("export", ["h5"], {}, r"(?s)no format.*run.*output='out.h5'"),
        ("export", ["csv"], {"forc": 1}, "(?s)'forc'.*did you mean force"),
        ("events", [], {"betwen": 1}, "(?s)'betwen'.*did you mean between"),
    ],
)
def test_arguments_that_are_none_are_refused(contacts, name, arguments, options, words):
    with pytest.raises(InputError, match=words):
        getattr(contacts, name)(*arguments, **options)


@pytest.mark.parametrize(("name", "wrong", "right"), OF_PACKAGE)
def test_unknown_arguments_are_refused_with_the_most_similar(name, wrong, right):
    with pytest.raises(InputError, match=f"(?s)'{wrong}'.*did you mean {right}"):
        getattr(collidecli, name)(0, **{wrong: 1})


@pytest.fixture
def in_memory():
    builder = collidecli.ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_sphere(builder.add_body(xform=(0, 0, 0.4, 0, 0, 0, 1)), radius=0.5)
    return collidecli.collide(builder.finalize())


def test_errors_of_contacts_in_memory_name_arguments(in_memory):
    between = "between: 'bx' matches no shape or body of the contacts in memory"
    for call, told in (
        (lambda: in_memory.events(between=("bx", "*")), between),
        (lambda: in_memory.events(threshold="1 mile"), "threshold: '1 mile' is not a length"),
        (lambda: in_memory.to_pandas(include="bx"), "include: 'bx'"),
        (
            lambda: in_memory.export("jacobian"),
            "give scene and recording of the run with scene and trajectory",
        ),
        (lambda: collidecli.label(in_memory, sensors="bx"), "sensors: 'bx' matches no"),
        (
            lambda: collidecli.label(in_memory, slip=True),
            "the contacts in memory: slip: the contact set has no column",
        ),
        (lambda: collidecli.audit(in_memory, self=0.0), "self: a contact set has no joints"),
    ):
        with pytest.raises(InputError) as raised:
            call()
        assert told in str(raised.value)
        assert not re.search("[( ]--|/", str(raised.value))
    assert (
        in_memory.events(threshold="1cm").row_count
        == in_memory.events(threshold="any").row_count
        == 1
    )


def test_representations_are_short(in_memory, contacts):
    block = next(iter(contacts))
    assert repr(in_memory.contact_set.shapes) == "<ShapeTable 2>"
    assert repr(collidecli.Shape("box", hx=1).model) == "<Model shapes=1 bodies=1 worlds=1>"
    assert all("array" not in repr(one) and len(repr(one)) < 500 for one in (block, block.tables))


def test_the_repr_has_the_rows_of_further_tables():
    builder = collidecli.ModelBuilder()
    builder.add_ground_plane()
    builder.add_particle(pos=(0, 0, 0.05), radius=0.1)
    contacts = collidecli.collide(builder.finalize(), device="cpu")
    assert repr(contacts) == "<Contacts contacts=0 frames=1 worlds=1 soft_contacts=1>"
    assert repr(contacts.contact_set).endswith("contacts=0 frames=1 worlds=1 soft_contacts=1>")
