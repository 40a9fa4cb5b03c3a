"""Each loop against its definition, and the native one against NumPy's to the bit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collidecli.storage import array_loops
from collidecli.storage import array_loops as loops

LIMIT, TOLERANCE = 1e6, 1e-3


@pytest.fixture(scope="module", params=["numpy", "native"])
def by(request) -> Iterator[str]:
    before = loops._native
    if request.param == "native":
        array_loops.use_compiled()
    else:
        loops.use(None)
    yield request.param
    loops.use(before)


def fletcher32_by_words(data: bytes) -> int:
    """The definition, word by word."""
    padded = data + b"\0" * (len(data) % 2)
    sum1 = sum2 = 0
    for high, low in zip(padded[0::2], padded[1::2], strict=True):
        sum1 += high << 8 | low
        sum1 = (sum1 & 0xFFFF) + (sum1 >> 16)
        sum2 += sum1
        sum2 = (sum2 & 0xFFFF) + (sum2 >> 16)
    return sum2 << 16 | sum1


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=3000))
def test_fletcher32_of_any_bytes(by, data):
    assert loops.fletcher32([data])[0] == fletcher32_by_words(data)


@pytest.mark.parametrize("length", [0, 1, 2, 1023, 1024, 1025, 2047, 2048, 32_768, 32_769, 100_001])
@pytest.mark.parametrize("fill", ["noise", "zeros", "ones", "one late byte"])
def test_fletcher32_at_row_ends_and_multiples_of_65535(by, length, fill):
    data = np.zeros(length, np.uint8)
    if fill == "noise":
        data = np.random.default_rng(length).integers(0, 256, length).astype(np.uint8)
    elif fill == "ones":
        data[:] = 255
    elif length:
        data[-1] = fill != "zeros"
    odd = data[1:]  # where no word is aligned
    both = [fletcher32_by_words(part.tobytes()) for part in (data, odd)]
    assert loops.fletcher32([data, odd]) == both
    assert loops.fletcher32([data.tobytes(), bytearray(odd), memoryview(odd)]) == [*both, both[1]]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "int64"])
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 1000])
def test_the_bytes_of_numbers_go_to_their_planes_and_nowhere_else(by, dtype, count):
    size = np.dtype(dtype).itemsize
    columns = np.random.default_rng(count).integers(0, 256, (40, count * size)).astype(np.uint8).view(dtype)
    columns.flags.writeable = count != 16
    planes = np.full((40, size, count + 40), 77, np.uint8)
    loops.shuffle([(column, own, 7) for column, own in zip(columns, planes, strict=True)])
    for column, own in zip(columns, planes, strict=True):
        assert np.array_equal(own[:, 7 : 7 + count], column.view(np.uint8).reshape(count, size).T)
    assert (planes[:, :, :7] == 77).all()
    assert (planes[:, :, 7 + count :] == 77).all()


def poses(count: int) -> np.ndarray:
    """float64[count, 7], quaternions nearly unit."""
    rng = np.random.default_rng(count)
    found = rng.normal(size=(count, 7))
    found[:, 3:] *= ((1 + rng.uniform(-0.9, 0.9, count) * TOLERANCE) / np.linalg.norm(found[:, 3:], axis=1))[:, None]
    return found


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 20_000])
def test_quaternions_are_divided_by_the_root_of_their_squares_added_one_by_one(by, count):
    given_poses = poses(count)
    x, y, z, w = given_poses[:, 3:].T
    expected = given_poses.copy()
    expected[:, 3:] /= np.sqrt(((x * x + y * y) + z * z) + w * w)[:, None]
    assert loops.normalize(given_poses, LIMIT, TOLERANCE)
    assert given_poses.tobytes() == expected.tobytes()


@pytest.mark.parametrize("row", [0, 7, 8, 18])
@pytest.mark.parametrize("part", range(7))
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.001 * LIMIT, 1e200])
def test_a_faulty_number_is_seen_wherever_it_is(by, row, part, value):
    faulty = poses(19)
    faulty[row, part] = value
    assert not loops.normalize(faulty, LIMIT, TOLERANCE)


def test_the_limits_themselves_are_within(by):
    edge = np.array([[LIMIT, -LIMIT, 0, 0, 0, 0, 1.0]])
    assert loops.normalize(edge, LIMIT, TOLERANCE)
    assert not loops.normalize(np.nextafter(edge, np.inf), LIMIT, TOLERANCE)
    for norm in (0.9989, 1.0011):
        assert not loops.normalize(np.array([[0, 0, 0, 0, norm, 0, 0]]), LIMIT, TOLERANCE)


def test_arrays_that_do_not_fit_are_refused(by):
    with pytest.raises(ValueError, match="contiguous"):
        loops.normalize(np.zeros((4, 14))[:, ::2], LIMIT, TOLERANCE)
    if by == "native":
        with pytest.raises(ValueError, match="do not fit"):
            loops.shuffle([(np.zeros(9, np.int32), np.zeros((4, 9), np.uint8), 1)])
