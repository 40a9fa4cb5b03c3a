"""The name and version of an engine."""

from __future__ import annotations

from collidecli.pages.quantities import ResultDict, seconds


def engine_text(row: ResultDict) -> str:
    """Version, interpreter and times of an engine."""
    version = f"{row['engine']} {row['version']}" + (
        f", Python {row['interpreter']}" if row["interpreter"] else ""
    )
    if row["setup_seconds"] is None:
        return version
    return (
        f"{version}: {seconds(row['setup_seconds'])} to set up, {seconds(row['frame_seconds'])} a"
        " cell"
    )


def named_version(row: ResultDict) -> str:
    """Name and version of an engine: mujoco 4.0.0, or old (mujoco 3.3.0)."""
    version = f"{row['engine']} {row['version']}".strip()
    return version if row["name"] == row["engine"] else f"{row['name']} ({version})"
