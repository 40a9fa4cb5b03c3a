"""The page of collide report as Chromium shows it: on a desk, on a phone, dark, on paper."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from collidecli.cli.main import main
from tests.support.browser import chromium, needs_chromium

pytestmark = needs_chromium
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
BASELINE = Path(__file__).parents[2] / "samples" / "03_regression_tests" / "tests" / "test_contacts" / "fall.h5"
PHONE = 390


@pytest.fixture(scope="module")
def page_file(tmp_path_factory) -> Path:
    """A page with every section: the sample's baseline against a copy in which a crate lies deeper."""
    import h5py

    folder = tmp_path_factory.mktemp("page")
    shutil.copy(BASELINE, folder / "now.h5")
    with h5py.File(folder / "now.h5", "r+") as file:
        file["rigid_contacts/distance"][700:900] -= 0.002
        file.attrs["content_sha256"] = "9" * 64
    output = folder / "report.html"
    os.environ.pop("COLLIDE_CONFIG", None)
    assert main(["report", str(folder / "now.h5"), "--against", str(BASELINE), "-o", str(output), "-q"]) == 0
    return output


@pytest.fixture(scope="module")
def browser():
    with chromium(ARGUMENTS) as running:
        yield running


@pytest.fixture
def opened(browser, page_file):
    """opened(width, scheme): the page, after which nothing was said on the console and nothing was asked for."""
    contexts, said, asked = [], [], []

    def call(width: int, scheme: str = "light"):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(page_file.as_uri())
        return page

    yield call
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in asked if url.startswith("file:")]) == len(contexts)


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
    charts = visible(page, f".{shown} svg")
    assert charts == 9
    assert visible(page, f".{hidden} svg") == 0
    outside = page.evaluate(
        """width => [...document.querySelectorAll("section svg text, section td, section th, h1, h2, p, dd")]
            .filter(one => one.getBoundingClientRect().right > width + 1 && !one.closest("details")).length""",
        width,
    )
    assert outside == 0
    cut = page.evaluate(
        """shown => [...document.querySelectorAll(`.${shown} svg text`)].filter(one => {
            const [box, svg] = [one, one.ownerSVGElement].map(it => it.getBoundingClientRect());
            return box.right > svg.right + 1 || box.left < svg.left - 1;
        }).map(one => one.textContent)""",
        shown,
    )
    assert cut == [], "nothing is written over a chart's edge"
    smallest = page.evaluate(
        """shown => Math.min(...[...document.querySelectorAll(`.${shown} svg text`)].map(one => {
            const svg = one.ownerSVGElement;
            const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
            return parseFloat(getComputedStyle(one).fontSize) * scale;
        }))""",
        shown,
    )
    assert smallest >= letters, "the smallest letters can be read [px]"


def test_a_screen_reader_has_words_for_every_chart(opened):
    page = opened(1200)
    labels = page.evaluate('[...document.querySelectorAll("svg")].map(one => one.getAttribute("aria-label"))')
    assert all(labels)
    assert "747" not in labels[0]
    assert page.evaluate('document.querySelectorAll("h1").length') == 1
    assert page.evaluate('[...document.querySelectorAll("section")].every(s => s.getAttribute("aria-label") || '
                         'document.getElementById(s.getAttribute("aria-labelledby")).textContent)')  # fmt: skip
    assert page.evaluate('[...document.querySelectorAll("th")].every(one => one.scope)')
    before = visible(page, "details table")
    page.click("#time summary >> nth=0")
    assert (before, visible(page, "details table")) == (0, 1)


TITLE = """([selector, x, y]) => {
  const box = document.querySelector(selector).getBoundingClientRect();
  const found = document.elementFromPoint(box.left + x * box.width, box.top + y * box.height);
  return found?.querySelector("title")?.textContent ?? "";
}"""


@pytest.mark.parametrize(
    ("section", "chart", "x", "y", "pattern"),
    [
        ("time", 0, 0.5, 0.6, r"frame \d+, [\d.]+ s: [\d.]+ contacts, [\d.]+ penetrate"),
        ("time", 1, 0.5, 0.6, r"frame \d+, [\d.]+ s: [\d.]+ [mµun]*m"),
        ("pairs", 0, 0.9, 0.3, r".+ · .+, frames? \d+( to \d+)?, [\d.]+ s: [\d.]+ contacts"),
        ("pairs", 0, 0.02, 0.3, r".+ and .+"),
        ("pairs", 1, 0.9, 0.3, r".+ · .+: ([\d.]+ [mµun]*m|within the gap)"),
        ("depths", 0, 0.5, 0.6, r"[\d.]+ [mµn]*m to [\d.]+ [mµn]*m: [\d ]+ contacts"),
        ("timing", 0, 0.5, 0.2, r"[a-z ]+: [\d.]+ [mµn]*s"),
        ("phases", 0, 0.5, 0.6, r"[a-z]+: [\d ]+ candidates, [\d ]+ touching pairs, [\d ]+ contacts"),
    ],
)
def test_values_are_shown_on_hover(opened, section, chart, x, y, pattern):
    page = opened(1200)
    page.eval_on_selector(f"#{section}", "one => one.scrollIntoView()")
    selector = f"#{section} figure:nth-of-type({chart + 1}) .wide svg"
    page.eval_on_selector(selector, "one => one.scrollIntoView()")
    title = page.evaluate(TITLE, [selector, x, y])
    assert re.fullmatch(pattern, title), title


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


def test_values_of_a_selected_body_are_shown_on_hover(opened):
    page = opened(1200)
    page.query_selector_all("#shown label")[1].click()
    for selector, pattern in (
        (".only .steps.contacts svg", r"frames? \d+( to \d+)?, [\d.]+ s: [\d.]+ contacts"),
        (".only .steps.depth svg", r"frames? \d+( to \d+)?, [\d.]+ s: [\d.]+ ?[mµn]*"),
    ):
        assert re.fullmatch(pattern, page.evaluate(TITLE, [selector, 0.9, 0.5]))
    titles = page.eval_on_selector_all(".only .strips path title", "all => all.map(one => one.textContent)")
    assert titles
    assert all(re.fullmatch(r"frames? \d+( to \d+)?, [\d.]+ s: ([\d.]+ [mµn]+|within the gap)", one) for one in titles)


def test_dark_and_light(opened):
    light, dark = opened(1200, "light"), opened(1200, "dark")
    grounds = [colour(page, "body", "backgroundColor") for page in (light, dark)]
    assert grounds == ["rgb(244, 246, 248)", "rgb(14, 19, 24)"]
    for page, ink in ((light, "rgb(91, 104, 118)"), (dark, "rgb(159, 173, 187)")):
        assert colour(page, "#time .wide svg text", "fill") == ink
    assert colour(light, "#summary dd", "color") != colour(dark, "#summary dd", "color")


def test_on_paper_it_is_light_and_without_what_is_to_click(opened):
    page = opened(1200, "dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert colour(page, "body", "backgroundColor") == "rgb(255, 255, 255)"
    assert colour(page, "#summary dd", "color") == "rgb(27, 37, 48)"
    assert visible(page, "nav") + visible(page, "details") == 0
    assert page.pdf()[:5] == b"%PDF-"


def test_the_sections_can_be_reached(opened):
    page = opened(PHONE)
    for link in page.query_selector_all("nav a"):
        link.click()
        target = page.query_selector(link.get_attribute("href"))
        assert target is not None
        assert target.is_visible()
