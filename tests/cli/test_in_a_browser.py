"""The pages of collide view and collide report as Chromium shows them: pixels, controls, widths,
dark, paper."""

import io
import json
import re
import shutil
import time
from contextlib import chdir
from pathlib import Path

import h5py
import numpy as np
import pytest

from collidecli.pages.view.colours import OPACITY_OVER_SURFACES
from collidecli.pages.view.contact_map import LEVELS, STEPS
from collidecli.pages.view.framing import Stage
from collidecli.verbs.view.view import ViewRequest, opened_view, write_view
from tests.cli.conftest import CommandLine, write_poses
from tests.support.waits import PATIENCE

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.rest,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: apt-get install chromium"),
]


pytest.importorskip("viser")
image = pytest.importorskip("PIL.Image")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
]
FRAMES = 12
LAST_FRAME = f"frame {FRAMES - 1} (0 to {FRAMES - 1})"
TOUCH = 6
SHORT = 9
SCENE = """<mujoco>
  <worldbody>
    <geom name="base" type="box" size="0.5 0.5 0.2"/>
    <body name="ball" pos="0 0 1"><freejoint/><geom name="ball" type="sphere" size="0.3" gap="0.03"/>
      <geom type="box" size="0.1 0.1 0.1" contype="0" conaffinity="0"/></body>
  </worldbody>
</mujoco>
"""
WAIT = 1000 * PATIENCE
"""[ms] for what a browser draws in software."""
QUIET = ("THREE.Clock", "GPU stall", "GL Driver Message", "glDrawElementsInstanced")
"""What viser's client says of itself; the last is of instances that it draws once before their
buffer is there."""


@pytest.fixture(scope="module")
def falling_ball(tmp_path_factory) -> Path:
    """A ball that comes down on a block: from frame 3 on in the gap, from frame 6 on 1 cm deeper
    each.

    In world 1 it is 2 cm lower, and the demonstration ends after 9 frames.
    """
    folder = tmp_path_factory.mktemp("view")
    poses = np.zeros((FRAMES, 2, 1, 7))
    poses[..., 2] = (0.5 + 0.055 - 0.01 * np.arange(FRAMES))[:, None, None]
    poses[:, 1, 0, 2] -= 0.02
    poses[..., 6] = 1.0
    (folder / "scene.xml").write_text(SCENE)
    write_poses(folder / "motion.h5", poses, ["ball"], 0.1)
    with h5py.File(folder / "motion.h5", "a") as file:
        file.attrs["format_version"] = np.array((1, 1), np.int32)
        file.create_dataset("episode/name", data=["long", "short"], dtype=h5py.string_dtype())
        file["episode/world"] = np.array((0, 1), np.int32)
        file["episode/first_frame"] = np.zeros(2, np.int64)
        file["episode/frame_count"] = np.array((FRAMES, SHORT), np.int64)
    with chdir(folder):
        CommandLine().ok("run scene.xml -t motion.h5 -o out.h5 -q --device cpu")
    request = ViewRequest(str(folder / "out.h5"), export=str(folder / "page.html"))
    with opened_view(request) as opened:
        return Path(write_view(opened, request).written)


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


VIOLATIONS = """document.addEventListener("securitypolicyviolation", (one) =>
  console.error(`the policy of the page forbids ${one.violatedDirective}: ${one.blockedURI}`));"""


