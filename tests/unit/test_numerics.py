"""Elementary functions against arithmetic of more digits, in units of the last place; products
against NumPy's."""

import math
from fractions import Fraction

import numpy as np
import pytest
import warp as wp

from collidecli.engine.geometry import elementary_functions
from collidecli.engine.runtime.kernel import kernel
from collidecli.numerics import products
from collidecli.numerics.trigonometry import MODERATE, acos, atan2, cos, sin, sincos

COUNT = 250_000
Long = np.longdouble
needs_long = pytest.mark.skipif(
    np.finfo(Long).nmant < 63, reason="long double has no more digits here"
)


def ulps(found: np.ndarray, truth: np.ndarray) -> float:
    """The largest error in units of the last place of what was found."""
    usual = np.abs(found) > 1e-300
    return float(
        np.max(np.abs(found[usual].astype(Long) - truth[usual]) / np.spacing(np.abs(found[usual])))
    )


def angles() -> np.ndarray:
    rng = np.random.default_rng(0)
    multiples = np.arange(-4000, 4001) * (0.25 * np.pi)
    near = np.concatenate(
        [np.nextafter(multiples, np.inf), multiples, np.nextafter(multiples, -np.inf)]
    )
    drawn = [rng.uniform(-size, size, COUNT) for size in (1.0, 10.0, 1e3, MODERATE)]
    small = 10.0 ** rng.uniform(-300, 0, COUNT)
    return np.concatenate([near, *drawn, small])


@needs_long
def test_sine_and_cosine():
    angle = angles()
    sine, cosine = sincos(angle)
    assert ulps(sine, np.sin(angle.astype(Long))) < 0.8
    assert ulps(cosine, np.cos(angle.astype(Long))) < 0.8
    np.testing.assert_array_equal(sine, sin(angle))
    np.testing.assert_array_equal(cosine, cos(angle))


def exact_sine(angle: float) -> float:
    """By 400 digits of pi from Machin's formula in fractions, and a Taylor series."""
    one = 10**420

    def atan_of_inverse(n: int) -> int:
        return sum(
            (1 if k % 2 == 0 else -1) * (one // ((2 * k + 1) * n ** (2 * k + 1)))
            for k in range(700)
        )

    pi = Fraction(4 * (4 * atan_of_inverse(5) - atan_of_inverse(239)), one)
    x = Fraction(angle) % (2 * pi)
    x = Fraction(round((x if x <= pi else x - 2 * pi) * 2**160), 2**160)
    total = Fraction(0)
    term = x
    for k in range(1, 40):
        total += term
        term = Fraction(round(-term * x * x / ((2 * k) * (2 * k + 1)) * 2**200), 2**200)
    return float(total)


@pytest.mark.parametrize(
    "angle",
    [
        MODERATE,
        MODERATE * 1.0000001,
        1e7 + 0.1,
        1e15,
        1e22,
        6381956970095103 * 2.0**797,
        1.7e308,
        -3e100,
    ],
)
def test_huge_angles(angle):
    sine, cosine = (float(x) for x in sincos(np.array(angle)))
    truth = exact_sine(angle)
    assert abs(sine - truth) <= np.spacing(abs(truth))
    assert sine * sine + cosine * cosine == pytest.approx(1.0, abs=3e-16)


def test_special_angles():
    sine, cosine = sincos(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310]))
    np.testing.assert_array_equal(sine, [0.0, -0.0, np.nan, np.nan, np.nan, 5e-324, -1e-310])
    assert list(np.signbit(sine[:2])) == [False, True]
    np.testing.assert_array_equal(cosine, [1.0, 1.0, np.nan, np.nan, np.nan, 1.0, 1.0])
    assert float(sin(np.array(0.5))) == pytest.approx(math.sin(0.5), rel=2e-16)
    assert sin(np.zeros((2, 0, 3))).shape == (2, 0, 3)


@needs_long
def test_arc_tangent():
    rng = np.random.default_rng(1)
    y, x = rng.normal(size=(2, 4 * COUNT)) * 10.0 ** rng.uniform(-6, 6, (2, 4 * COUNT))
    assert ulps(atan2(y, x), np.arctan2(y.astype(Long), x.astype(Long))) < 0.7


def test_special_vectors():
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1.0,
        -1.0,
        5e-324,
        -5e-324,
        1e308,
        -1e308,
        2.2e-308,
        0.5,
        1e-9,
    ]
    y, x = np.meshgrid(special, special)
    found = atan2(y, x)
    truth = np.arctan2(y, x)
    np.testing.assert_allclose(found, truth, rtol=3e-16, atol=5e-324)
    number = ~np.isnan(truth)
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(truth[number]))


