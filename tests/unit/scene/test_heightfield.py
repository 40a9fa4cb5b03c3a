"""Heights over a grid: what is held, what is refused, and what is held once."""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.engine.geometry.heightfields import FIRST_LEVEL, pyramid
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.heightfield import heightfield
from tests.unit.test_docs import blocks, page

RNG = np.random.default_rng(0)


def test_float32_is_held_as_it_is():
    heights = RNG.uniform(-1.0, 3.0, (5, 7)).astype(np.float32)
    field = heightfield(heights, 2.0, 1.0, 0.5, "")
    assert np.shares_memory(field.data, heights)
    assert not field.data.flags.writeable
    np.testing.assert_allclose(field.heights + field.center, heights, atol=1e-15)
    assert field.bottom + field.center == pytest.approx(float(heights.min()) - 0.5, abs=1e-15)
    np.testing.assert_allclose(field.half_extents[2], 0.5 * (float(heights.max()) - float(heights.min()) + 0.5))


@pytest.mark.parametrize("far", [0.0, 1e6])
def test_float64_is_held_about_the_middle_of_its_range(far):
    heights = far + RNG.uniform(-1.0, 3.0, (5, 7))
    field = heightfield(heights, 2.0, 1.0, 0.5, "")
    np.testing.assert_allclose(field.heights + field.center, heights, atol=1.3e-7 + 1e-16 * far)


@pytest.mark.parametrize(
    ("heights", "sizes", "what"),
    [
        (np.zeros((1, 5)), (1, 1, 1), "at least 2 by 2"),
        (np.zeros(5), (1, 1, 1), "at least 2 by 2"),
        (np.zeros((2, 2), bool), (1, 1, 1), "give numbers"),
        (np.array([[0.0, 1.0], [np.nan, 0.0]]), (1, 1, 1), r"height 1, 0 \(row, column\) is nan"),
        (np.array([[0.0, -np.inf], [0.0, 0.0]]), (1, 1, 1), "height 0, 1 .* is -inf"),
        (np.array([[0.0, 1.0], [2e9, 0.0]]), (1, 1, 1), "(?s)height 1, 0 .*at most 1e.09 m"),
        (np.zeros((2, 2)), (0, 1, 1), "hx = 0"),
        (np.zeros((2, 2)), (1, -1, 1), "hy = -1"),
        (np.zeros((2, 2)), (1, 1, np.nan), "base = nan"),
        (np.broadcast_to(np.float32(0.0), (20000, 20000)), (1, 1, 1), "(?s)400000000 heights.*32-bit"),
    ],
)
def test_refused(heights, sizes, what):
    with pytest.raises(InputError, match=what) as caught:
        ModelBuilder().add_shape_heightfield(-1, heights, *sizes, key="hills")
    assert "shape 'hills'" in str(caught.value)


def test_equal_ones_are_held_once():
    builder = ModelBuilder()
    heights = RNG.uniform(size=(4, 4)).astype(np.float32)
    for given in (heights, heights.copy(), heights + 1.0):
        builder.add_shape_heightfield(-1, given, 1.0, 1.0, 0.5)
    builder.add_shape_heightfield(-1, builder.finalize().heightfields[0])
    model = builder.finalize()
    assert len(model.heightfields) == 2
    assert model.shapes.heightfield.tolist() == [0, 0, 1, 0]


def test_ranges_of_squares_are_those_of_their_corners():
    data = RNG.uniform(size=(38, 51)).astype(np.float32)
    levels = pyramid(data)
    assert levels[-1].shape == (1, 1, 2)
    for number, level in enumerate(levels):
        side = 1 << (FIRST_LEVEL + number)
        for i, j in np.ndindex(*level.shape[:2]):
            square = data[i * side : (i + 1) * side + 1, j * side : (j + 1) * side + 1]
            assert level[i, j].tolist() == [square.min(), square.max()]


@pytest.mark.parametrize("other", ["heightfield", "plane"])
def test_planes_and_other_heightfields_touch_unless_a_filter_excludes_them(other):
    builder = ModelBuilder()
    builder.add_shape_heightfield(-1, np.zeros((2, 2)), key="hills")
    body = builder.add_body()
    {
        "heightfield": lambda: builder.add_shape_heightfield(body, np.zeros((2, 3)), key="other"),
        "plane": lambda: builder.add_shape_plane(body, key="other"),
    }[other]()
    assert len(collidecli.collide(builder.finalize()).distance) > 0
    builder.add_shape_collision_filter_pair(0, 1)
    assert len(collidecli.collide(builder.finalize()).distance) == 0


def test_the_example_of_the_page():
    examples = blocks(page("docs/reference/python.md"), "python")
    (code,) = [block for block in examples if "add_shape_heightfield" in block]
    exec(compile(code, "python.md", "exec"), {})
