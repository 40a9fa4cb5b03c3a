"""`collide run` with hydroelastic shapes: groups in the file, options, refusals, and sets without such shapes."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.cli.conftest import refusals
from tests.support.usd_scenes import BOTH, COLLIDER, write_usda

SCENE = f"""def Plane "ground" {COLLIDER} {{
    uniform token axis = "Z"
    GROUND
}}
def Cube "box" {BOTH} {{
    double size = 0.4
    double3 xformOp:translate = (0, 0, 0.15)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    BOX
}}
"""
MARK = "bool newton:hydroelasticEnabled = true\n"


def scene(folder: Path, ground: str = "", box: str = "") -> None:
    write_usda(folder, SCENE.replace("GROUND", ground).replace("BOX", box), name="scene.usda")


def stiffness(value: str) -> str:
    return f"{MARK}float newton:hydroelasticStiffness = {value}\n"


@pytest.fixture
def run(tmp_path, collide):
    """run(ground, box, *options): the contact set, open, and what is printed, of shapes with these attributes."""

    def call(ground: str, box: str, *options: str) -> tuple[h5py.File, str]:
        scene(tmp_path, ground, box)
        answer = collide.ok("run scene.usda -o out.h5 --force", *options)
        held = h5py.File("out.h5")
        opened.append(held)
        return held, answer.out + answer.err

    opened: list[h5py.File] = []
    yield call
    for held in opened:
        held.close()


def test_box_on_ground_from_file_to_file(run, collide, no_charts):
    found, shown = run(stiffness("3e6"), stiffness("7e6"))
    patches = found["hydro_patches"]
    assert patches["force"].shape == (1, 3)
    side, depth, z, pressure = 0.4, 0.05, 0.015, 105000.0
    force = pressure * (side**2 - 2 * side * z + 4 * z**2 / 3)
    np.testing.assert_allclose(abs(patches["force"][0, 2]), force, rtol=1e-7)
    np.testing.assert_allclose(patches["depth"][0], -depth, rtol=1e-6)
    assert patches["cell_start"][:].tolist() == [0, 1]
    assert len(found["rigid_contacts/distance"]) == 0
    assert "hydro_faces" not in found
    assert "hydro patches 1 in 1 cell; 50 mm deep, frame 0, world 0: /ground and /box" in " ".join(shown.split())
    shown = collide.ok("report out.h5 -o r.html").out
    assert "surfaces  1, hydroelastic, of 1 pair\n" in shown
    assert "contacts" not in shown, "there are none"
    page = Path("r.html").read_text()
    assert "<dt>surfaces</dt><dd>1<small>hydroelastic, of 1 pair</small></dd>" in page
    assert "<dt>contacts</dt>" not in page
    faces = run(stiffness("3e6"), stiffness("7e6"), "--hydro-surface")[0]["hydro_faces"]
    assert faces["patch"][:].tolist() == [0] * 5
    assert faces["vertex_start"][:].tolist() == [0, 4, 8, 12, 16, 20]
    assert faces["vertices"].shape == (20, 3)


def test_options_select_the_shapes(run):
    for ground, options in (("", ()), (MARK, ("--hydro", "off"))):
        found, _ = run(ground, MARK, *options)
        assert "hydro_patches" not in found
        assert len(found["rigid_contacts/distance"]) > 0
    one, two = (
        run("", MARK, "--hydro", "all", "--hydro-stiffness", value)[0]["hydro_patches/force"][0, 2]
        for value in ("1e6", "2e6")
    )
    np.testing.assert_allclose(two, 2 * one)


def test_sets_without_hydroelastic_shapes_are_as_before(run):
    (default, _), (off, _) = run("", ""), run("", "", "--hydro", "off")
    assert default.attrs["content_sha256"] == off.attrs["content_sha256"]
    assert "hydro" not in default.attrs["config"]


@pytest.fixture
def marked(tmp_path, collide):
    """Scenes in the current folder: one with hydroelastic shapes, and three with a stiffness that is none."""
    scene(tmp_path, MARK, MARK)
    for value in ("0", "-1", "nan"):
        (tmp_path / value).mkdir()
        scene(tmp_path / value, stiffness(value), MARK)


test_numbers_that_are_none = refusals(
    "run -o out.h5",
    *((f"scene.usda --hydro-stiffness {value}", "--hydro-stiffness") for value in ("0", "-1", "nan")),
    *((f"./{value}/scene.usda", ("newton:hydroelasticStiffness", "give a finite number above 0, or inf"))
      for value in ("0", "-1", "nan")),
    *((f"scene.usda --hydro-resolution {value}", f"{value} is not a whole number from 4 to 512")
      for value in ("0", "1.5", "3", "100000")),
    needs="marked",
)  # fmt: skip


@pytest.mark.parametrize(
    ("mark", "options", "warned"),
    [
        ("", "--hydro-surface --hydro-stiffness 1e6", ["hydro_stiffness", "hydro_surface"]),
        (MARK, "--hydro-reduce", ["hydro_reduce"]),
        (MARK, "--hydro off --hydro-resolution 8", ["hydro_resolution"]),
        ("", "--self-contacts 0.01", ["self_contacts"]),
        ("", "--hydro all --hydro-resolution 8 --hydro-surface", []),
    ],
)
def test_options_without_effect_on_the_scene_are_named(run, mark, options, warned):
    _, said = run("", mark, *options.split())
    assert [line.split()[1] for line in said.splitlines() if "has no effect" in line] == warned


def test_inspect_shows_the_authored_stiffness(tmp_path, collide):
    scene(tmp_path, stiffness("inf"), stiffness("7e6"))
    shapes = collide.result("inspect scene.usda")["shapes"]
    assert [(one["hydroelastic"], one["k_hydro"]) for one in shapes] == [(True, "inf"), (True, 7e6)]
    for ground, box, words in ((stiffness("inf"), stiffness("7e6"), ["rigid", "7e+06"]), (MARK, "", ["by option"])):
        scene(tmp_path, ground, box)
        shown = collide.ok("inspect scene.usda").out
        assert "k hydro [N/m^3]" in shown
        assert all(f" {word}\n" in shown for word in words)
    scene(tmp_path)
    assert "hydro" not in collide.ok("inspect scene.usda").out


def test_options_of_newton_without_effect_are_named_once(run):
    Path("collide.toml").write_text(
        "buffer-fraction = 0.5\nmargin-contact-area = 0.01\noutput-contact-surface = true\n"
    )
    found, shown = run(MARK, MARK)
    assert "hydro_faces" in found
    assert shown.count("buffer_fraction has no effect") == 1
    assert shown.count("margin_contact_area has no effect") == 1


@pytest.mark.parametrize("options", ["", "--margin 0.002", "--contact-ids", "--columns friction,margin0"])
def test_reduced_contacts_are_rows_with_stiffness_and_area(run, collide, options):
    found, _ = run(stiffness("3e6"), stiffness("7e6"), "--hydro-reduce", *options.split())
    rows = found["rigid_contacts"]
    assert (rows["kind"][:] == 3).all()
    force = (rows["stiffness"][:] * -rows["distance"][:])[:, None] * rows["normal"][:]
    total = found["hydro_patches/force"][0]
    np.testing.assert_allclose(force.sum(axis=0), total, atol=1e-6 * np.linalg.norm(total))
    assert rows["area"].attrs["unit"] == "m^2"
    assert found["hydro_patches/torque_error"][0] < 1e-3 * np.linalg.norm(total) * 0.4
    collide.ok("check out.h5")
