"""The page of collide view with hydroelastic surfaces, as Chromium shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from collidecli.commands import view
from collidecli.report.view.framing import OPACITY, OPACITY_OVER_SURFACES
from tests.cli.test_view_in_a_browser import ARGUMENTS, SCENE, WAIT, Seen
from tests.support.browser import chromium, needs_chromium

pytest.importorskip("viser")
pytestmark = needs_chromium
NODES = """() => Object.fromEntries(Object.entries(window.__viserSceneTree.getState())
  .filter(([name]) => name.startsWith("/surfaces/"))
  .map(([name, one]) => [name, one.visibility && one.message.props.faces ? one.message.props.faces.length / 3 : 0]))"""
CLOTH = Path(__file__).parents[2] / "samples" / "06_cloth" / "cloth.usda"
SELVES = """() => { const one = window.__viserSceneTree.getState()["/contacts/self"];
  return one?.visibility ? one.message.props.points.length / 3 : 0; }"""
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


def test_shapes_over_forces_are_fainter(tmp_path, monkeypatch, collide):
    """Of a set without faces, whose forces are arrows within the shapes; a set without surfaces has opaquer shapes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scene.xml").write_text(SCENE.replace("0 0 1", "0 0 0.45"))
    for hydro, opacity in (("all", OPACITY_OVER_SURFACES), ("off", OPACITY)):
        words = ("--hydro", hydro, "--device", "cpu", "-o", "a.h5", "-q", "--force")
        assert collide("run", "scene.xml", *words).code == 0
        with view.opened_view(view.ViewRequest("a.h5")) as opened:
            assert not opened.frames.has_faces
            view.export_view(opened, "page.html", (0,), True)
        assert f'"opacity":{opacity}' in Path("page.html").read_text().replace(": ", ":")


def test_self_contacts_on_a_page(tmp_path, monkeypatch, collide):
    """The sample's folded cloth: as many points as the frame has self-contacts, and none without the checkbox."""
    monkeypatch.chdir(tmp_path)
    words = ("--self-contacts", "0.02", "--frames", "23:25", "--device", "cpu", "-o", "a.h5", "-q")
    assert collide("run", str(CLOTH), *words).code == 0
    with view.opened_view(view.ViewRequest("a.h5", scene=str(CLOTH))) as opened:
        count = len(opened.frames.self_contacts(1, 0))
        assert opened.frames.self_contact_count((0,)) >= count > 50
        view.export_view(opened, "page.html", (0,), False)
    with chromium(ARGUMENTS) as browser:
        seen = Seen(browser, (tmp_path / "page.html").as_uri())
        seen.page.locator("#collide-now").filter(has_text="self-contact").wait_for(timeout=WAIT)
        seen.page.locator("[data-step=last]").click()
        seen.page.get_by_text(f"{count} self-contacts").first.wait_for(timeout=WAIT)
        seen.page.wait_for_function(f"() => ({SELVES})() === {count}", timeout=WAIT)
        assert seen.page.get_by_text("self-contact of cloths or soft bodies").count() == 1
        seen.page.uncheck("#collide-self_contacts")
        seen.page.wait_for_function(f"() => ({SELVES})() === 0", timeout=WAIT)
        assert seen.complaints() == []