class Tab:
    """One page of the browser for all tests: what it shows now, and what it asked for and said
    since then."""

    def __init__(self, browser) -> None:
        self.url = ""
        self.asked = []
        self.said = []
        self.page = browser.new_page(device_scale_factor=0.5)
        self.page.on("request", lambda request: self.asked.append(request.url.split("#")[0]))
        self.page.on("websocket", lambda socket: self.asked.append(socket.url))
        # also those of workers' scripts and of styles, which the console may not show
        self.page.add_init_script(VIOLATIONS)
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on(
            "console",
            lambda one: self.said.append(one.text) if one.type in ("error", "warning") else None,
        )

    def show(
        self,
        path: Path,
        address: str = "",
        width: int = 1000,
        height: int = 420,
        scheme: str = "light",
    ):
        """The page of a file, loaded anew."""
        self.clear()
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(media="screen", color_scheme=scheme)
        self.url = path.as_uri()
        self.page.goto(self.url + address)
        return self.page

    def clear(self) -> None:
        """An empty page, which draws nothing. Another address of the file that is shown would load
        nothing."""
        self.page.goto("about:blank")
        self.url = ""
        self.asked.clear()
        self.said.clear()

    def check(self) -> None:
        """It has requested nothing but itself, and has no messages."""
        assert [text for text in self.said if not any(quiet in text for quiet in QUIET)] == []
        assert [url for url in self.asked if not url.startswith(("data:", "blob:"))] == [self.url]

    def pixels(self) -> np.ndarray:
        """int[h, w, 3] of the picture, without panels beside it."""
        shot = image.open(io.BytesIO(self.page.locator("canvas").first.screenshot(timeout=WAIT)))
        return np.asarray(shot.convert("RGB")).astype(int)[70:, 160:300]

    def until(self, test) -> np.ndarray:
        """The picture for which test(pixels) holds; the last one where none does in time."""
        end = time.monotonic() + WAIT / 1000
        while not test(held := self.pixels()) and time.monotonic() < end:
            self.page.wait_for_timeout(100)
        return held


@pytest.fixture(scope="module")
def shared_tab(browser) -> Tab:
    return Tab(browser)


@pytest.fixture
def tab(shared_tab):
    """The page of the browser, without what a test has left there."""
    yield shared_tab
    shared_tab.check()
    shared_tab.clear()


def warm(pixels: np.ndarray) -> int:
    """How many pixels have a colour of depths: far more red than blue."""
    return int((pixels[..., 0] - pixels[..., 2] > 60).sum())


STATE = """() => {
  const props = (name) => window.__viserSceneTree.getState()[name];
  const nodes = Object.entries(window.__viserSceneTree.getState());
  const found = nodes.filter(([name]) => /^\\/shapes\\/0\\/\\d+$/.test(name));
  return {
    opacities: found.flatMap(([, one]) => [...one.message.props.batched_opacities]),
    shapes: found.map(([, one]) => one.visibility),
    points: props("/contacts/touching").visibility,
    size: props("/contacts/touching").message.props.point_size,
    gap: props("/contacts/gap").visibility,
    arrows: props("/contacts/normals").visibility,
    distance: window.__viserMutable.cameraControl.distance,
    target: window.__viserMutable.cameraControl.getTarget(window.__viserMutable.camera.position.clone()).toArray(),
  };
}"""
"""What the renderer of a page was sent; the shapes of the base and of the ball, and the visual
box."""


@pytest.fixture
def exported(falling_ball, shared_tab):
    """The written page in its first frame with all pairs of its first world; loaded by the first
    test alone."""
    assert falling_ball.stat().st_size < 2_000_000
    page = shared_tab.page
    if shared_tab.url != falling_ball.as_uri():
        shared_tab.show(falling_ball)
        # the deepest
        page.get_by_text(LAST_FRAME).wait_for(timeout=WAIT)
    page.fill("#collide-find", "")
    page.select_option("#collide-world", index=0)
    page.get_by_role("button", name="first frame").click()
    page.get_by_text(f"frame 0 (0 to {FRAMES - 1})").wait_for(timeout=WAIT)
    yield shared_tab
    shared_tab.check()


def sent(page, condition: str) -> dict:
    """The state of the page's renderer for which a condition in JavaScript on `s` holds."""
    page.wait_for_function(f"() => {{ const s = ({STATE})(); return {condition}; }}", timeout=WAIT)
    return page.evaluate(STATE)


