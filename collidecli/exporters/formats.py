"""Formats of `export`: file extensions, and options that a format uses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExportFormat:
    """A format of `export`. endings: extensions, the default one first. options: those given that
    others refuse."""

    endings: tuple[str, ...] = (".npz",)
    options: tuple[str, ...] = ()


EXPORT_FORMATS = {
    "usd": ExportFormat((".usd", ".usda", ".usdc"), ("scene", "trajectory")),
    "mcap": ExportFormat((".mcap",), ("scene", "trajectory", "frame_id")),
    "csv": ExportFormat((".csv",), ("group",)),
    "parquet": ExportFormat((".parquet",), ("group",)),
    "npz": ExportFormat(options=("group",)),
    **dict.fromkeys(("newton", "genesis", "dart", "raisim"), ExportFormat()),
    "mujoco": ExportFormat(options=("scene",)),
    "jacobian": ExportFormat(options=("scene", "trajectory")),
}
"""Formats by name. `<name>_layout` of `exporters.layouts` returns the arrays of a format of
arrays."""


def formats_with(option: str, last: str = "and") -> str:
    """The formats of `export` that use an option, in words."""
    *others, end = [name for name, each in EXPORT_FORMATS.items() if option in each.options]
    return f"{', '.join(others)} {last} {end}" if others else end
