"""Limits of the number of elements and bodies of an MJCF or URDF scene, with all its files."""

from pathlib import Path

import pytest

from collidecli.errors import InputError
from collidecli.importers.mujoco import excessive_scenes
from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.importers.mujoco.scene_files import included_files
from collidecli.scene.builder import ModelBuilder


def scene(inside: str) -> str:
    return f"<mujoco><worldbody>{inside}</worldbody></mujoco>"


GEOM = '<geom size="1"/>'
BODIES = f"<body>{GEOM}</body>" * 10


def attaching(inside: str, **models: str) -> str:
    """A scene that attaches others, their files by their names."""
    files = "".join(f'<model name="{name}" file="{file}"/>' for name, file in models.items())
    return f"<mujoco><asset>{files}</asset><worldbody>{inside}</worldbody></mujoco>"


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
        ([attaching('<replicate count="2"><include file="1.xml"/></replicate>', m="2.xml"),
          '<mujocoinclude><attach model="m" prefix="a"/></mujocoinclude>', scene(BODIES)],
         "the scene has 20 bodies"),
        ([attaching('<attach model="x" prefix="a"/><attach model="y" prefix="b"/>',
                    x="1.xml", y="2.xml"),
          attaching('<attach model="z" prefix="c"/>', z="3.xml"),
          attaching('<replicate count="9"><attach model="z" prefix="c"/></replicate>', z="3.xml"),
          scene("<body/><body/>")], "the scene has 20 bodies"),
        ([attaching('<attach model="1" prefix="a"/>' * 2 , m="2.xml").replace('name="m"', ""),
          "", scene(BODIES).replace("<mujoco>", '<mujoco model="1">')], "the scene has 20 bodies"),
        ([scene('<flexcomp name="f" count="4 5 1"/>')], "the scene has 20 bodies"),
        ([scene('<flexcomp name="f"/>')], "the scene has 1,000 bodies"),
        ([scene('<flexcomp name="f" count="5 9 1" rigid="true"/>')], "the scene has 48 elements"),
        ([scene('<composite type="cable" count="20 1 1"/>')], "the scene has 20 bodies"),
        ([scene('<replicate count="+&#50;">' + BODIES + "</replicate>")],
         "the scene has 20 bodies"),
        ([scene("< body/>" * 20)], "the scene has 20 bodies"),
        ([scene(f'<site name="<!--"/>{BODIES * 2}<site name="-->"/>')], "the scene has 20 bodies"),
        (['<mujoco><site name="<!--"/>< include file="1.xml"/><site name="-->"/></mujoco>',
          scene(BODIES * 2)], "the scene has 20 bodies"),
    ],
    ids=["bodies", "copies", "elements", "geoms", "copied", "links", "include", "copied include",
         "attach", "attach in an include", "diamond", "model without a name", "flexcomp",
         "flexcomp without a count", "rigid flexcomp", "composite", "reference", "space",
         "comment in a value", "include between values"],
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


def test_files_of_one_name_in_many_folders_count_once(tmp_path, monkeypatch):
    """As in sets of objects, with a folder for each."""
    monkeypatch.setattr(excessive_scenes, "MOST_BODIES", 40)
    models = {f"o{k}": f"o{k}/model.xml" for k in range(4)}
    for name, file in models.items():
        (tmp_path / name).mkdir()
        (tmp_path / file).write_text('<mujoco><include file="parts.xml"/></mujoco>')
        (tmp_path / name / "parts.xml").write_text(scene(BODIES))
    inside = "".join(f'<attach model="{name}" prefix="{name}_"/>' for name in models)
    (tmp_path / "s.xml").write_text(attaching(inside, **models))
    imported = add_mjcf(ModelBuilder(), tmp_path / "s.xml")
    assert imported.mj_model.nbody == 41


def test_scenes_that_attach_each_other_are_counted(tmp_path):
    """MuJoCo ends its process for them; counting them ends."""
    paths = [str(tmp_path / name) for name in ("a.xml", "b.xml")]
    for path, other in zip(paths, ("b.xml", "a.xml"), strict=True):
        Path(path).write_text(attaching('<attach model="m" prefix="a"/>', m=other))
    texts = {path: Path(path).read_bytes() for path in included_files(paths[0])}
    assert list(texts) == paths
    excessive_scenes.refuse_excessive_scene(texts, paths[0])
