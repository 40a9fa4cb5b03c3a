"""Times of contact and of air, against a loop over the frames of each column."""

import numpy as np
import pytest

from collidecli.analysis.touch_intervals import Frames
from collidecli.scene.episodes import Episodes, recorded_cells
from collidecli.verbs.label.phase_times import TIMES, PhaseTimes

FRAMES = 37
WORLDS = 3
COLUMNS = 4


def episodes_drawn(rng: np.random.Generator) -> Episodes | None:
    """Demonstrations of each world with pauses between some of them; None for none."""
    if rng.random() < 0.3:
        return None
    rows = []
    for world in range(WORLDS):
        cuts = np.sort(rng.choice(FRAMES + 1, 4, replace=False))
        rows += [(world, cuts[0], cuts[1]), (world, cuts[1 if rng.random() < 0.5 else 2], cuts[3])]
    rows = [row for row in rows if row[1] < row[2]]
    world, first, last = (np.array(values, int) for values in zip(*rows, strict=True))
    names = tuple(f"demo_{n}" for n in range(len(rows)))
    return Episodes(names, world.astype(np.int32), first, last - first)


def by_loop(
    touch: np.ndarray, time: np.ndarray, first_of: dict, recorded: np.ndarray, present: np.ndarray
) -> dict[str, np.ndarray]:
    found = {
        name: np.zeros(touch.shape, bool) if array.dtype == bool else np.full(touch.shape, np.nan)
        for name, array in TIMES.items()
    }
    for world, column in np.ndindex(*present.shape):
        begin = 0
        last = {True: np.nan, False: np.nan}
        for frame in range(len(touch)):
            if not (recorded[frame, world] and present[world, column]):
                continue
            at = frame, world, column
            now = bool(touch[at])
            if (frame, world) in first_of:
                begin = frame
                last = {True: np.nan, False: np.nan}
            elif now != bool(touch[frame - 1, world, column]):
                last[not now] = time[frame] - time[begin]
                begin = frame
                found["begins" if now else "ends"][at] = True
            found["contact_time"][at] = time[frame] - time[begin] if now else 0.0
            found["air_time"][at] = 0.0 if now else time[frame] - time[begin]
            found["last_contact_time"][at] = last[True]
            found["last_air_time"][at] = last[False]
    return found


@pytest.mark.parametrize("seed", range(12))
def test_times_of_phases(seed):
    """In blocks of any length, with demonstrations, absent columns and frames of one time."""
    rng = np.random.default_rng(seed)
    episodes = episodes_drawn(rng)
    time = np.cumsum(rng.choice([0.0, 0.1, 0.25], FRAMES))
    recorded = recorded_cells(episodes, FRAMES, WORLDS)
    present = rng.random((WORLDS, COLUMNS)) < 0.8
    touch = (rng.random((FRAMES, WORLDS, COLUMNS)) < 0.5) & recorded[:, :, None] & present
    touch[: FRAMES // 2, :, 0] &= rng.random() < 0.5
    frames = Frames(np.arange(FRAMES), time, episodes)
    phases = PhaseTimes(frames, recorded, present)
    cuts = np.sort(rng.integers(0, FRAMES + 1, 5))
    parts = []
    first = 0
    for part in np.split(touch, cuts):
        parts.append(phases.of(first, part))
        first += len(part)
    if episodes is None:
        first_of = dict.fromkeys((0, world) for world in range(WORLDS))
    else:
        pairs = zip(episodes.first_frame.tolist(), episodes.world.tolist(), strict=True)
        first_of = dict.fromkeys(pairs)
    expected = by_loop(touch, time, first_of, recorded, present)
    for name in TIMES:
        found = np.concatenate([part[name] for part in parts])
        np.testing.assert_array_equal(found, expected[name], err_msg=name)
    assert expected["begins"].sum() > 10
