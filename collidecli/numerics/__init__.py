"""Elementary functions and sums of products in float64, equal to the bit on every processor.

They use +, -, *, /, square root and integers alone: IEEE 754 fixes the last bit of each of these,
and NumPy applies them one after the other, so that no fused multiply-add occurs. The functions of
the C library, of NumPy, BLAS and LAPACK select an implementation by the processor, and these
implementations differ in the last bit.
"""