def test_the_page_shows_a_pair(exported):
    page = exported.page
    assert page.locator("#collide-picked").is_hidden()
    before = sent(page, "s.size > 0")
    page.select_option("#collide-pair", index=1)
    page.get_by_text(f"frame {TOUCH} (0 to").wait_for(timeout=WAIT)
    touch = exported.until(lambda held: warm(held) > 0)
    assert warm(touch) > 0, "a point of some pixels, partly behind a shape"
    away = " + ".join(
        f"Math.abs(s.target[{n}] - {value})" for n, value in enumerate(before["target"])
    )
    assert sent(page, f"{away} > 0.05")["distance"] <= before["distance"] + 1e-6, (
        "the camera moves to the contacts"
    )
    page.click("#collide [data-event='1']")
    page.get_by_text(f"frame {FRAMES - 1} (0 to").wait_for(timeout=WAIT)
    moved = exported.until(lambda held: np.abs(held - touch).max() > 60)
    assert np.abs(moved - touch).max() > 60
    assert "ball" in page.inner_text("#collide-words")
    assert "1.1 s" in page.inner_text("#collide-now")
    marks = page.eval_on_selector_all(
        "#collide-marks rect", "all => all.map(one => parseFloat(one.getAttribute('x')))"
    )
    at = 100 * (FRAMES - 1) / FRAMES
    assert marks == pytest.approx([100 * TOUCH / FRAMES, at, at + 50 / FRAMES], abs=0.01)
    for pattern, count in (("nothing", 1), ("re:b.+e", 2), ("re:(", 1), ("b*e", 2)):
        page.fill("#collide-find", pattern)
        assert page.locator("#collide-pair option").count() == count


SHOWN = """() => {
  window.shown = [];
  new MutationObserver(() => window.shown.push(Number(document.getElementById("collide-frame").value)))
    .observe(document.getElementById("collide-now"), { childList: true });
}"""
"""Records the frames that a page shows: on a busy machine one may be there for less than a look at
the page takes."""


def test_the_page_has_the_controls_of_the_viewer(exported):
    page = exported.page
    for step, at in (("next", 1), ("last", FRAMES - 1), ("previous", FRAMES - 2), ("first", 0)):
        page.get_by_role("button", name=f"{step} frame").click()
        page.get_by_text(f"frame {at} (0 to {FRAMES - 1})").wait_for(timeout=WAIT)
    page.fill("#collide-frame", "4")
    page.get_by_text("1 in the gap").wait_for(timeout=WAIT)
    sent(page, "s.gap && s.arrows && !s.points")
    page.uncheck("#collide-arrows")
    sent(page, "s.gap && !s.arrows")
    page.uncheck("#collide-gaps")
    sent(page, "!s.gap")
    page.fill("#collide-frame", str(FRAMES - 1))
    first = sent(page, "s.points && !s.gap")
    page.fill("#collide-opacity", "0.2")
    opacities = sent(page, "Math.max(...s.opacities) < 0.3")["opacities"]
    assert sorted(opacities) == pytest.approx([0.035, 0.07, 0.2]), (
        "shapes are fainter than the visual box"
    )
    page.uncheck("#collide-visuals")
    assert sorted(sent(page, "!s.shapes.every(Boolean)")["opacities"]) == pytest.approx(
        [0.1, 0.2, 0.2]
    )
    page.check("#collide-visuals")
    page.fill("#collide-size", "2")
    size = sent(page, f"s.size > {1.5 * first['size']}")["size"]
    assert size == pytest.approx(2 * first["size"], rel=1e-5)
    page.evaluate(
        "(camera => camera.dollyTo(2 * camera.distance,"
        " false))(window.__viserMutable.cameraControl)"
    )
    away = sent(page, f"s.size > {1.5 * size}")
    assert away["size"] / away["distance"] == pytest.approx(size / first["distance"], rel=0.06), (
        "of one size on screen"
    )
    page.evaluate(SHOWN)
    page.click("#collide-play")
    page.wait_for_function(
        f"window.shown.length > 1 && window.shown.at(-1) === {FRAMES - 1}", timeout=WAIT
    )
    shown = page.evaluate("window.shown")
    assert shown[0] == 0
    assert shown == sorted(shown), "those that are due"
    assert page.inner_text("#collide-play") == "Play"


