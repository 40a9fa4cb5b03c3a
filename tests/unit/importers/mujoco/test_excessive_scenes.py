"""Limits of the number of elements and bodies of an MJCF or URDF scene, with all its files."""

import pytest

from collidecli.errors import InputError
from collidecli.importers.mujoco import excessive_scenes
from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.scene.builder import ModelBuilder


def scene(inside: str) -> str:
    return f"<mujoco><worldbody>{inside}</worldbody></mujoco>"


GEOM = '<geom size="1"/>'
BODIES = f"<body>{GEOM}</body>" * 10


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ([scene(BODIES * 2)], "the scene has 20 bodies, with copies"),
        ([scene(f'<replicate count="2">{BODIES}</replicate>')], "the scene has 20 bodies"),
        ([scene("<site/>" * 40)], "the scene has 42 elements"),
        ([scene(GEOM * 31)], "the scene has 31 geoms"),
        (
            [scene('<replicate count="4">' + "<site/>" * 10 + "</replicate>")],
            "the scene has 43 elements",
        ),
        (["<robot name='r'>" + "".join(f"<link name='l{k}'/>" for k in range(20)) + "</robot>"],
         "the scene has 20 bodies"),
        ([scene('<include file="1.xml"/>') , f"<mujoco>{scene(BODIES * 2)}</mujoco>"],
         "the scene has 20 bodies"),
        ([scene('<replicate count="2"><include file="1.xml"/></replicate>'),
          f"<mujocoinclude>{BODIES}</mujocoinclude>"], "the scene has 20 bodies"),
        (['<mujoco><asset><model name="m" file="1.xml"/></asset><worldbody>'
          '<replicate count="2"><attach model="m" prefix="a"/></replicate></worldbody></mujoco>',
          scene(BODIES)], "the scene has 20 bodies"),
    ],
    ids=["bodies", "copies", "elements", "geoms", "copied", "links", "include", "copied include", "attach"],
)  # fmt: skip
def test_scenes_that_are_too_large_are_refused(tmp_path, texts, words, monkeypatch):
    """The limits are of all files of a scene, copies included."""
    monkeypatch.setattr(excessive_scenes, "MOST_BODIES", 19)
    monkeypatch.setattr(excessive_scenes, "MOST_GEOMS", 30)
    monkeypatch.setattr(excessive_scenes, "MOST_ELEMENTS", 41)
    for k, text in enumerate(texts):
        (tmp_path / f"{k}.xml").write_text(text)
    with pytest.raises(InputError) as error:
        add_mjcf(ModelBuilder(), tmp_path / "0.xml")
    assert words in error.value.what
    assert error.value.where == str(tmp_path / "0.xml")
    assert "at most" in error.value.fix


def test_scenes_at_the_limits_are_read(tmp_path, monkeypatch):
    """A comment has no elements."""
    monkeypatch.setattr(excessive_scenes, "MOST_BODIES", 10)
    monkeypatch.setattr(excessive_scenes, "MOST_ELEMENTS", 22)
    (tmp_path / "s.xml").write_text(scene(f"{BODIES}<!-- {BODIES} -->"))
    add_mjcf(ModelBuilder(), tmp_path / "s.xml")
