"""Damaged files in Warp's cache of compiled kernels change no result and end no run."""

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import warp as wp

from tests.support.batches import environment

pytestmark = pytest.mark.rest

COMMAND = (
    sys.executable,
    "-m",
    "collidecli",
    "run",
    "scene.xml",
    "--device",
    "cpu",
    "-o",
    "out.h5",
    "--force",
)
SCENE = """<mujoco><worldbody><geom name="ground" type="plane" size="5 5 1"/>
    <geom name="base" type="sphere" size="0.5" pos="0 0 0.4"/>
    <body name="box" pos="0.2 0 0.9"><freejoint/><geom type="box" size="0.3 0.2 0.1" euler="10 20 30"/></body>
    <body name="rod" pos="0.4 0.2 1.1"><freejoint/><geom type="cylinder" size="0.1 0.4" euler="40 50 60"/></body>
    <body name="pill" pos="0.1 0.4 0.8"><freejoint/><geom type="capsule" size="0.1 0.4" euler="70 5 60"/></body>
    <body name="egg" pos="0 -0.2 1"><freejoint/><geom type="ellipsoid" size="0.1 0.3 0.2" euler="0 5 60"/></body>
</worldbody></mujoco>"""
"""Shapes in contact whose pairs have closed forms, or the general method."""


class Runs:
    """Runs of SCENE with a cache of compiled kernels of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache" / wp.config.version
        (folder / "scene.xml").write_text(SCENE)

    def run(self) -> tuple[str, str]:
        """The content hash of the contact set, and what is printed on stderr."""
        variables = environment(WARP_CACHE_PATH=str(self.cache.parent))
        done = subprocess.run(
            COMMAND, cwd=self.folder, env=variables, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        found = re.search(r"^content +(\w+)", done.stdout, re.MULTILINE)
        assert found, done.stdout
        return found[1], done.stderr

    def objects(self) -> list[Path]:
        return sorted(self.cache.glob("wp_*/*.o"))


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Runs, str]:
    """Runs with an intact cache, and the content hash of their contacts."""
    runs = Runs(tmp_path_factory.mktemp("intact"))
    content, _ = runs.run()
    assert len(runs.objects()) > 15
    return runs, content


def flip(path: Path, other: Path, draw: random.Random) -> None:
    """Three bits of the object file, anywhere."""
    content = bytearray(path.read_bytes())
    for _ in range(3):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def truncate(path: Path, other: Path, draw: random.Random) -> None:
    os.truncate(path, draw.randrange(1, path.stat().st_size))


def empty(path: Path, other: Path, draw: random.Random) -> None:
    os.truncate(path, 0)


def exchange(path: Path, other: Path, draw: random.Random) -> None:
    """The contents of two object files."""
    content = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(content)


DAMAGES = (flip, truncate, empty, exchange)


@pytest.mark.share(6, 6)
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_run_replaces_what_is_damaged(
    damage: Callable[[Path, Path, random.Random], None],
    seed: int,
    intact: tuple[Runs, str],
    tmp_path: Path,
):
    """In 1 to 3 object files; the first run warns of it once, and the next does not."""
    kept, content = intact
    shutil.copytree(kept.folder, tmp_path, dirs_exist_ok=True)
    runs = Runs(tmp_path)
    draw = random.Random(f"{damage.__name__} {seed}")
    before = {path: path.read_bytes() for path in runs.objects()}
    for _ in range(1 + seed % 3):
        damage(*draw.sample(runs.objects(), 2), draw)
    assert {path: path.read_bytes() for path in runs.objects()} != before
    first, errors = runs.run()
    assert first == content
    assert errors.count("damaged compiled kernels were found and replaced") == 1, errors
    assert runs.run() == (content, "")
    assert {path: path.read_bytes() for path in runs.objects()} == before


def test_a_damaged_table_of_hashes_changes_nothing(intact: tuple[Runs, str], tmp_path: Path):
    """A row that names another module, or another number of dimensions, would load or launch a
    kernel wrongly.

    The package's table has rows of more kernels than a run declares: those of the run are hashed
    anew, each for the one block size of its launch.
    """
    kept, content = intact
    shutil.copytree(kept.folder, tmp_path, dirs_exist_ok=True)
    runs = Runs(tmp_path)
    (path,) = runs.cache.glob("*.hashes")
    rows = table_words(path)
    text = path.read_text()
    assert " 1 1 1:" in text
    path.write_text(text.replace(" 1 1 1:", " 3 0 1:"))
    assert runs.run()[0] == content
    after = table_words(path)
    assert all(words <= rows[key] for key, words in after.items())
    used = [
        key
        for key, words in rows.items()
        if any(any(runs.cache.glob(f"wp_{word}_*")) for word in words)
    ]
    assert len(used) == len(list(runs.cache.glob("wp_*")))
    assert after.keys() >= set(used)


def table_words(path: Path) -> dict[str, set[str]]:
    """The words of a table's rows but the last, a checksum, by their keys."""
    return {words[0]: set(words[1:-1]) for words in map(str.split, path.read_text().splitlines())}
