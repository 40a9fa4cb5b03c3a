"""Values of --sensors that name declared sensors."""

from __future__ import annotations

SENSORS_SCHEMA = "collide.sensors/1"
SCENE = "scene"
"""Those that the scene declares."""


def is_sensors_source(text: str) -> bool:
    """Whether a value of --sensors names declared sensors: of the scene, or of a file."""
    return text == SCENE or is_no_pattern(text)


def is_no_pattern(text: str) -> bool:
    """Whether a value of --sensors names some sensors of the scene, or a file: no body and no shape
    has such a name."""
    return text.startswith(f"{SCENE}:") or text.lower().endswith(".toml")