def test_the_page_shows_nothing_after_the_end_of_a_demonstration(exported):
    page = exported.page
    assert page.locator("#collide-world option").all_inner_texts() == ["long", "short"]
    page.select_option("#collide-world", label="short")
    page.click("#collide-play")
    page.get_by_text(f"frame {SHORT - 1} (0 to").wait_for(timeout=WAIT)
    page.get_by_text("Play", exact=True).wait_for(timeout=WAIT)
    assert all(sent(page, "s.points")["shapes"])
    page.get_by_role("button", name="next frame").click()
    page.get_by_text("ended: short has no recorded frame here").wait_for(timeout=WAIT)
    assert not any(sent(page, "!s.points")["shapes"])
    assert page.locator("#collide-marks rect").count() == FRAMES - SHORT + 1
    page.select_option("#collide-world", label="long")
    page.get_by_text(f"frame {SHORT} (0 to {FRAMES - 1}) · 0.9 s · 1 contact touching").wait_for(
        timeout=WAIT
    )
    assert all(sent(page, "s.points")["shapes"])


def test_an_address_shows_a_pair_in_a_frame(falling_ball, tab):
    """Its contacts alone; and translucent shapes hide nothing, for which three.js must not write
    their depth."""
    page = tab.show(falling_ball, "#world=1&pair=ball&pair=base&frame=7")
    page.get_by_text(f"frame 7 (0 to {FRAMES - 1})").wait_for(timeout=WAIT)
    assert page.locator("#collide-world option:checked").inner_text() == "short"
    assert page.is_checked("#collide-only")
    assert "ball" in page.inner_text("#collide-words")
    written = """(group) => { let found = null; window.__viserMutable.nodeRefFromName[group]?.traverse((node) => {
      if (node.isInstancedMesh2) found = node.material.depthWrite; }); return found; }"""
    page.wait_for_function(f"() => ({written})('/shapes/0/000') === false", timeout=WAIT)
    page.evaluate("location.hash = '#world=1&frame=8'")
    page.get_by_text(f"frame 8 (0 to {FRAMES - 1})").wait_for(timeout=WAIT)


NODES = """() => Object.fromEntries(Object.entries(window.__viserSceneTree.getState())
  .filter(([name]) => name.startsWith("/surfaces/"))
  .map(([name, one]) => [name, one.visibility && one.message.props.faces ? one.message.props.faces.length / 3 : 0]))"""
CLOTH = Path(__file__).parents[2] / "samples" / "06_cloth" / "cloth.usda"
SELVES = """() => { const one = window.__viserSceneTree.getState()["/contacts/self"];
  return one?.visibility ? one.message.props.points.length / 3 : 0; }"""
DRAWN = f"Object.values(({NODES})()).reduce((all, one) => all + one, 0)"


def test_surfaces_on_a_page(tmp_path, collide, tab):
    """A ball that overlaps a block: as many triangles as the faces have, none without the checkbox;
    and forces."""
    (tmp_path / "scene.xml").write_text(SCENE.replace("0 0 1", "0 0 0.45"))
    collide.ok(
        "run scene.xml --hydro all --hydro-resolution 12 --hydro-surface --device cpu -o a.h5 -q"
    )
    request = ViewRequest("a.h5", export="page.html")
    with opened_view(request) as opened:
        lengths = opened.frames.surfaces(0, 0).faces.lengths
        path = Path(write_view(opened, request).written)
    assert f'"opacity":{OPACITY_OVER_SURFACES}' in path.read_text(), (
        "faces are seen through the shapes"
    )
    page = tab.show(path.absolute())
    page.get_by_text("1 surface").first.wait_for(timeout=WAIT)
    page.wait_for_function(f"() => {DRAWN} === {int((lengths - 2).sum())}", timeout=WAIT)
    page.uncheck("#collide-surfaces")
    page.wait_for_function(f"() => {DRAWN} === 0", timeout=WAIT)
    assert page.locator("#collide-particles").count() == 0


