"""Which pairs of a stage have a contact with Newton's gaps, against Newton's collision pipeline and
the distances of spheres in closed form.

Newton reads the stage with its own importer; both engines collide it at rest on the CPU.
"""

from pathlib import Path

import newton
import numpy as np
import pytest
import warp as wp

from collidecli.importers.usd.scene import add_usd
from collidecli.scene.builder import ModelBuilder
from tests.support.usd_scenes import BOTH, at, contacts_of, write_usda

pytestmark = pytest.mark.rest

GAPS = (0.03, 0.06, None, 0.0, 0.2)
MARGINS = (0.0, None, 0.01)
NEWTONS_DEFAULT = 0.1
"""[m] of a collider without a gap."""
RADIUS = 0.25
SPHERES = 30


def lengths(k: int) -> tuple[float | None, float | None]:
    """Gap and margin of sphere k; None where none is authored."""
    return GAPS[k % len(GAPS)], MARGINS[k % len(MARGINS)]


def stage(folder: Path, centres: np.ndarray) -> Path:
    text = ""
    for k, centre in enumerate(centres):
        named = zip(("Gap", "Margin"), lengths(k), strict=True)
        inside = "".join(
            f"float newton:contact{name} = {value}\n" for name, value in named if value is not None
        )
        inside += f"double radius = {RADIUS}\n{at(*centre.tolist())}"
        text += f'def Sphere "s{k}" {BOTH} {{\n{inside}}}\n'
    return write_usda(folder, text)


def separations(centres: np.ndarray) -> dict[tuple[str, str], tuple[float, float]]:
    """Paths of two spheres to the distance of their inflated surfaces and the sum of their gaps
    [m]."""
    found = {}
    for a in range(SPHERES):
        for b in range(a + 1, SPHERES):
            margin = (lengths(a)[1] or 0.0) + (lengths(b)[1] or 0.0)
            gaps = (lengths(k)[0] for k in (a, b))
            gap = sum(NEWTONS_DEFAULT if value is None else value for value in gaps)
            distance = float(np.linalg.norm(centres[a] - centres[b])) - 2 * RADIUS - margin
            found[f"/s{a}", f"/s{b}"] = (distance, gap)
    return found


def newtons_pairs(path: Path) -> set[tuple[str, str]]:
    builder = newton.ModelBuilder()
    builder.add_usd(str(path))
    with wp.ScopedDevice("cpu"):
        model = builder.finalize()
        pipeline = newton.CollisionPipeline(model, broad_phase="nxn", rigid_contact_max=4096)
        contacts = pipeline.contacts()
        pipeline.collide(model.state(), contacts)
    count = int(contacts.rigid_contact_count.numpy()[0])
    sides = [getattr(contacts, f"rigid_contact_shape{k}").numpy()[:count] for k in (0, 1)]
    rows = [np.minimum(*sides), np.maximum(*sides)]
    names = model.shape_label
    return {(names[a], names[b]) for a, b in zip(*rows, strict=True)}


@pytest.mark.parametrize("seed", range(3))
def test_pairs_with_a_contact(tmp_path, seed):
    centres = np.random.default_rng(seed).uniform(-0.9, 0.9, (SPHERES, 3))
    found = separations(centres)
    assert min(abs(distance - gap) for distance, gap in found.values()) > 1e-6
    expected = {pair for pair, (distance, gap) in found.items() if distance < gap}
    beyond_the_larger = {
        pair for pair, (distance, gap) in found.items() if 0.5 * gap < distance < gap
    }
    assert len(beyond_the_larger) > 10
    path = stage(tmp_path, centres)
    builder = ModelBuilder()
    imported = add_usd(builder, path)
    model = builder.finalize()
    ours = contacts_of(imported, model)
    names = model.shapes.path
    assert {(names[a], names[b]) for a, b in zip(ours.shape0, ours.shape1, strict=True)} == expected
    assert newtons_pairs(path) == expected
