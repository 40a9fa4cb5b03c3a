"""The largest number of threads and of elements of one array."""

INDEX_LIMIT = 2**31 - 1
"""Kernels count threads and elements in 32 bits."""
