"""Doors out: contact sets as tables, arrays and layers of other programs."""