def test_a_contact_map_on_a_page(tmp_path, collide, tab):
    """As many triangles in warm colours as touch, by the levels of the page; none without the
    checkbox."""
    (tmp_path / "scene.xml").write_text(SCENE.replace("0 0 1", "0 0 0.45"))
    collide.ok("run scene.xml --device cpu -o a.h5 -q")
    collide.ok("probe scene.xml --vertices-of ball --spacing 5cm --device cpu -o map.h5")
    request = ViewRequest("a.h5", map="map.h5", map_range=0.3, export="page.html")
    with opened_view(request) as opened:
        drawn = opened.frames.contact_map.of_template(0)
        level = opened.frames.contact_map.levels(0, opened.touches.deepest)[:, 0]
        path = Path(write_view(opened, request).written)
    of_triangles = level[drawn.point]
    assert 0 < (of_triangles > STEPS).sum() < (of_triangles > 0).sum() < len(of_triangles)
    page = tab.show(path.absolute())
    text = f"{int((level > STEPS).sum())} touching points of the map"
    page.get_by_text(text).first.wait_for(timeout=WAIT)
    nodes = NODES.replace("/surfaces/", "/map/")
    counts = np.bincount(of_triangles, minlength=LEVELS).tolist()
    wanted = {f"/map/{number:02d}": count for number, count in enumerate(counts)}
    page.wait_for_function(
        f"(one) => JSON.stringify(Object.entries(({nodes})()).sort()) === one",
        arg=json.dumps([list(item) for item in sorted(wanted.items())], separators=(",", ":")),
        timeout=WAIT,
    )
    page.uncheck("#collide-map")
    drawn_now = DRAWN.replace(NODES, nodes)
    page.wait_for_function(f"() => {drawn_now} === 0", timeout=WAIT)


def at_first_distance(falling_ball: Path, width: int) -> str:
    """Condition on the state `s` of the page in a window of 844 pixels' height: the camera is where
    it begins."""
    half = np.radians(22.5)
    narrow_half = min(half, np.arctan(width / 844 * np.tan(half)))
    with opened_view(ViewRequest(str(falling_ball.with_name("out.h5")))) as opened:
        first = Stage(opened.frames, opened.up_axis).distance * np.sin(half) / np.sin(narrow_half)
    return f"Math.abs(s.distance / {first} - 1) < 1e-3"


STALE_CAMERA = """let viser;
const watched = new WeakSet();
const watch = (given) => {
  watched.add(given);
  let send = given.sendMessage;
  Object.defineProperty(given, "sendMessage", {
    get: () => send,
    set: (next) => {
      send = next;
      next({ type: "ViewerCameraMessage", position: [3, 3, 3], look_at: [0, 0, 0] });
      window.toldStaleCamera = true;
    },
  });
};
Object.defineProperty(window, "__viserMutable", {
  configurable: true,
  get: () => viser,
  set: (given) => {
    viser = given;
    if (!watched.has(given)) watch(given);
  },
});"""
"""Before the first camera is there, the client tells its default one, as on a slow machine."""


def test_a_camera_that_is_told_too_early_moves_nothing(falling_ball, browser):
    tab = Tab(browser)
    tab.page.add_init_script(STALE_CAMERA)
    page = tab.show(falling_ball, width=PHONE, height=844)
    page.get_by_text(LAST_FRAME).wait_for(timeout=WAIT, state="attached")
    condition = f"window.toldStaleCamera && {at_first_distance(falling_ball, PHONE)}"
    sent(page, condition)
    tab.check()
    page.close()


def test_a_narrow_window_has_the_whole_scene(falling_ball, tab):
    """The ball that the camera has at its middle is in the width of a phone's window: the camera is
    as far away as a ball in the smaller angle of view needs."""
    told = {}
    for width in (1000, PHONE):
        page = tab.show(falling_ball, width=width, height=844)
        # the panel of a narrow window is folded
        page.get_by_text(LAST_FRAME).wait_for(timeout=WAIT, state="attached")
        told[width] = sent(page, f"s.size > 0 && {at_first_distance(falling_ball, width)}")
        tab.check()
    assert told[PHONE]["distance"] > 1.8 * told[1000]["distance"]
    larger = told[PHONE]["size"] / told[1000]["size"]
    assert larger == pytest.approx(1.0), "sizes are relative to the first distance"


