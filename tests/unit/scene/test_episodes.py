"""Episodes, particles attached to bodies, texts of numbers."""

import numpy as np
import pytest

import collidecli
from collidecli.analysis.contact_tracking import ContactTracker
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_columns import CONTACT_ID
from collidecli.scene.episodes import Episodes
from collidecli.wording import memory, numbered, plural
from tests.support.contact_sets import made_up_block, small_model

FRAMES = 20
WORLDS = 3


def episodes(*rows: tuple[str, int, int, int]) -> Episodes:
    name, world, first, count = zip(*rows, strict=True)
    return Episodes(
        name, np.array(world, np.int32), np.array(first, np.int64), np.array(count, np.int64)
    )


TABLE = episodes(("late", 0, 9, 6), ("early", 0, 2, 5), ("none", 0, 9, 0), ("all", 2, 0, FRAMES))
"""Two episodes one after the other in world 0, given in reverse; none in world 1."""


def brute(found: Episodes, frame: int, world: int) -> int:
    rows = [
        row for row in range(len(found))
        if found.world[row] == world and found.first_frame[row] <= frame < found.end_frame[row]
    ]  # fmt: skip
    return rows[0] if rows else -1


def test_rows_are_those_of_a_search():
    cells = [(frame, world) for frame in range(FRAMES) for world in range(WORLDS)]
    frame, world = np.array(cells).T
    expected = [brute(TABLE, f, w) for f, w in cells]
    assert TABLE.row(world, frame).tolist() == expected
    assert TABLE.inside(0, len(cells), WORLDS).tolist() == [row >= 0 for row in expected]
    assert TABLE.inside(7, 11, WORLDS).tolist() == [row >= 0 for row in expected[7:18]]
    assert (TABLE.name_at(0, 3), TABLE.name_at(0, 8)) == ("early", "")
    assert TABLE.starts(9).tolist() == [0]


@pytest.mark.parametrize("frames", [range(3, 11), range(1, 20, 4), range(10, 20, 3), range(0, 1)])
def test_slices_keep_the_selected_frames(frames):
    found = TABLE.sliced(frames)
    for index, frame in enumerate(frames):
        for world in range(WORLDS):
            assert brute(found, index, world) == brute(TABLE, frame, world)
    assert found.faults(len(frames), WORLDS) == []


def test_seconds_are_from_the_first_to_the_last_frame():
    assert TABLE.seconds(np.arange(FRAMES) * 0.5).tolist() == [2.5, 2.0, 0.0, 9.5]


def test_adjacent_episodes_do_not_overlap():
    assert episodes(("a", 0, 0, 5), ("b", 0, 5, 5)).faults(10, 1) == []
    assert episodes(("a", 0, 0, 6), ("b", 0, 5, 5)).faults(10, 1)[0][:2] == ("first_frame", 1)


def test_contacts_outside_are_dropped_whole():
    block = made_up_block(small_model(WORLDS), FRAMES)
    kept = TABLE.without_others(block, WORLDS)
    inside = TABLE.inside(0, len(block.cell_counts), WORLDS)
    assert kept.cell_counts.tolist() == np.where(inside, block.cell_counts, 0).tolist()
    rows = np.repeat(inside, block.cell_counts)
    for name, values in block.columns.items():
        np.testing.assert_array_equal(kept.columns[name], values[rows])


def test_tracking_does_not_match_contacts_of_two_episodes():
    """One contact that persists through two adjacent episodes has an id in each."""
    model = small_model(1)
    block = made_up_block(model, 6, contacts_per_cell=0)
    one = made_up_block(model, 1, contacts_per_cell=8, seed=1)
    columns = {name: np.concatenate([values[:1]] * 6) for name, values in one.columns.items()}
    block = type(block)(0, np.ones(6, np.int64), columns)
    poses = np.zeros((6, 1, 4, 7))
    poses[..., 6] = 1.0
    table = episodes(("a", 0, 0, 3), ("b", 0, 3, 3))
    for distance in (0.0, 0.5):
        ids = [
            ContactTracker(model, distance, held)
            .follow(block, 0, poses)
            .columns[CONTACT_ID.name]
            .tolist()
            for held in (None, table)
        ]
        assert ids == [[0] * 6, [0, 0, 0, 1, 1, 1]]


