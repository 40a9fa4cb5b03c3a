"""The spread of repeated measurements."""

from __future__ import annotations

from typing import Any

import numpy as np


def spread_of(values: np.ndarray) -> dict[str, Any]:
    return {
        "median": float(np.median(values)),
        "least": float(values.min()),
        "most": float(values.max()),
        "repeats": values.tolist(),
    }
