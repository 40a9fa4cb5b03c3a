"""Both meanings of MuJoCo's margin and gap, from MJCF and USD, against their definitions in
MuJoCo's change log."""

from pathlib import Path

import numpy as np
import pytest

import collidecli
from collidecli import InputError, ModelBuilder
from collidecli.importers.usd.scene import add_usd
from collidecli.scene.options import SceneOptions
from tests.cli.conftest import CommandLine
from tests.support.usd_scenes import sphere, write_usda

RADIUS = 0.1
DISTANCES = np.linspace(-0.05, 0.75, 81) + 1e-4
"""Of the plain surfaces, on no limit of the scenes below [m]."""


def ball_and_floor(ball: str, floor: str = "", more: str = "") -> str:
    return f"""<mujoco>{more}<worldbody>
    <geom name="floor" type="plane" size="1 1 1" {floor}/>
    <body name="ball" pos="0 0 1"><freejoint/><geom name="ball" type="sphere" size="{RADIUS}" {ball}/></body>
    </worldbody></mujoco>"""


def lengths(margin: float, gap: float) -> str:
    return f'margin="{margin}" gap="{gap}"'


def contacts_at_distances(path: Path, meaning: str) -> tuple[np.ndarray, np.ndarray]:
    """Distances of the plain surfaces of which a contact is reported, and of which a contact has an
    overlap."""
    builder = ModelBuilder()
    builder.add_mjcf(path, mjcf_margin=meaning)
    poses = np.zeros((len(DISTANCES), 1, 1, 7))
    poses[:, 0, 0, 2] = DISTANCES + RADIUS
    poses[..., 6] = 1.0
    contacts = collidecli.collide(builder.finalize(), poses)
    frame = np.repeat(np.arange(len(DISTANCES)), np.diff(contacts.cell_start))
    return DISTANCES[frame], DISTANCES[frame[contacts.distance < 0.0]]


PAIR = '<contact><pair geom1="floor" geom2="ball" margin="0.4" gap="0.1"/></contact>'
OVERRIDE = '<option o_margin="0.5"><flag override="enable"/></option>'


@pytest.mark.parametrize("meaning", ["", "included", "legacy"])
@pytest.mark.parametrize(
    ("text", "margin", "gap"),
    [
        (ball_and_floor(lengths(0.3, 0.3)), 0.3, 0.3),
        (ball_and_floor(lengths(0.3, 0.1)), 0.3, 0.1),
        (ball_and_floor(lengths(0.3, 0)), 0.3, 0.0),
        (ball_and_floor(lengths(0.2, 0.1), lengths(0.3, 0.2)), 0.5, 0.3),
        (ball_and_floor(lengths(0.1, 0.1), more=PAIR), 0.4, 0.1),
        (ball_and_floor(lengths(0.1, 0.1), lengths(0, 0.05), OVERRIDE), 0.5, 0.15),
    ],
)
def test_contacts_are_reported_where_mujoco_has_them(tmp_path, text, margin, gap, meaning):
    """margin, gap: of the pair, each the sum over both geoms."""
    path = tmp_path / "scene.xml"
    path.write_text(text)
    limits = (margin, margin - gap) if meaning == "legacy" else (margin + gap, margin)
    for found, limit in zip(contacts_at_distances(path, meaning), limits, strict=True):
        np.testing.assert_array_equal(found, DISTANCES[limit > DISTANCES])


def test_a_gap_beyond_the_margin_deflates_no_surface(tmp_path):
    path = tmp_path / "scene.xml"
    path.write_text(ball_and_floor(lengths(0.1, 0.3)))
    reported, overlapping = contacts_at_distances(path, "legacy")
    np.testing.assert_array_equal(reported, DISTANCES[DISTANCES < 0.1])
    np.testing.assert_array_equal(overlapping, DISTANCES[DISTANCES < 0.0])
    builder = ModelBuilder()
    (note,) = builder.add_mjcf(path, mjcf_margin="legacy").warnings
    assert note.startswith("geom 'ball': the gap exceeds the margin")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (
            ball_and_floor(lengths(0.3, 0.3)),
            "geom 'ball': 0 < margin <= gap: the surface is 0.3 m further out",
        ),
        (ball_and_floor(lengths(0.3, 0.3), lengths(0.2, 0.4)), "geom 'floor' and 1 more: "),
        (ball_and_floor("", more=PAIR.replace("0.1", "0.5")), "<pair> of 'floor' and 'ball': "),
        (ball_and_floor(lengths(0.3, 0.2999)), ""),
        (ball_and_floor(lengths(0.3, 0)), ""),
        (ball_and_floor(lengths(0, 0.3)), ""),
        (ball_and_floor(lengths(0.3, 0.3) + ' contype="0" conaffinity="0"'), ""),
    ],
)
def test_one_note_names_shapes_that_may_have_the_old_meaning(tmp_path, text, named):
    path = tmp_path / "scene.xml"
    path.write_text(text)
    notes = ModelBuilder().add_mjcf(path).warnings
    assert len(notes) == bool(named)
    for note in notes:
        assert note.startswith(named)
        assert all(
            words in note
            for words in ("MuJoCo 3.9", "--mjcf-margin legacy", "--mjcf-margin included")
        )
    for meaning in ("included", "legacy"):
        notes = ModelBuilder().add_mjcf(path, mjcf_margin=meaning).warnings
        assert not any("MuJoCo 3.9" in note for note in notes)


