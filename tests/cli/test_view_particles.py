"""collide view of sets in which particles alone touch: its pairs, its first frame, its recording."""

import gzip
import json
import re
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest

from collidecli.pages.view.arrays import NO_PAIR
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.verbs.view.view import ViewRequest, opened_view, write_view
from tests.cli.conftest import CommandLine, arrays
from tests.cli.test_view import Recorded

pytest.importorskip("viser")
CLOTH = Path(__file__).parents[2] / "samples" / "06_cloth" / "cloth.usda"
GROUND = ("/World/ground", "/World/drops")
BALL = ("/World/ball", "/World/cloth")
FOLD = ("/World/cloth", "/World/cloth")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> str:
    """The sample's cloth over a ball and its drops over a plane; no two shapes touch."""
    path = str(tmp_path_factory.mktemp("cloth") / "cloth.h5")
    words = ("--self-contacts", "0.02", "--device", "cpu", "-o", path, "-q")
    CommandLine().ok("run", CLOTH, *words)
    return path


@pytest.fixture
def world(made, tmp_path) -> dict:
    """The first world of the page's data, with its arrays by name."""
    request = ViewRequest(made, scene=str(CLOTH), export=str(tmp_path / "page.html"))
    with opened_view(request) as view:
        page = Path(write_view(view, request).written).read_text()
    found = re.search(r'id="collide-data"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    world = data["worlds"][0]
    blob = gzip.decompress(b64decode(world["bytes"]))
    for name, kind, size in world["arrays"]:
        world[name] = np.frombuffer(blob, kind, size)
        blob = blob[world[name].nbytes :]
    return world


def least_of(path: str, group: str, rows: np.ndarray | bool = True) -> tuple[float, int]:
    """The least distance of some rows of a group of one world, and its frame."""
    table = arrays(path)
    distance = np.where(rows, table[f"{group}/distance"], np.inf)
    at = int(np.argmin(distance))
    return float(distance[at]), int(np.searchsorted(table[f"{group}/cell_start"], at, "right")) - 1


def test_pairs_of_particles_are_listed_with_their_depths_and_frames(made, world):
    assert arrays(made)["rigid_contacts/distance"].size == 0
    with ContactSet.open(made) as contacts:
        first = contacts.particle_objects.first_particle
        shapes = list(contacts.shapes.path)
        objects = list(contacts.particle_objects.path)
    soft = arrays(made)
    owner = np.searchsorted(first, soft["soft_contacts/indices"][:, 0], "right") - 1
    by_paths = {tuple(pair["paths"]): pair for pair in world["pairs"]}
    assert set(by_paths) == {GROUND, BALL, FOLD}
    for pair in (GROUND, BALL):
        rows = (soft["soft_contacts/shape"] == shapes.index(pair[0])) & (
            owner == objects.index(pair[1])
        )
        least, frame = least_of(made, "soft_contacts", rows)
        assert by_paths[pair]["deepest"] == frame
        assert by_paths[pair]["words"].endswith("deep")
        assert by_paths[pair]["label"].endswith(f"{-1e3 * least:.4g} mm")
    least, frame = least_of(made, "self_contacts")
    assert least > 0.0
    assert by_paths[FOLD]["deepest"] == frame
    assert by_paths[FOLD]["words"] == f"1 touch, {1e3 * least:.4g} mm apart"


def test_the_page_begins_at_the_deepest_touch_of_particles(made, world):
    """The script goes to `deepest` of the first pair."""
    assert world["pairs"][0]["deepest"] == least_of(made, "soft_contacts")[1] > 0


def test_each_contact_of_particles_is_of_a_listed_pair(made, world):
    """So that a selected pair shows its own contacts alone, and the camera moves to them."""
    numbers = {tuple(pair["paths"]): n for n, pair in enumerate(world["pairs"])}
    wanted = arrays(made)
    shape = wanted["soft_contacts/shape"]
    with ContactSet.open(made) as contacts:
        number_of = np.array([numbers[pair] for pair in (GROUND, BALL)])
        row_of = [contacts.shapes.path.index(pair[0]) for pair in (GROUND, BALL)]
    assert NO_PAIR not in world["pair"]
    assert world["pair"].tolist() == number_of[np.argsort(row_of)][shape].tolist()
    assert world["self_pair"].tolist() == [numbers[FOLD]] * len(wanted["self_contacts/distance"])
    for pair in world["pairs"]:
        assert np.any(pair["focus"][:3]), "not the origin, where nothing touches"
        assert all(row < 2 for row in pair["shapes"]), "a particle object has no row of a shape"


def test_the_recording_has_the_depths_of_particles(made, tmp_path, collide):
    pytest.importorskip("rerun", reason="rerun-sdk is not installed (extra rerun)")
    path = str(tmp_path / "x.rrd")
    collide.ok("view", made, "--scene", CLOTH, "--to", "rerun", "--export", path)
    recorded = Recorded(path).columns("/world_0/depth/ball/cloth")
    least, frame = least_of(made, "soft_contacts")
    depth_at = dict(zip(recorded["frame"], np.ravel(recorded["scalars"]).tolist(), strict=True))
    assert depth_at[frame] == max(depth_at.values()) == pytest.approx(-least, abs=1e-9)


def test_a_second_set_of_other_particles_is_refused(made, tmp_path, collide):
    text = CLOTH.read_text().replace('"drops"', '"rain"')
    (tmp_path / "cloth.usda").write_text(text)
    other = str(tmp_path / "other.h5")
    collide.ok("run", tmp_path / "cloth.usda", "--device", "cpu", "-o", other, "-q")
    told = collide.refused("view", made, "--scene", CLOTH, "--against", other, "--export", "x.html")
    assert "its particle objects are not those of" in " ".join(told.split())