@needs_long
def test_arc_cosine():
    rng = np.random.default_rng(2)
    near = 1.0 - 10.0 ** rng.uniform(-16, 0, COUNT)
    cosine = np.concatenate([rng.uniform(-1, 1, 2 * COUNT), near, -near, [1.0, -1.0, 0.0]])
    assert ulps(acos(cosine), np.arccos(cosine.astype(Long))) < 0.75
    np.testing.assert_array_equal(
        acos(np.array([1.0, -1.0, 1.0000001, -2.0, np.nan])), [0, np.pi, *[np.nan] * 3]
    )


@kernel
def evaluate(a: wp.array[wp.float64], b: wp.array[wp.float64], out: wp.array2d[wp.float64]):
    i = wp.tid()
    out[0, i] = elementary_functions.arc_tangent(a[i], b[i])
    out[1, i] = elementary_functions.natural_logarithm(a[i])
    out[2, i] = elementary_functions.exponential(b[i])
    out[3, i] = elementary_functions.power(a[i], b[i])


@needs_long
def test_functions_of_kernels():
    rng = np.random.default_rng(3)
    a = np.abs(rng.normal(size=COUNT)) * 10.0 ** rng.uniform(-8, 3, COUNT)
    b = 3.0 * rng.normal(size=COUNT)
    a[:4] = [1e-310, 1.0, 2.0, 1e308]
    b[4:8] = [700.0, -700.0, 1.0, 0.0]
    given = [wp.array(each, dtype=wp.float64, device="cpu") for each in (a, b)]
    out = wp.zeros((4, COUNT), dtype=wp.float64, device="cpu")
    wp.launch(evaluate, COUNT, [*given, out], device="cpu")
    angle, logarithm, exponential, power = out.numpy()
    long_a = a.astype(Long)
    long_b = b.astype(Long)
    assert ulps(angle, np.arctan2(long_a, long_b)) < 2.0
    assert ulps(logarithm, np.log(long_a)) < 1.0
    assert ulps(exponential, np.exp(long_b)) < 1.0
    usual = np.abs(b * np.log(a)) < 50.0
    np.testing.assert_allclose(power[usual], (long_a**long_b)[usual].astype(float), rtol=1e-14)


# Sums of products, powers, eigenvectors and polar decompositions against NumPy's.


def test_products_are_numpys():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(7, 3, 4))
    b = rng.normal(size=(7, 4, 2))
    v = rng.normal(size=(7, 4))
    np.testing.assert_allclose(products.matmul(a, b), a @ b, rtol=1e-13)
    np.testing.assert_allclose(products.matvec(a, v), (a @ v[..., None])[..., 0], rtol=1e-12)
    np.testing.assert_allclose(products.matvec(a[0], v), v @ a[0].T, rtol=1e-12)
    np.testing.assert_allclose(products.dot(v, v[0]), v @ v[0], rtol=1e-12)
    np.testing.assert_allclose(products.norm(v), np.linalg.norm(v, axis=1), rtol=1e-15)
    np.testing.assert_array_equal(
        products.cross(a[:, :, 0], a[:, :, 1]), np.cross(a[:, :, 0], a[:, :, 1])
    )
    assert products.length([3.0, 4.0]) == 5.0


@pytest.mark.parametrize("base", [0.01, 1.0, 3.7, -2.0])
@pytest.mark.parametrize("exponent", [-3, -1, 0, 1, 2, 5])
def test_powers(base, exponent):
    assert products.integer_power(base, exponent) == pytest.approx(base**exponent, rel=2e-16)


def test_powers_beyond_the_range():
    found = [
        products.integer_power(base, exponent)
        for base, exponent in ((1e200, 2), (-1e200, 3), (1e-200, 2))
    ]
    assert found == [math.inf, -math.inf, 0.0]


def test_eigenvectors():
    rng = np.random.default_rng(1)
    for scale in (1e-3, 1.0, 1e3):
        half = rng.normal(size=(3, 3)) * [scale, 1.0, 1e-4]
        matrix = half.T @ half
        values, vectors = products.symmetric_eigen(matrix)
        assert (np.diff(values) >= 0.0).all()
        np.testing.assert_allclose(
            vectors @ np.diag(values) @ vectors.T, matrix, atol=1e-14 * np.abs(matrix).max()
        )
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-14)


def test_polar_decomposition():
    rng = np.random.default_rng(2)
    for _ in range(300):
        matrix = rng.normal(size=(3, 3)) * 10.0 ** rng.uniform(-3, 3, 3)
        rotation, stretch = products.polar(matrix)
        left, _, right = np.linalg.svd(matrix)
        nearest = left @ right * np.sign(np.linalg.det(left @ right))
        np.testing.assert_allclose(rotation, nearest, atol=1e-8)
        np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=2e-15)
        np.testing.assert_allclose(
            rotation @ stretch, matrix, rtol=0, atol=1e-14 * np.abs(matrix).max()
        )


def test_a_singular_matrix_is_its_own_stretch():
    matrix = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]])
    rotation, stretch = products.polar(matrix)
    np.testing.assert_array_equal(rotation, np.eye(3))
    np.testing.assert_array_equal(stretch, matrix)
