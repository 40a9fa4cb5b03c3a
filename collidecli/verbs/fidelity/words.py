"""Words about engines' answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import itemgetter

import numpy as np

from collidecli.pages.quantities import ResultDict, length, length_unit, plain
from collidecli.pages.tables import Column, pair_columns
from collidecli.wording import count, plural

LEAST_LENGTH = 1e-9
LEAST_ANGLE = 1e-5
LEAST_RELATIVE = 1e-6
"""Smaller errors are listed as 0 [m], [degree] and [1]: they are rounding."""


def depth_limit_text(result: ResultDict) -> str:
    """The error above which a depth is wrong: 1 mm, 10 %, or 1 mm or 10 %."""
    limits = result["limits"]
    tolerance = result["tolerance"]
    relative = limits["max_depth_error_relative"]
    texts = [length(tolerance["depth_error"])]
    if relative is not None:
        texts = [] if limits["max_depth_error"] is None else texts
        texts.append(limit_text("_relative", relative))
    return " or ".join(texts)


def faults_text(row: ResultDict) -> str:
    """Answers and rows of a kind of pair that are wrong in another way than by a length."""
    names = {
        "wrong_sign": "wrong sign",
        "stale": "of the frame before",
        "shifted": "of another frame",
    }
    names |= {
        "flipped": "opposite normals",
        "unusable_rows": "unusable rows",
        "not_asked": "not asked",
    }
    faults = [f"{count(row[key])} {words}" for key, words in names.items() if row[key]]
    if row["scaled"]:
        faults.append(
            f"{count(row['scaled'])} of {count(row['asked'])} have {factor_text(row['factor'])} the"
            " depth"
        )
    if row["wrong_apart"]:
        faults.append(
            f"{count(row['wrong_apart'])} of {count(row['apart'])} distances apart are wrong"
        )
    return ", ".join(faults)


def factor_text(factor: float) -> str:
    """A factor of depths as words: half, twice, 0.3 times."""
    for value, words in ((0.5, "half"), (2.0, "twice")):
        if abs(factor / value - 1.0) < SAME_FACTOR:
            return words
    return f"{factor:.2g} times"


SAME_FACTOR = 0.02
"""Fraction within which a factor is a half or two."""
MEASURED = {
    "depth error": "depth_error",
    "relative depth error": "relative_error",
    "normal excess": "excess",
    "distance error, apart": "distance_error",
    "angle": "angle",
    "point": "point_error",
}
"""Titles of columns, and fields of a result."""
LEFT_OUT = (*(f"{title}, 99 %" for title in MEASURED), "angle, worst", "point, worst")
"""Columns that a narrow terminal lacks, the first first, without their units."""
LEAST_SHOWN = 1e-3
"""Least number that a column shows in its unit; a lesser one is `<0.001`."""


def left_out(columns: Sequence[Column]) -> list[str]:
    """The titles of the columns that a narrow terminal lacks, the first first."""
    titles = {title.partition(" [")[0]: title for title, _, _ in columns}
    return [titles[name] for name in LEFT_OUT if name in titles]


def unit_of(name: str, values: Sequence[float]) -> tuple[float, str]:
    """Factor and unit of a column of the field `name`, by its greatest value: one for all of its
    numbers."""
    if name in ("angle", "relative_error"):
        return (1.0, "deg") if name == "angle" else (100.0, "%")
    known = [abs(value) for value in values if np.isfinite(value)]
    return length_unit(max(known, default=0.0))


def number_text(value: float, factor: float) -> str:
    """A number in the unit of its column: 4 significant digits without an exponent."""
    shown = value * factor
    if 0.0 < abs(shown) < LEAST_SHOWN:
        return f"<{LEAST_SHOWN}" if shown > 0.0 else f">-{LEAST_SHOWN}"
    return plain(shown)


def _spread_text(name: str, which: str, factor: float, row: ResultDict) -> str:
    if row[name] is None:
        return ""
    value = row[name][which]
    least = {"angle": LEAST_ANGLE, "relative_error": LEAST_RELATIVE}.get(name, LEAST_LENGTH)
    return number_text(value if value >= least else 0.0, factor)


def engine_columns(rows: Sequence[ResultDict]) -> list[Column]:
    """The columns of collide.fidelity/1 by engine and pair of types, each with one unit for all
    rows."""
    columns: list[Column] = [
        ("engine", "left", itemgetter("engine")),
        ("pair", "left", lambda row: " ".join(row["types"]).replace("_", " ")),
        *(
            (name, "right", lambda row, name=name: count(row[name]))
            for name in ("asked", "wrong", "missed", "phantom")
        ),
    ]
    for title, name in MEASURED.items():
        for which, words in (("p99", "99 %"), ("worst", "worst")):
            factor, unit = unit_of(
                name, [row[name][which] for row in rows if row[name] is not None]
            )
            columns.append(
                (f"{title}, {words} [{unit}]", "right", partial(_spread_text, name, which, factor))
            )
    return [*columns, ("faults", "left", faults_text)]


def worst_columns(narrow: int, answers: Sequence[ResultDict]) -> list[Column]:
    """The columns of the worst answers, each with one unit. narrow: both shapes in one column."""
    lengths: list[Column] = []
    named = {
        "distance": "distance",
        "reported": "reported_distance",
        "along its normal": "reported_separation",
    }
    for title, name in named.items():
        factor, unit = unit_of(name, [float(answer[name]) for answer in answers])
        lengths.append((f"{title} [{unit}]", "right", partial(_reported, name, factor)))
    return [
        ("engine", "left", itemgetter("engine")),
        ("worst", "left", lambda answer: answer["what"].replace("_", " ")),
        *pair_columns(narrow),
        ("in frame", "right", lambda answer: str(answer["frame"])),
        *lengths,
    ]


def _reported(name: str, factor: float, answer: ResultDict) -> str:
    """A length of an answer, which an engine may lack."""
    value = float(answer[name])
    if not np.isfinite(value):
        return "none" if np.isnan(value) else str(value)
    return number_text(value, factor)


def fidelity_words(result: ResultDict) -> str:
    """Whether every engine is within the limits, as one line; an engine without a compared answer
    is not."""
    has_limits = any(limit is not None for limit in result["limits"].values())
    failing = sum(bool(row["exceeds"]) for row in result["rows"])
    idle = (
        f"nothing asked of {', '.join(result['idle'])}: no pair overlaps or has a contact"
        if result["idle"]
        else ""
    )
    if failing:
        words = f"failed: {plural(failing, 'kind of pair', 'kinds of pairs')}"
        return f"{words}; {idle}" if idle else words
    if idle and (has_limits or len(result["idle"]) == len(result["engines"])):
        return idle
    return "passed: within the limits" if has_limits else "passed: no limit is given"


def limit_text(name: str, limit: float) -> str:
    """A limit of errors as text."""
    return f"{plain(100.0 * limit)} %" if name.endswith("_relative") else length(limit)


def types_text(types: Sequence[str]) -> str:
    """A pair of types as text: `convex mesh and box`."""
    return " and ".join(types).replace("_", " ")
