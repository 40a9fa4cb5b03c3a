"""collide export on the command line: formats, choices, and what is refused."""

from __future__ import annotations

import csv
import json

import h5py
import numpy as np
import pytest

from collidecli.scene.options import EXPORT_FORMATS


@pytest.fixture
def out(here, collide):
    """out.h5: the contacts of the two spheres, twenty frames."""
    assert collide("run", "scene.xml", "-t", "motion.h5", "-o", "out.h5", "--device", "cpu", "--gap", "1").code == 0
    return here


@pytest.mark.parametrize("name", EXPORT_FORMATS)
def test_every_format_has_its_own_name(out, collide, name):
    scene = ["--scene", "scene.xml"] if name in ("mujoco", "jacobian") else []
    if name == "jacobian":  # of joint positions
        assert collide("record", "scene.xml", "--joint", "--frames", "20", "-o", "joints.h5").code == 0
        assert collide("run", "scene.xml", "-t", "joints.h5", "-o", "out.h5", "--gap", "1", "--force").code == 0
    answer = collide("export", "out.h5", "--to", name, "--json", *scene)
    assert answer.code == 0, answer.err
    result = json.loads(answer.out)
    expected = {"usd": "out.usd", "csv": "out.csv", "parquet": "out.parquet", "npz": "out.npz"}.get(
        name, f"out.{name}.npz"
    )
    assert result["output"] == expected
    assert result["bytes"] == (out / expected).stat().st_size
    assert (result["schema"], result["frames"], result["worlds"], result["contacts"]) == ("collide.export/1", 20, 1, 20)
    again = collide("export", "out.h5", "--to", name, *scene)
    assert again.code == 3
    assert "exists already" in again.err


def test_choices(out, collide):
    assert collide("export", "out.h5", "--to", "csv", "--frames", "3:9:2", "--world", "0").code == 0
    with (out / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["frame"]) for row in rows] == [3, 5, 7]
    assert np.allclose([float(row["distance"]) for row in rows], 0.105 - 0.01 * np.array([3, 5, 7]), atol=1e-7)
    assert collide("export", "out.h5", "--to", "csv", "--force", "--exclude", "ball").code == 0
    assert len((out / "out.csv").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--to", "xml"), 2, "'xml' is not one of"),
        ((), 2, "Missing option '--to'"),
        (("--to", "csv", "-o", "a.parquet"), 2, "has the extension .csv"),
        (("--to", "npz", "--world", "1"), 2, "world 1 is not there"),
        (("--to", "npz", "--frames", "20"), 2, "'20' selects none of 20 frames"),
        (("--to", "npz", "--include", "b?d"), 2, "--include: 'b?d' matches no shape of out.h5"),
        (("--to", "csv", "--scene", "scene.xml"), 2, "csv needs no scene"),
        (("--to", "mujoco"), 2, "give the scene of the run with --scene"),
        (("--to", "mujoco", "--scene", "other.xml"), 2, "not the scene of out.h5"),
        (("--to", "usd", "--scene", "scene.xml"), 2, "a USD layer needs a USD scene"),
        (("--to", "npz", "-o", "out.h5", "--force"), 2, "has the extension .npz"),
        (("--to", "npz", "-o", "no/out.npz"), 3, "does not exist"),
    ],
)
def test_one_clear_message_and_nothing_written(out, collide, arguments, code, said):
    (out / "other.xml").write_text((out / "scene.xml").read_text().replace("0.3", "0.31"))
    before = sorted(path.name for path in out.iterdir())
    answer = collide("export", "out.h5", *arguments)
    assert answer.code == code
    assert said in answer.err
    assert len(answer.err.splitlines()) <= 4
    assert sorted(path.name for path in out.iterdir()) == before


def test_a_file_that_is_no_contact_set(out, collide):
    answer = collide("export", "motion.h5", "--to", "npz")
    assert (answer.code, "not a contact set" in answer.err) == (2, True)


def test_a_damaged_chunk_leaves_nothing(out, collide):
    """The columns are read while the output is written: it is gone when one of them cannot be."""
    with h5py.File(out / "out.h5") as file:
        place = file["rigid_contacts/point1"].id.get_chunk_info(0)
    data = bytearray((out / "out.h5").read_bytes())
    data[place.byte_offset + place.size // 2] ^= 0xFF
    (out / "out.h5").write_bytes(data)
    for name in ("npz", "csv", "parquet", "usd"):
        answer = collide("export", "out.h5", "--to", name)
        assert (answer.code, "point1" in answer.err) == (2, True), name
    assert sorted(path.name for path in out.iterdir()) == ["motion.h5", "out.h5", "scene.xml"]


def test_options_of_the_run_that_are_none(out, collide):
    with h5py.File(out / "out.h5", "r+") as file:
        file.attrs["config"] = '{"asset_map": 3}'
    answer = collide("export", "out.h5", "--to", "mujoco", "--scene", "scene.xml")
    assert (answer.code, "the option asset_map is 3" in answer.err) == (2, True)
