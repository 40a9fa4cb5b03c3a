"""`collide run` with hydroelastic shapes: groups in the file, options, refusals, and sets without such shapes."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest

from collidecli.cli import main as cli

SCENE = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)
def Plane "ground" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
    uniform token axis = "Z"
    GROUND
}
def Cube "box" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {
    double size = 0.4
    double3 xformOp:translate = (0, 0, 0.15)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    BOX
}
"""
MARK = "bool newton:hydroelasticEnabled = true\n"


def scene(tmp_path, ground: str = "", box: str = "") -> str:
    path = tmp_path / "scene.usda"
    path.write_text(SCENE.replace("GROUND", ground).replace("BOX", box))
    return str(path)


def run(tmp_path, path: str, *options: str, name: str = "out.h5") -> h5py.File:
    assert cli.main(["run", path, "-o", str(tmp_path / name), "--force", *options]) == 0
    return h5py.File(tmp_path / name, "r")


def stiffness(value: str) -> str:
    return f"{MARK}float newton:hydroelasticStiffness = {value}\n"


def test_box_on_ground_from_file_to_file(tmp_path):
    path = scene(tmp_path, stiffness("3e6"), stiffness("7e6"))
    with run(tmp_path, path) as found:
        patches = found["hydro_patches"]
        assert patches["force"].shape == (1, 3)
        side, depth, z, pressure = 0.4, 0.05, 0.015, 105000.0
        force = pressure * (side**2 - 2 * side * z + 4 * z**2 / 3)
        np.testing.assert_allclose(abs(patches["force"][0, 2]), force, rtol=1e-7)
        np.testing.assert_allclose(patches["depth"][0], -depth, rtol=1e-6)
        assert patches["cell_start"][:].tolist() == [0, 1]
        assert len(found["rigid_contacts/distance"]) == 0
        assert "hydro_faces" not in found
    with run(tmp_path, path, "--hydro-surface") as found:
        faces = found["hydro_faces"]
        assert faces["patch"][:].tolist() == [0] * 5
        assert faces["vertex_start"][:].tolist() == [0, 4, 8, 12, 16, 20]
        assert faces["vertices"].shape == (20, 3)


def test_options_select_the_shapes(tmp_path):
    half = scene(tmp_path, "", MARK)
    with run(tmp_path, half) as found:
        assert "hydro_patches" not in found
        assert len(found["rigid_contacts/distance"]) > 0
    with run(tmp_path, half, "--hydro", "all", "--hydro-stiffness", "1e6") as found:
        equal = found["hydro_patches/force"][0, 2]
    with run(tmp_path, half, "--hydro", "all", "--hydro-stiffness", "2e6") as found:
        np.testing.assert_allclose(found["hydro_patches/force"][0, 2], 2 * equal)
    both = scene(tmp_path, MARK, MARK)
    with run(tmp_path, both, "--hydro", "off") as found:
        assert "hydro_patches" not in found
        assert len(found["rigid_contacts/distance"]) > 0


def test_sets_without_hydroelastic_shapes_are_as_before(tmp_path):
    plain = scene(tmp_path)
    with run(tmp_path, plain) as default, run(tmp_path, plain, "--hydro", "off", name="off.h5") as off:
        assert default.attrs["content_sha256"] == off.attrs["content_sha256"]
        assert "hydro" not in default.attrs["config"]


@pytest.mark.parametrize("value", ["0", "-1", "nan"])
def test_stiffness_is_refused(tmp_path, capsys, value):
    path = scene(tmp_path, MARK, MARK)
    assert cli.main(["run", path, "-o", str(tmp_path / "out.h5"), "--hydro-stiffness", value]) == 2
    assert "--hydro-stiffness" in capsys.readouterr().err
    assert not (tmp_path / "out.h5").exists()


@pytest.mark.parametrize("value", ["0", "-1", "nan"])
def test_authored_stiffness_is_refused(tmp_path, capsys, value):
    path = scene(tmp_path, stiffness(value), MARK)
    assert cli.main(["run", path, "-o", str(tmp_path / "out.h5")]) == 2
    said = capsys.readouterr().err
    assert "newton:hydroelasticStiffness" in said
    assert "give a finite number above 0, or inf" in said


