"""What rows of a planned engine say of themselves."""

import numpy as np

from collidecli.adapters import packing


def row_texts(engine: str = "planned", version: str = "1") -> dict[str, np.ndarray]:
    """The texts of an adapter's rows, whose points are in the middle between the shapes."""
    texts = {
        "format": packing.ROWS,
        "engine": engine,
        "version": version,
        "options": "{}",
        "interpreter": "3",
        "point_rule": "midpoint",
    }
    return {name: np.array(text) for name, text in texts.items()}
