"""Margin of the advised sizes of buffers."""

DEFAULT_MARGIN = 1.1
"""Of an advised size over the bound: 0.9 of the advised size is below the bound, so that an engine
that reaches its bound overflows there, where the bound is over 90: rounding adds up to one."""
