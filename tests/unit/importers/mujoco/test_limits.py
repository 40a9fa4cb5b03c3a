"""Scenes that ask for more than any scene has are refused before MuJoCo works on them; others are left to it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from collidecli.errors import InputError
from collidecli.importers.mujoco.compile import compile_mjcf, refuse_excessive_scene


def scene(inside: str, around: str = "") -> str:
    return f"<mujoco{around}><worldbody>{inside}</worldbody></mujoco>"


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        (
            '<replicate count="1000">' * 4 + '<geom size="1"/>' + "</replicate>" * 4,
            "<replicate> stands for 1e+06 copies",
        ),
        ('<replicate count="2000000000"><geom size="1"/></replicate>', "<replicate> stands for 2e+09 copies"),
        ("<flexcomp name='f' count='1000 1000 1000'/>", "<flexcomp> stands for 1e+09 copies"),
        ('<composite type="cable" count="9000000 1 1"/>', "<composite> stands for 9e+06 copies"),
    ],
)
def test_vast_counts(tmp_path: Path, inside: str, words: str):
    (tmp_path / "part.xml").write_text(scene(inside))
    (tmp_path / "main.xml").write_text('<mujoco><include file="part.xml"/></mujoco>')
    for name in ("part.xml", "main.xml"):
        with pytest.raises(InputError) as caught:
            compile_mjcf(tmp_path / name)
        assert f"part.xml: {words}" in str(caught.value)
    with pytest.raises(InputError, match=r"demo/model_file: <\w+> stands for"):
        compile_mjcf("demo/model_file", xml=scene(inside))


@pytest.mark.parametrize(
    ("around", "words"),
    [
        ('<size nkey="2000000000"/>', "<size> has nkey=2000000000"),
        (
            '<asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset>',
            "<hfield> has nrow=100000 ncol=",
        ),
        ("<asset><texture width='2147483647' height='9'/></asset>", "<texture> has width=2147483647 height=9"),
    ],
)
def test_vast_sizes(tmp_path: Path, around: str, words: str):
    (tmp_path / "main.xml").write_text(f"<mujoco>{around}<worldbody/></mujoco>")
    with pytest.raises(InputError) as caught:
        compile_mjcf(tmp_path / "main.xml")
    assert f"main.xml: {words}" in str(caught.value)


def test_countless_attributes(tmp_path: Path):
    text = scene("", "".join(f' a{k}="1"' for k in range(100_000)))
    (tmp_path / "main.xml").write_text(text)
    start = time.process_time()
    with pytest.raises(InputError, match=r"main\.xml: <mujoco> has 100000 attributes"):
        compile_mjcf(tmp_path / "main.xml")
    assert time.process_time() - start < 5.0  # of a processor; MuJoCo itself takes a minute


def test_what_a_scene_may_have(tmp_path: Path):
    one_after_another = '<replicate count="800"><geom size="1"/></replicate>' * 3
    within = '<replicate count="3"><replicate count="4"><geom size="1"/></replicate></replicate>'
    comment = '<!-- <replicate count="2000000000"> -->'
    mesh = f'<mesh name="m" vertex="{"0 1 2 " * 50_000}"/>'
    for text in (scene(one_after_another), scene(within), scene(comment), scene(mesh), scene("a=b " * 5000), ""):
        refuse_excessive_scene(text.encode(), "main.xml")
    (tmp_path / "main.xml").write_text(scene(within))
    assert compile_mjcf(tmp_path / "main.xml").mj_model.ngeom == 12
