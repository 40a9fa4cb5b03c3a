"""collide probe: contact maps, distances of points and rays of a scene in motion."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

import collidecli
from tests.cli.conftest import FRAMES, distances, refusals, write_motion

COMMAND = "probe scene.xml -t motion.h5 --device cpu"
HEIGHT = 0.8 + distances()
"""Of the ball's centre [m]."""
OTHERS = [
    ("", "give one of --vertices-of, --points and --rays"),
    ("--vertices-of ball --points p.csv", "give one of --vertices-of, --points and --rays"),
    ("--vertices-of nothing", "'nothing'"),
    ("--vertices-of ball --partners nothing", "'nothing'"),
    ("--vertices-of ball --partners ball", "may touch another one that matches --partners"),
    ("--vertices-of ball --spacing 1um", "too many points"),
    ("--points p.csv --spacing 1mm", "the spacing is of points on surfaces"),
    ("--rays r.csv --threshold 1mm", "a threshold is for distances of points"),
    ("--vertices-of ball -o map.csv", "has the extension .npz or .h5"),
    ("--points missing.csv", "cannot be read: no such file"),
    ("--points r.csv", "the header is 'x,y,z,dx,dy,dz'"),
    ("--rays p.csv", "the header is 'x,y,z'"),
    ("--points empty.csv", "there is no row"),
    ("--points text.csv", ("'1,two,3' has no number", "line 2")),
    ("--points short.csv", "the line has 2 of 3 columns"),
    ("--points nan.csv", ("a number is not finite", "row 2")),
    ("--rays zero.csv", ("the direction of a ray is zero", "row 2")),
    ("--points body.csv", ("'bal' is no body", "did you mean ball?")),
    ("--points wide.npy", "the array is [2, 4]"),
    ("--points not.npy", "is no array of NumPy"),
    ("--points p.csv -o p.csv", "has the extension .npz or .h5"),
]


@pytest.fixture
def probed(here: Path) -> Path:
    """The files of OTHERS, beside scene.xml and motion.h5."""
    texts = {
        "p": "x,y,z\n0,0,5\n0,2,0\n",
        "r": "x,y,z,dx,dy,dz\n0,0,9,0,0,-2\n",
        "empty": "x,y,z\n",
        "text": "x,y,z\n1,two,3\n",
        "short": "x,y,z\n1,2\n",
        "nan": "x,y,z\n1,2,3\n1,nan,3\n",
        "zero": "x,y,z,dx,dy,dz\n0,0,9,0,0,1\n0,0,9,0,0,0\n",
        "body": "x,y,z,body\n0,0,0,bal\n",
    }
    for name, text in texts.items():
        (here / f"{name}.csv").write_text(text)
    np.save(here / "wide.npy", np.zeros((2, 4)))
    (here / "not.npy").write_text("no array")
    return here


test_what_is_refused = refusals(COMMAND, *OTHERS, needs="probed")


def test_a_contact_map(probed, collide):
    result = collide.result(
        COMMAND, "--vertices-of", "ball", "--threshold", "5mm", "-o", "map.h5", "--first", "2"
    )
    with h5py.File("map.h5") as file:
        assert file.attrs["format"] == "collide-contact-map"
        assert file.attrs["kind"] == "vertices"
        found = {name: file[name][()] for name in file}
        assert file["distance"].chunks is not None
        assert file["distance"].attrs["unit"] == "m"
    point = found["point"]
    assert found["distance"].dtype == np.float32
    assert found["distance"].shape == (FRAMES, 1, len(point)) == found["near"].shape
    assert np.abs(np.linalg.norm(point, axis=1) - 0.3).max() < 1e-12
    at = point[None] + np.column_stack([0.0 * HEIGHT, 0.0 * HEIGHT, HEIGHT])[:, None]
    to_base = np.linalg.norm(at, axis=2) - 0.5
    far = np.linalg.norm(at - [9.0, 0.0, 0.0], axis=2) - 0.3
    truth = np.minimum(to_base, far)
    assert np.abs(found["distance"][:, 0] - truth).max() < 1e-7
    assert np.array_equal(found["near"], found["distance"] <= 0.005)
    paths = [text.decode() for text in found["shape_path"]]
    assert {paths[row] for row in np.unique(found["shape"])} == {"base"}
    assert result["near"] == found["near"].sum() > 0
    lowest = int(point[:, 2].argmin())
    first = result["listed"][0]
    assert (first["point"], first["of"], first["shape"]) == (lowest, "ball", "base")
    assert first["frame"] == FRAMES - 1
    assert first["least_distance"] == pytest.approx(distances()[-1], abs=1e-12)


