"""Sums of products, powers, eigenvectors and polar decompositions against NumPy's."""

import math

import numpy as np
import pytest

from collidecli.numerics.matrices import cross, dot, integer_power, length, matmul, matvec, norm, polar, symmetric_eigen


def test_products_are_numpys():
    rng = np.random.default_rng(0)
    a, b, v = rng.normal(size=(7, 3, 4)), rng.normal(size=(7, 4, 2)), rng.normal(size=(7, 4))
    np.testing.assert_allclose(matmul(a, b), a @ b, rtol=1e-13)
    np.testing.assert_allclose(matvec(a, v), (a @ v[..., None])[..., 0], rtol=1e-12)
    np.testing.assert_allclose(matvec(a[0], v), v @ a[0].T, rtol=1e-12)
    np.testing.assert_allclose(dot(v, v[0]), v @ v[0], rtol=1e-12)
    np.testing.assert_allclose(norm(v), np.linalg.norm(v, axis=1), rtol=1e-15)
    np.testing.assert_array_equal(cross(a[:, :, 0], a[:, :, 1]), np.cross(a[:, :, 0], a[:, :, 1]))
    assert length([3.0, 4.0]) == 5.0


@pytest.mark.parametrize("base", [0.01, 1.0, 3.7, -2.0])
@pytest.mark.parametrize("exponent", [-3, -1, 0, 1, 2, 5])
def test_powers(base, exponent):
    assert integer_power(base, exponent) == pytest.approx(base**exponent, rel=2e-16)


def test_powers_beyond_the_range():
    assert (integer_power(1e200, 2), integer_power(-1e200, 3), integer_power(1e-200, 2)) == (math.inf, -math.inf, 0.0)
    assert integer_power(math.inf, -2) == 0.0
    with pytest.raises(ZeroDivisionError):
        integer_power(0.0, -1)


def test_eigenvectors():
    rng = np.random.default_rng(1)
    for scale in (1e-3, 1.0, 1e3):
        half = rng.normal(size=(3, 3)) * [scale, 1.0, 1e-4]
        matrix = half.T @ half
        values, vectors = symmetric_eigen(matrix)
        assert (np.diff(values) >= 0.0).all()
        np.testing.assert_allclose(vectors @ np.diag(values) @ vectors.T, matrix, atol=1e-14 * np.abs(matrix).max())
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-14)


def test_polar_decomposition():
    rng = np.random.default_rng(2)
    for _ in range(300):
        matrix = rng.normal(size=(3, 3)) * 10.0 ** rng.uniform(-3, 3, 3)
        rotation, stretch = polar(matrix)
        left, _, right = np.linalg.svd(matrix)
        nearest = left @ right * np.sign(np.linalg.det(left @ right))
        np.testing.assert_allclose(rotation, nearest, atol=1e-8)
        np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=2e-15)
        np.testing.assert_allclose(rotation @ stretch, matrix, rtol=0, atol=1e-14 * np.abs(matrix).max())


def test_a_singular_matrix_is_its_own_stretch():
    matrix = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]])
    rotation, stretch = polar(matrix)
    np.testing.assert_array_equal(rotation, np.eye(3))
    np.testing.assert_array_equal(stretch, matrix)
