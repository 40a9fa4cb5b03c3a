"""The limit of separations at which a contact is reported: of the kernel and of the host, and what
both stand for, at numbers that differ by one ulp."""

import numpy as np
import warp as wp

from collidecli.engine.geometry.real import Real
from collidecli.engine.pair_limits import above, float32_limit
from collidecli.engine.runtime.kernel import kernel


@kernel
def limits_of(gap: wp.array[Real], limit: wp.array[Real]):
    i = wp.tid()
    limit[i] = above(gap[i], Real(0.0))


def neighbours(values: np.ndarray) -> np.ndarray:
    """Numbers with the float64 before and after each, which is not below 0."""
    around = [np.nextafter(values, towards) for towards in (-np.inf, np.inf)]
    return np.unique(np.maximum(0.0, np.concatenate([values, *around])))


def gaps() -> np.ndarray:
    """0, numbers of float32 from 2^-125 on, middles of two of these, and others; with their
    neighbours. The next float32 after a smaller one is not that of the kernel's arithmetic."""
    rng = np.random.default_rng(16)
    powers = 2.0 ** np.arange(-125.0, 12.0)
    drawn = 10.0 ** rng.uniform(-30.0, 3.0, 100)
    rounded = np.concatenate([powers, drawn, [0.0, 0.1, 0.02]]).astype(np.float32)
    after = np.nextafter(rounded, np.float32(np.inf))
    middle = 0.5 * (rounded.astype(float) + after.astype(float))
    return neighbours(np.concatenate([rounded.astype(float), middle, drawn]))


def test_the_limit_of_the_host_is_that_of_the_kernel():
    gap = gaps()
    limit = wp.zeros(len(gap), Real, device="cpu")
    wp.launch(limits_of, len(gap), [wp.array(gap, Real, device="cpu"), limit], device="cpu")
    host = np.array([float32_limit(each) for each in gap.tolist()])
    np.testing.assert_array_equal(limit.numpy(), host)


def test_a_separation_is_below_the_limit_if_its_float32_is_at_most_that_of_the_gap():
    for gap in gaps().tolist():
        limit = float32_limit(gap)
        for separation in (gap, limit, *neighbours(np.array([gap, limit])).tolist()):
            is_reported = np.float32(separation) <= np.float32(gap)
            assert (separation < limit) == is_reported, (gap, separation)