@pytest.mark.parametrize("value", ["0", "1.5", "3", "100000"])
def test_resolution_is_refused(tmp_path, capsys, value):
    path = scene(tmp_path, MARK, MARK)
    assert cli.main(["run", path, "-o", str(tmp_path / "out.h5"), "--hydro-resolution", value]) == 2
    assert f"{value} is not a whole number from 4 to 512" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("mark", "options", "warned"),
    [
        ("", ("--hydro-surface", "--hydro-stiffness", "1e6"), ["hydro_stiffness", "hydro_surface"]),
        (MARK, ("--hydro-reduce",), ["hydro_reduce"]),
        (MARK, ("--hydro", "off", "--hydro-resolution", "8"), ["hydro_resolution"]),
        ("", ("--self-contacts", "0.01"), ["self_contacts"]),
        ("", ("--hydro", "all", "--hydro-resolution", "8", "--hydro-surface"), []),
    ],
)
def test_options_without_effect_on_the_scene_are_named(tmp_path, capsys, mark, options, warned):
    run(tmp_path, scene(tmp_path, "", mark), *options).close()
    said = capsys.readouterr().err
    assert [line.split()[1] for line in said.splitlines() if "has no effect" in line] == warned


def test_inspect_shows_the_authored_stiffness(tmp_path, capsys):
    path = scene(tmp_path, stiffness("inf"), stiffness("7e6"))
    assert cli.main(["inspect", path, "--json"]) == 0
    shapes = {one["path"]: one for one in json.loads(capsys.readouterr().out)["shapes"]}
    assert [(one["hydroelastic"], one["k_hydro"]) for one in shapes.values()] == [(True, "inf"), (True, 7e6)]
    for ground, box, words in (
        (stiffness("inf"), stiffness("7e6"), ["rigid", "7e+06"]),
        (MARK, "", ["by option"]),
    ):
        assert cli.main(["inspect", scene(tmp_path, ground, box)]) == 0
        shown = capsys.readouterr().out
        assert "k hydro [N/m^3]" in shown
        assert all(f" {word}\n" in shown for word in words)
    assert cli.main(["inspect", scene(tmp_path)]) == 0
    assert "hydro" not in capsys.readouterr().out


def test_options_of_newton_without_effect_are_named_once(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "collide.toml").write_text(
        "buffer-fraction = 0.5\nmargin-contact-area = 0.01\noutput-contact-surface = true\n"
    )
    with run(tmp_path, scene(tmp_path, MARK, MARK)) as found:
        assert "hydro_faces" in found
    shown = capsys.readouterr().err
    assert shown.count("buffer_fraction has no effect") == 1
    assert shown.count("margin_contact_area has no effect") == 1


@pytest.mark.parametrize("options", [(), ("--margin", "0.002"), ("--contact-ids",), ("--columns", "friction,margin0")])
def test_reduced_contacts_are_rows_with_stiffness_and_area(tmp_path, options):
    path = scene(tmp_path, stiffness("3e6"), stiffness("7e6"))
    with run(tmp_path, path, "--hydro-reduce", *options) as found:
        rows = found["rigid_contacts"]
        assert (rows["kind"][:] == 3).all()
        force = (rows["stiffness"][:] * -rows["distance"][:])[:, None] * rows["normal"][:]
        total = found["hydro_patches/force"][0]
        np.testing.assert_allclose(force.sum(axis=0), total, atol=1e-6 * np.linalg.norm(total))
        assert rows["area"].attrs["unit"] == "m^2"
        assert found["hydro_patches/torque_error"][0] < 1e-3 * np.linalg.norm(total) * 0.4
    assert cli.main(["check", str(tmp_path / "out.h5")]) == 0


def test_the_summary_of_a_run_counts_surfaces(tmp_path, capsys):
    run(tmp_path, scene(tmp_path, stiffness("3e6"), stiffness("7e6"))).close()
    shown = " ".join(capsys.readouterr().out.split())
    assert "hydro patches 1 in 1 cell; 50 mm deep, frame 0, world 0: /ground and /box" in shown
