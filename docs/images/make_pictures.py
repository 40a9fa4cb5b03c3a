"""Makes the pictures of the samples in `collide view` beside this file: `make docs-pictures`; needs
Chromium. `make docs-pictures PICTURE=view-cloth.png` makes one."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parent
SAMPLES = FOLDER.parents[1] / "samples"


@dataclass(frozen=True)
class Picture:
    """A frame of a sample's page.

    options: further arguments of the run.
    opaque: hides the visual meshes, draws shapes without transparency and larger contacts, leaves
        out the panel, the sky's upper rows, and turns the camera by `turn`.
    against: engine whose contacts are drawn in black.
    probed: options of `collide probe`, whose map colours shapes up to `reach`.
    pair: paths of the two shapes that are selected, whose contacts alone are drawn.
    turn: pixels by which the mouse is dragged to the left; `nearer`: turns of its wheel.
    """

    scene: str
    options: tuple[str, ...]
    frame: int
    size: tuple[int, int] = (1000, 640)
    opaque: bool = False
    against: str = ""
    probed: tuple[str, ...] = ()
    reach: str = ""
    pair: tuple[str, ...] = ()
    turn: int = 0
    nearer: int = 0


PICTURES = {
    "view-surfaces.png": Picture("05_hydroelastic/gripper.usda", ("--hydro-surface",), 59),
    "view-cloth.png": Picture("06_cloth/cloth.usda", ("--self-contacts", "0.02"), 24),
    "humanoid.png": Picture(
        "02_humanoid/humanoid.xml",
        ("-t", str(SAMPLES / "02_humanoid/motion.h5")),
        300,
        (800, 480),
        opaque=True,
        turn=100,
        nearer=4,
    ),
    "view-against.png": Picture(
        "01_usd_pile/pile.usda",
        (),
        38,
        against="mujoco",
        pair=("/World/Objects/cylinder_39", "/World/Objects/crate_a"),
    ),
    "view-map.png": Picture(
        "02_humanoid/humanoid.xml",
        ("-t", str(SAMPLES / "02_humanoid/motion.h5")),
        64,
        (1000, 720),
        probed=("--vertices-of", "foot_*", "--spacing", "1cm"),
        reach="15cm",
        pair=("floor", "foot_right"),
    ),
}
SOFTWARE = [
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
]
SET = """([name, value]) => { const slider = document.querySelector("#collide-" + name);
  slider.value = value;
  slider.dispatchEvent(new Event("input", { bubbles: true })); }"""
DRAWN_MS = 6000
"""Time for WebGL in software to draw a frame."""
WHEEL_MS = 500
SKY = 60
"""Rows above the scene that an opaque picture leaves out, with the renderer's button [pixels]."""
LARGER = 2.2
"""Size of the contacts of an opaque picture, relative to the page's own."""


def page_of(folder: Path, picture: Picture) -> Path:
    """The page of a picture's sample, computed in a folder."""
    scene = str(SAMPLES / picture.scene)
    run = ("run", scene, *picture.options, "--device", "cpu")
    view = ("view", "sample.contacts.h5", "--scene", scene, "--export", "page.html")
    commands = [(*run, "-o", "sample.contacts.h5")]
    if picture.against:
        engine = ("--engine", picture.against)
        commands.append(("run", scene, *picture.options, *engine, "-o", f"{picture.against}.h5"))
        view = (*view, "--against", f"{picture.against}.h5")
    if picture.probed:
        probe = ("probe", scene, *picture.options, *picture.probed, "--device", "cpu")
        commands.append((*probe, "-o", "map.h5"))
        view = (*view, "--map", "map.h5", "--map-range", picture.reach)
    for words in (*commands, view):
        subprocess.run(
            [sys.executable, "-m", "collidecli", *words, "-q", "--force"], cwd=folder, check=True
        )
    return folder / "page.html"


def make_opaque(page: Any, picture: Picture) -> None:
    """Draws shapes without transparency, from the camera of the picture."""
    page.evaluate(SET, ["opacity", 1])
    page.evaluate(SET, ["size", LARGER])
    page.get_by_label("Visual meshes").uncheck()
    page.locator("#collide").evaluate('panel => { panel.style.display = "none"; }')
    center = [length / 2 for length in picture.size]
    page.mouse.move(*center)
    for _ in range(picture.nearer):
        page.mouse.wheel(0, -200)
        page.wait_for_timeout(WHEEL_MS)
    page.mouse.down()
    page.mouse.move(center[0] - picture.turn, center[1], steps=6)
    page.mouse.up()


def photograph(browser: Any, page_file: Path, picture: Picture, output: Path) -> None:
    """Writes a page at a frame as PNG."""
    width, height = picture.size
    page = browser.new_page(viewport={"width": width, "height": height})
    place = "".join(f"&pair={path}" for path in picture.pair)
    page.goto(f"{page_file.as_uri()}#world=0{place}&frame={picture.frame}")
    page.get_by_text("frame ").first.wait_for(timeout=60_000)
    page.locator(".mantine-Notification-closeButton").first.click()  # that WebGL is in software
    if picture.opaque:
        make_opaque(page, picture)
    page.evaluate(SET, ["frame", picture.frame])
    if picture.pair:
        page.locator("#collide-only").check()
    page.wait_for_timeout(DRAWN_MS)
    drawn = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    drawn.crop((0, SKY if picture.opaque else 0, width, height)).save(output, optimize=True)
    page.close()


def main(names: list[str]) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium, args=SOFTWARE)
        for name in names or PICTURES:
            picture = PICTURES[name]
            page = page_of(Path(folder), picture)
            photograph(browser, page, picture, FOLDER / name)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