SHIFT = np.array([10.0, 0.0, 0.0])


def model(attached: bool = True):
    """Two worlds of one template, 10 m apart: a body with a sphere, two particles on another body,
    two loose ones."""
    builder = ModelBuilder()
    builder.begin_world("one", [0, 0, 0, 0, 0, 0, 1])
    ball, carrier = (builder.add_body(key=key) for key in ("ball", "carrier"))
    builder.add_shape_sphere(ball, radius=0.5)
    builder.add_particles(
        [[0, 0, 2], [1, 0, 2]], radius=0.0, bodies=[carrier, carrier] if attached else None, key="a"
    )
    builder.add_particles([[3, 0, 0.5], [0, 0, 5]], radius=0.0, key="b")
    builder.end_world()
    builder.repeat_world(0, "two", [*SHIFT, 0, 0, 0, 1])
    return builder.finalize()


def poses(height: float = -1.499) -> np.ndarray:
    """float64[2, 1, 2, 7]: in frame 1 the carrier is lower, so that its first particle is 1 mm
    above the ball."""
    found = np.zeros((2, 1, 2, 7))
    found[..., 6] = 1.0
    found[1, 0, 1, 2] = height
    return found


def in_worlds(first: np.ndarray, axes: int = 3) -> np.ndarray:
    """The values of one world in both, the second moved."""
    second = first.copy()
    second[..., :axes] += SHIFT
    return np.concatenate([first, second], axis=1)


LOOSE = np.array(
    [
        [[[0, 0, 2], [1, 0, 2], [3, 0, 0.5], [0, 0, 0.504]]],
        [[[0, 0, 2], [1, 0, 2], [0, 0.507, 0], [0, 0, 5]]],
    ]
)


@pytest.mark.parametrize(
    ("body_q", "particle_q"),
    [
        (poses(), LOOSE),
        (in_worlds(poses()), LOOSE),
        (poses(), in_worlds(LOOSE)),
        (in_worlds(poses()), in_worlds(LOOSE)),
    ],
    ids=["one, one", "two, one", "one, two", "two, two"],
)
def test_contacts_of_either_world(body_q, particle_q):
    rows = collidecli.collide(model(), body_q, particle_q=particle_q, device="cpu").groups[
        "soft_contacts"
    ]
    assert rows.cell_counts.tolist() == [1, 1, 2, 2]
    assert rows.columns["indices"][:, 0].tolist() == [3, 3, 0, 2, 0, 2]
    np.testing.assert_allclose(
        rows.columns["distance"], [0.004, 0.004, 0.001, 0.007, 0.001, 0.007], atol=1e-6
    )
    np.testing.assert_allclose(rows.columns["point_world"][[1, 4], 0], 10.0, atol=1e-9)


def test_positions_of_either_world():
    held = model()
    expected = in_worlds(LOOSE).astype(float)
    expected[1, :, :2, 2] = 0.501
    for body_q, particle_q in ((in_worlds(poses()), LOOSE), (poses(), in_worlds(LOOSE))):
        found = held.with_attached_particles(body_q, particle_q.astype(float))
        np.testing.assert_allclose(found, expected, atol=1e-12)
    still = held.with_attached_particles(poses(), held.particles.position[None, None])
    assert still.shape == (2, 1, 4, 3)
    np.testing.assert_allclose(still[1, 0], [[0, 0, 0.501], [1, 0, 0.501], [3, 0, 0.5], [0, 0, 5]])


def test_positions_without_attached_particles_are_unchanged():
    given = LOOSE.astype(float)
    assert model(attached=False).with_attached_particles(in_worlds(poses()), given) is given


@pytest.mark.parametrize(
    ("number", "counted", "places"),
    [
        (0, "0 worlds", "no worlds"),
        (1, "1 world", "only world 0"),
        (12345, "12 345 worlds", "worlds 0 to 12344"),
    ],
)
def test_numbers_are_told_in_words(number, counted, places):
    assert plural(number, "world") == counted
    assert numbered(number, "world") == places


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (12, "12 B"),
        (1010 << 10, "0.986 MiB"),
        (324 << 20, "324 MiB"),
        (3 << 30, "3 GiB"),
        (5000 << 30, "5 000 GiB"),
    ],
)
def test_sizes(size, words):
    assert memory(size) == words