def test_a_pair_of_particles_is_drawn_alone(tmp_path, collide, tab):
    """The page of the sample's cloth begins where it is deepest in the ball; of its contact with
    itself, named by the address, the other points are not drawn."""
    words = ("--self-contacts", "0.02", "--device", "cpu", "-o", "a.h5", "-q")
    collide.ok("run", CLOTH, *words)
    request = ViewRequest("a.h5", scene=str(CLOTH), export="page.html")
    with opened_view(request) as opened:
        deepest = opened.touches.of(0)[0].deepest.deepest
        count = len(opened.frames.self_contacts(24, 0)["pair"])
        write_view(opened, request)
    page = tab.show(tmp_path / "page.html")
    page.get_by_text(f"frame {deepest} (0 to 24)").wait_for(timeout=WAIT)
    tab.check()
    cloth = "&pair=/World/cloth"
    page = tab.show(tmp_path / "page.html", f"#world=0{cloth}{cloth}&frame=24")
    page.get_by_text("frame 24 (0 to 24)").wait_for(timeout=WAIT)
    page.wait_for_function(f"() => ({SELVES})() === {count}", timeout=WAIT)
    sent(page, "!s.points && !s.gap && !s.arrows")
    assert page.inner_text("#collide-words").splitlines()[:2] == ["/World/cloth"] * 2
    page.select_option("#collide-pair", label=opened.touches.of(0)[0].label)
    sent(page, "s.points && s.arrows")
    page.wait_for_function(f"() => ({SELVES})() === 0", timeout=WAIT)


def test_self_contacts_on_a_page(tmp_path, collide, tab):
    """The sample's folded cloth: as many points as the frame has self-contacts, and none without
    the checkbox."""
    collide.ok(
        "run",
        CLOTH,
        *["--self-contacts", "0.02", "--frames", "23:25", "--device", "cpu", "-o", "a.h5", "-q"],
    )
    request = ViewRequest("a.h5", scene=str(CLOTH), export="page.html")
    with opened_view(request) as opened:
        count = len(opened.frames.self_contacts(1, 0)["pair"])
        assert opened.frames.counts((0,))["self-contact"] >= count > 50
        write_view(opened, request)
    page = tab.show(tmp_path / "page.html")
    page.locator("#collide-now").filter(has_text="self-contact").wait_for(timeout=WAIT)
    page.locator("[data-step=last]").click()
    page.get_by_text(f"{count} self-contacts").first.wait_for(timeout=WAIT)
    page.wait_for_function(f"() => ({SELVES})() === {count}", timeout=WAIT)
    assert page.get_by_text("self-contact of cloths or soft bodies").count() == 1
    page.uncheck("#collide-self_contacts")
    page.wait_for_function(f"() => ({SELVES})() === 0", timeout=WAIT)


BASELINE = (
    Path(__file__).parents[2]
    / "samples"
    / "03_regression_tests"
    / "tests"
    / "test_contacts"
    / "fall.h5"
)
PHONE = 390
CUT = """shown => [...document.querySelectorAll(`.${shown} svg text`)].filter(one => {
    const [box, svg] = [one, one.ownerSVGElement].map(it => it.getBoundingClientRect());
    return box.right > svg.right + 1 || box.left < svg.left - 1;
}).map(one => one.textContent)"""
"""Texts of charts that their edge cuts off."""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory) -> Path:
    """A page with every section: the sample's baseline against a copy in which a crate lies
    deeper."""
    folder = tmp_path_factory.mktemp("page")
    shutil.copy(BASELINE, folder / "now.h5")
    with h5py.File(folder / "now.h5", "r+") as file:
        file["rigid_contacts/distance"][700:900] -= 0.002
        file.attrs["content_sha256"] = "9" * 64
    CommandLine().ok(
        "report", folder / "now.h5", "--against", BASELINE, "-o", folder / "report.html", "-q"
    )
    return folder / "report.html"


@pytest.fixture
def opened(tab, page_file):
    """opened(width, scheme): the page of the report."""
    return lambda width, scheme="light": tab.show(page_file, width=width, height=800, scheme=scheme)


def visible(page, selector: str) -> int:
    return sum(one.is_visible() for one in page.query_selector_all(selector))


def colour(page, selector: str, name: str) -> str:
    return page.eval_on_selector(selector, f"one => getComputedStyle(one).{name}")