def test_points_of_the_world_are_measured_less_margins(probed, collide):
    collide.ok(COMMAND, "--points", "p.csv", "-o", "p.npz", "--margin", "1cm")
    with np.load("p.npz") as found:
        assert found["distance"].dtype == np.float64
        to_ball = 5.0 - HEIGHT - 0.3 - 0.01
        assert np.abs(found["distance"][:, 0, 0] - to_ball).max() < 1e-12
        assert np.abs(found["distance"][:, 0, 1] - 1.49).max() < 1e-12
        assert found["shape_path"][found["shape"][0, 0]].tolist() == ["ball", "base"]
        assert np.array_equal(found["time"], 0.01 * np.arange(FRAMES))


def test_both_files_have_the_same_arrays(probed, collide):
    for options in ("--points p.csv --threshold 4", "--rays r.csv", "--vertices-of ball"):
        for ending in ("h5", "npz"):
            collide.ok(f"{COMMAND} {options} --force -o same.{ending}")
        with h5py.File("same.h5") as one, np.load("same.npz") as other:
            assert {*one, "attributes"} == set(other)
            attributes = json.loads(str(other["attributes"]))
            assert attributes.pop("format_version") == one.attrs["format_version"].tolist()
            assert attributes.pop("config") == json.loads(one.attrs["config"])
            assert attributes == {name: one.attrs[name] for name in attributes}
            assert {*attributes, "format_version", "config"} == set(one.attrs)
            for name in one:
                values = one[name].asstr()[()] if one[name].dtype == object else one[name][()]
                assert np.array_equal(values, other[name], equal_nan=values.dtype.kind == "f")


def test_rays(probed, collide):
    (probed / "r.csv").write_text(
        "x,y,z,dx,dy,dz,body\n0,0,9,0,0,-2,\n0,0,9,0,0,1,\n0,0,0,0,0,-1,ball\n"
    )
    result = collide.result(COMMAND, "--rays", "r.csv", "-o", "r.h5")
    with h5py.File("r.h5") as file:
        distance, hit, normal, row = (
            file[name][:, 0] for name in ("distance", "hit", "normal", "shape")
        )
        paths = file["shape_path"].asstr()[()]
    assert np.abs(distance[:, 0] - (9.0 - HEIGHT - 0.3)).max() < 1e-12
    assert np.isinf(distance[:, 1]).all()
    assert np.abs(distance[:, 2] - (HEIGHT - 0.5)).max() < 1e-12  # not the ball itself
    assert hit.tolist() == [[True, False, True]] * FRAMES
    assert np.abs(normal[:, 0] - [0.0, 0.0, 1.0]).max() < 1e-12
    assert np.isnan(normal[:, 1]).all()
    assert (row[:, 1] == -1).all()
    assert paths[row[0, [0, 2]]].tolist() == ["ball", "base"]
    assert result["found"] == 2 * FRAMES