def test_summaries_have_a_row_of_the_margin(tmp_path, capfd):
    (tmp_path / "scene.xml").write_text(ball_and_floor(lengths(0.3, 0.3)))
    collide = CommandLine(capfd)
    scene = tmp_path / "scene.xml"
    out = tmp_path / "out.h5"
    for words in (f"run {scene} -o {out}", f"inspect {scene}"):
        answer = collide.ok(words)
        (row,) = [line for line in answer.out.splitlines() if line.startswith("margin ")]
        assert "300 mm of each pair" in row
        assert answer.err.count("--mjcf-margin legacy") == 1
        result = collide.result(
            words, "--mjcf-margin", "included", *(["--force"] if "run" in words else [])
        )
        assert result["pair_margin"] == pytest.approx([0.3, 0.3])
        answer = collide.ok(
            words, "--mjcf-margin", "legacy", *(["--force"] if "run" in words else [])
        )
        assert "margin" not in answer.out.split("shape")[0] + answer.err


def test_an_unknown_meaning_is_refused(tmp_path):
    path = tmp_path / "scene.xml"
    path.write_text(ball_and_floor(""))
    with pytest.raises(InputError, match="mjcf_margin is 'old'"):
        ModelBuilder().add_mjcf(path, mjcf_margin="old")


@pytest.mark.parametrize(
    ("attributes", "meaning", "expected"),
    [
        ("float mjc:margin = 0.5\nfloat mjc:gap = 0.5", "", (0.5, 0.5)),
        ("float mjc:margin = 0.5\nfloat mjc:gap = 0.5", "included", (0.5, 0.5)),
        ("float mjc:margin = 0.5\nfloat mjc:gap = 0.5", "legacy", (0.0, 0.5)),
        ("float mjc:margin = 0.75\nfloat mjc:gap = 0.5", "legacy", (0.25, 0.5)),
        ("float mjc:margin = 0.25\nfloat mjc:gap = 0.5", "legacy", (0.0, 0.25)),
        ("float mjc:gap = 0.5", "legacy", (0.0, 0.0)),
        ("float mjc:margin = 0.5", "legacy", (0.5, 0.1)),
        ("float newton:contactMargin = 0.5\nfloat newton:contactGap = 0.5", "legacy", (0.5, 0.5)),
    ],
)
def test_usd(tmp_path, attributes, meaning, expected):
    builder = ModelBuilder()
    path = write_usda(tmp_path, sphere("a", attributes))
    imported = add_usd(builder, path, SceneOptions(mjcf_margin=meaning))
    shapes = builder.finalize().shapes
    assert (float(shapes.margin[0]), float(shapes.gap[0])) == pytest.approx(expected, abs=1e-12)
    noted = [note for note in imported.warnings if "MuJoCo 3.9" in note]
    assert len(noted) == (
        attributes.startswith("float mjc:margin = 0.5\nfloat mjc:gap") and not meaning
    )
    assert all(note.startswith("</a>: ") for note in noted)


def test_dm_controls_fruit_fly():
    dm_control = pytest.importorskip("dm_control")
    walkers = Path(dm_control.__file__).parent / "locomotion" / "walkers" / "assets"
    path = walkers / "fruitfly_v2" / "fruitfly.xml"
    (note,) = ModelBuilder().add_mjcf(path).warnings
    assert note.startswith("geom 'labrum_left_lower_collision' and 7 more: 0 < margin <= gap")
    assert not ModelBuilder().add_mjcf(path, mjcf_margin="legacy").warnings
