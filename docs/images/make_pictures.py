"""Makes the pictures of the samples in `collide view` beside this file: `make docs-pictures`; needs
Chromium."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parent
SAMPLES = FOLDER.parents[1] / "samples"
PICTURES: dict[str, tuple[str, tuple[str, ...], int]] = {
    "view-surfaces.png": ("05_hydroelastic/gripper.usda", ("--hydro-surface",), 59),
    "view-cloth.png": ("06_cloth/cloth.usda", ("--self-contacts", "0.02"), 24),
}
"""By name: the scene, options of its run, and the frame."""
SIZE = {"width": 1000, "height": 640}
SOFTWARE = [
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
]
SET_FRAME = """frame => { const slider = document.querySelector("#collide-frame");
  slider.value = frame;
  slider.dispatchEvent(new Event("input", { bubbles: true })); }"""
DRAWN_MS = 6000
"""Time for WebGL in software to draw a frame."""


def page_of(folder: Path, scene: Path, options: tuple[str, ...]) -> Path:
    """The page of a sample, computed in a folder."""
    for words in (
        ("run", str(scene), *options, "-o", "sample.contacts.h5", "--device", "cpu"),
        ("view", "sample.contacts.h5", "--scene", str(scene), "--export", "page.html"),
    ):
        subprocess.run(
            [sys.executable, "-m", "collidecli", *words, "-q", "--force"], cwd=folder, check=True
        )
    return folder / "page.html"


def photograph(browser: Any, page_file: Path, frame: int, output: Path) -> None:
    """Writes a page at a frame as PNG."""
    page = browser.new_page(viewport=SIZE)
    page.goto(page_file.as_uri())
    page.get_by_text(f" of {frame} ").first.wait_for(timeout=60_000)
    page.evaluate(SET_FRAME, frame)
    page.locator(".mantine-Notification-closeButton").first.click()  # that WebGL is in software
    page.wait_for_timeout(DRAWN_MS)
    Image.open(io.BytesIO(page.screenshot())).convert("RGB").save(output, optimize=True)
    page.close()


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium, args=SOFTWARE)
        for name, (scene, options, frame) in PICTURES.items():
            page = page_of(Path(folder), SAMPLES / scene, options)
            photograph(browser, page, frame, FOLDER / name)
        browser.close()


if __name__ == "__main__":
    main()