@pytest.mark.parametrize(
    ("width", "shown", "hidden", "letters"),
    [(1200, "wide", "narrow", 9.0), (PHONE, "narrow", "wide", 8.0), (320, "narrow", "wide", 6.5)],
)
def test_it_fits_its_window(opened, width, shown, hidden, letters):
    page = opened(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert (visible(page, f".{shown} svg"), visible(page, f".{hidden} svg")) == (9, 0)
    outside = page.evaluate(
        """width => [...document.querySelectorAll("section svg text, section td, section th, h1, h2, p, dd")]
            .filter(one => one.getBoundingClientRect().right > width + 1 && !one.closest("details")).length""",
        width,
    )
    assert outside == 0
    assert page.evaluate(CUT, shown) == [], "nothing is written over a chart's edge"
    smallest = page.evaluate(
        """shown => Math.min(...[...document.querySelectorAll(`.${shown} svg text`)].map(one => {
            const svg = one.ownerSVGElement;
            const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
            return parseFloat(getComputedStyle(one).fontSize) * scale;
        }))""",
        shown,
    )
    assert smallest >= letters, "the smallest letters can be read [px]"
    for link in page.query_selector_all("nav a"):
        link.click()
        target = page.query_selector(link.get_attribute("href"))
        assert target is not None
        assert target.is_visible()


SENSORS = """[[sensor]]
name = "heel"
shapes = "foot_left"
[[sensor]]
name = "sits"
type = "inside"
point = { body = "pelvis" }
region = { body = "", box = [4, 4, 0.5] }
"""


@pytest.mark.parametrize(("width", "shown"), [(1280, "wide"), (PHONE, "narrow")])
def test_many_pairs_and_sensors_fit_a_phone(tmp_path, collide, tab, width, shown):
    """Long labels leave a narrow map of 24 pairs, whose scale is written from the page's edge. A
    sensor has no row for what it does not measure."""
    humanoid = Path(__file__).parents[2] / "samples/02_humanoid"
    scene = f"{humanoid}/humanoid.xml -t {humanoid}/motion.h5"
    with chdir(tmp_path):
        Path("sensors.toml").write_text(SENSORS)
        collide.ok(f"run {scene} -o out.h5 -q --device cpu")
        labels = collide.ok(f"label {scene} --sensors sensors.toml --json --device cpu").out
        Path("labels.json").write_text(labels)
        collide.ok("report out.h5 --labels labels.json -o page.html")
    page = tab.show(tmp_path / "page.html", width=width, height=800)
    assert page.evaluate(CUT, shown) == []
    row = page.locator("tr", has=page.get_by_role("rowheader", name="sits")).first
    names = row.locator("td").evaluate_all(
        "cells => cells.filter(one => one.checkVisibility()).map(one => one.dataset.is)"
    )
    measured = ["declared", "frames", "share"]
    assert names == measured if width == PHONE else len(names) == 6


def test_a_screen_reader_has_words_for_every_chart(opened):
    page = opened(1200)
    labels = page.evaluate(
        '[...document.querySelectorAll("svg")].map(one => one.getAttribute("aria-label"))'
    )
    assert (all(labels), "747" in labels[0]) == (True, False)
    assert page.locator("h1").count() == 1
    labelled = """s => s.getAttribute("aria-label") ||
        document.getElementById(s.getAttribute("aria-labelledby")).textContent"""
    for element, rule in (("section", labelled), ("th", "one => one.scope")):
        assert page.evaluate(f'[...document.querySelectorAll("{element}")].every({rule})')
    before = visible(page, "details table")
    page.click("#time summary >> nth=0")
    assert (before, visible(page, "details table")) == (0, 1)


TITLE = """([selector, x, y]) => {
  const box = document.querySelector(selector).getBoundingClientRect();
  const found = document.elementFromPoint(box.left + x * box.width, box.top + y * box.height);
  return found?.querySelector("title")?.textContent ?? "";
}"""


HOVERED = [
    ("time", 0, 0.5, 0.6, r"frame \d+, [\d.]+ s: [\d.]+ contacts, [\d.]+ penetrate"),
    ("time", 1, 0.5, 0.6, r"frame \d+, [\d.]+ s: [\d.]+ [mµun]*m"),
    ("pairs", 0, 0.9, 0.3, r".+ · .+, frames? \d+( to \d+)?, [\d.]+ s: [\d.]+ contacts"),
    ("pairs", 0, 0.02, 0.3, r".+ and .+"),
    ("pairs", 1, 0.9, 0.3, r".+ · .+: ([\d.]+ [mµun]*m|within the gap)"),
    ("depths", 0, 0.5, 0.6, r"[\d.]+ [mµn]*m to [\d.]+ [mµn]*m: [\d ]+ contacts"),
    ("timing", 0, 0.5, 0.2, r"[a-z ]+: [\d.]+ [mµn]*s"),
    ("phases", 0, 0.5, 0.6, r"[a-z]+: [\d ]+ candidates, [\d ]+ touching pairs, [\d ]+ contacts"),
]
"""Section, chart, place in it, and the text that is shown there."""


def test_values_are_shown_on_hover(opened):
    page = opened(1200)
    for section, chart, x, y, pattern in HOVERED:
        selector = f"#{section} figure:nth-of-type({chart + 1}) .wide svg"
        page.eval_on_selector(selector, "one => one.scrollIntoView()")
        title = page.evaluate(TITLE, [selector, x, y])
        assert re.fullmatch(pattern, title), title
    page.query_selector_all("#shown label")[1].click()
    for selector, pattern in (
        (".only .steps.contacts svg", r"frames? \d+( to \d+)?, [\d.]+ s: [\d.]+ contacts"),
        (".only .steps.depth svg", r"frames? \d+( to \d+)?, [\d.]+ s: [\d.]+ ?[mµn]*"),
    ):
        assert re.fullmatch(pattern, page.evaluate(TITLE, [selector, 0.9, 0.5]))
    titles = page.eval_on_selector_all(
        ".only .strips path title", "all => all.map(one => one.textContent)"
    )
    assert titles
    assert all(
        re.fullmatch(r"frames? \d+( to \d+)?, [\d.]+ s: ([\d.]+ [mµn]+|within the gap)", one)
        for one in titles
    )


def shown(page) -> list[str]:
    """Headings that can be seen."""
    return [one.inner_text() for one in page.query_selector_all("h2") if one.is_visible()]


@pytest.mark.parametrize("width", [1200, PHONE])
def test_one_body_is_selected_without_a_script(opened, width):
    page = opened(width)
    everything = shown(page)
    assert "Over time" in everything
    assert page.get_by_text("Different:").is_visible()
    chips = page.query_selector_all("#shown label")
    assert len(chips) > 3
    for chip in chips[1:]:
        chip.click()
        name, pairs = shown(page)
        assert name == chip.get_attribute("title")
        assert re.fullmatch(r"\d+ pairs?", pairs)
        assert page.get_by_text("Different:").is_visible(), "the verdict stays on top"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.keyboard.press("ArrowLeft")
    assert shown(page)[0] == chips[-2].get_attribute("title"), "by keyboard"
    chips[0].click()
    assert shown(page) == everything


def test_its_colours_are_those_of_the_screen_or_of_paper(opened):
    words = set()
    for scheme, ground, ink in (
        ("light", "rgb(244, 246, 248)", "rgb(91, 104, 118)"),
        ("dark", "rgb(14, 19, 24)", "rgb(159, 173, 187)"),
    ):
        page = opened(1200, scheme)
        assert colour(page, "body", "backgroundColor") == ground
        assert colour(page, "#time .wide svg text", "fill") == ink
        words.add(colour(page, "#summary dd", "color"))
    assert len(words) == 2
    page.emulate_media(media="print", color_scheme="dark")
    assert colour(page, "body", "backgroundColor") == "rgb(255, 255, 255)"
    assert colour(page, "#summary dd", "color") == "rgb(27, 37, 48)"
    assert visible(page, "nav") + visible(page, "details") == 0
    assert page.pdf()[:5] == b"%PDF-"
