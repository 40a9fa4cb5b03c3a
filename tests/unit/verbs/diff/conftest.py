"""Fixtures of a planned engine: its motion and its rows."""

from tests.support.planned_engine import falling, planned, rows, saved

__all__ = ["falling", "planned", "rows", "saved"]