@pytest.mark.filterwarnings("ignore:1 of the scene")
def test_arrays_in_python_are_those_of_the_file(probed):
    (probed / "r.csv").write_text("x,y,z,dx,dy,dz\n0,0,9,0,0,-2\n0,0,9,0,0,1\n")
    files = ("scene.xml", "motion.h5")
    for words, names in (
        ({"rays": "r.csv"}, ("distance", "shape", "hit", "normal")),
        ({"vertices_of": "ball", "threshold": 0.05}, ("distance", "shape", "near")),
    ):
        result = collidecli.probe(*files, "p.h5", device="cpu", force=True, **words)
        arrays = result.arrays
        with h5py.File("p.h5") as file:
            for name in names:
                stored = np.asarray(file[name])
                assert getattr(arrays, name).dtype == stored.dtype
                np.testing.assert_array_equal(getattr(arrays, name), stored)
            assert list(arrays.shape_path) == file["shape_path"].asstr()[()].tolist()
            assert arrays.time.tolist() == file["time"][()].tolist()
        assert "arrays" not in result.as_dict()
    assert collidecli.probe(*files, rays="r.csv", device="cpu", arrays=False).arrays is None


@pytest.mark.filterwarnings("ignore:1 of the scene")
@pytest.mark.parametrize(
    ("kind", "rows"),
    [("rays", [[0, 0, 9, 0, 0, -2], [0.1, 0, 9, 0, 0.1, -1]]), ("points", [[0, 0, 5], [0, 2, 0]])],
)
def test_an_array_is_measured_as_its_file(probed, kind, rows):
    files = ("scene.xml", "motion.h5")
    array = np.array(rows, np.float32)
    np.save("rows.npy", array)
    of_file = collidecli.probe(*files, "file.npz", device="cpu", **{kind: Path("rows.npy")})
    for number, given in enumerate((array, array.tolist(), array[::-1][::-1])):
        found = collidecli.probe(*files, f"{number}.npz", device="cpu", **{kind: given})
        assert found.listed == of_file.listed
        assert Path(f"{number}.npz").read_bytes() == Path("file.npz").read_bytes()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (np.zeros((2, 3)), "rays: the array is [2, 3]"),
        (np.zeros((0, 6)), "rays: there is no row"),
        (np.zeros((2, 6)), "rays: row 1: the direction of a ray is zero"),
        (np.full((2, 6), np.nan), "rays: row 1: a number is not finite"),
        (np.zeros((2, 6), complex), "rays: the array has the type complex128"),
        ([[1, 2], [3]], "rays: is no array of real numbers"),
        (5, "rays is 5\n  give a path or an array"),
    ],
)
def test_arrays_that_are_no_rays(probed, given, told):
    with pytest.raises(collidecli.InputError) as raised:
        collidecli.probe("scene.xml", "motion.h5", rays=given, device="cpu")
    assert told in str(raised.value)


@pytest.mark.filterwarnings("ignore:1 of the scene")
def test_rows_of_rays_in_python(probed):
    """The ray that hits has a row for each frame, with the height of the ball below it."""
    (probed / "r.csv").write_text("x,y,z,dx,dy,dz\n0,0,9,0,0,1\n0,0,9,0,0,-2\n")
    arrays = collidecli.probe("scene.xml", "motion.h5", rays="r.csv", device="cpu").arrays
    rows = arrays.to_pandas()
    assert rows["frame"].tolist() == list(range(FRAMES))
    assert set(rows["point"]) == {1}
    assert set(rows["shape"]) == {"ball"}
    assert np.abs(rows["distance"] - (9.0 - HEIGHT - 0.3)).max() < 1e-12
    assert rows["hit"].all()
    assert arrays.to_xarray()["normal"].shape == (FRAMES, 1, 2, 3)


def test_several_recordings(probed, collide):
    (probed / "demos").mkdir()
    for name, frames in (("a", 5), ("b", FRAMES)):
        write_motion(probed / "demos" / f"{name}.h5", frames)
    answer = collide.ok("probe scene.xml -t demos --vertices-of ball --device cpu -o maps")
    assert "base" in answer.out
    for name, frames in (("a", 5), ("b", FRAMES)):
        with h5py.File(f"maps/{name}.probe.h5") as file:
            assert len(file["distance"]) == frames


def test_the_table(probed, collide):
    answer = collide.ok(COMMAND, "--points", "p.csv")
    assert "2, 40 distances" in answer.out
    assert "-85 mm" not in answer.out
    assert "base" in answer.out
