"""The page of collide view with hydroelastic surfaces, as Chromium shows it."""

from __future__ import annotations

import pytest

from collidecli.commands import view
from tests.cli.test_view_in_a_browser import ARGUMENTS, SCENE, WAIT, Seen
from tests.support.browser import chromium, needs_chromium

pytest.importorskip("viser")
pytestmark = needs_chromium
NODES = """() => Object.fromEntries(Object.entries(window.__viserSceneTree.getState())
  .filter(([name]) => name.startsWith("/surfaces/"))
  .map(([name, one]) => [name, one.visibility && one.message.props.faces ? one.message.props.faces.length / 3 : 0]))"""
DRAWN = f"Object.values(({NODES})()).reduce((all, one) => all + one, 0)"


def test_surfaces_on_a_page(tmp_path, monkeypatch, collide):
    """A ball that overlaps a block: as many triangles as the faces have, none without the checkbox; and forces."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scene.xml").write_text(SCENE.replace("0 0 1", "0 0 0.45"))
    words = ("--hydro", "all", "--hydro-resolution", "12", "--hydro-surface", "--device", "cpu", "-o", "a.h5", "-q")
    assert collide("run", "scene.xml", *words).code == 0
    with view.opened_view(view.ViewRequest("a.h5")) as opened:
        lengths = opened.frames.surfaces(0, 0).faces.lengths
        view.export_view(opened, "page.html", (0,), False)
    with chromium(ARGUMENTS) as browser:
        seen = Seen(browser, (tmp_path / "page.html").as_uri())
        seen.page.get_by_text("1 surface").first.wait_for(timeout=WAIT)
        seen.page.wait_for_function(f"() => {DRAWN} === {int((lengths - 2).sum())}", timeout=WAIT)
        seen.page.uncheck("#collide-surfaces")
        seen.page.wait_for_function(f"() => {DRAWN} === 0", timeout=WAIT)
        assert seen.page.locator("#collide-particles").count() == 0
        assert seen.complaints() == []
