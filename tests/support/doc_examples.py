"""Examples of the documentation: their blocks, and comparison of shown with real output by
meaning."""

import re

FENCE = re.compile(r"(?:^`([\w./]+)`:\n\n)?^```(\w*)\n(.*?)^```", re.S | re.M)
"""File name above a block (or empty), its language, its body."""

TYPED = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?(collide .*)$", re.M)
"""A line with a command of collide: a prompt or the folder of the environment may be before it."""

NUMBER = re.compile(r"[-+−]?\d+(\.\d+)?(e[-+]?\d+)?%?")
GROUPED = re.compile(r"(?<![\w.])(\d{1,3}(?: \d{3})+)(?![\w.])")
HASH = re.compile(r"[0-9a-f]{64}")
EDGES = "()[]{},:;<>"
LENGTH_TOLERANCE = 1e-3  # relative; a shift of 1e-8 m changes no figure that is shown by more
COUNT_TOLERANCE = 0.01  # relative, of counts above EXACT_COUNTS
SIZE_TOLERANCE = 0.2  # relative, of sizes of files
EXACT_COUNTS = 100
SIZES = {"B", "KiB", "MiB"}


def joined(text: str) -> str:
    """A text with the lines joined that end with a backslash."""
    return re.sub(r"\\\n *", "", text)


def collide_lines(body: str) -> list[str]:
    """Commands of collide of a block, one each, from the word `collide` on."""
    return TYPED.findall(joined(body))


def words(line: str) -> list[str]:
    """Words of a line; digit groups are joined, rules of tables and hashes are reduced to one
    sign."""
    joined = GROUPED.sub(lambda found: found[1].replace(" ", ""), line)
    joined = HASH.sub("<hash>", re.sub("─+", "─", joined))
    kept = [word.strip(EDGES) if word.strip(EDGES) else word for word in joined.split()]
    return [word for word in kept if word]


def value(word: str) -> float | None:
    """The number that a word is; None for another word."""
    return float(word.rstrip("%").replace("−", "-")) if NUMBER.fullmatch(word) else None


def agree(shown: str, real: str, unit: str = "") -> bool:
    """Whether two words have one meaning: equal texts, or numbers within the tolerance of their
    kind."""
    a = value(shown)
    b = value(real)
    if a is None or b is None:
        return shown == real
    if unit in SIZES:
        return abs(a - b) <= SIZE_TOLERANCE * max(abs(a), abs(b))
    if a == int(a) and b == int(b):
        return a == b or (min(a, b) > EXACT_COUNTS and abs(a - b) <= COUNT_TOLERANCE * max(a, b))
    return abs(a - b) <= LENGTH_TOLERANCE * max(abs(a), abs(b)) + 1e-12


def check_output(shown: str, real: str, whole: bool = True) -> None:
    """Asserts that shown and real output have one meaning, line by line.

    whole: the real output has no further lines; else the shown lines are its beginning.
    """
    shown_lines = [line for line in shown.splitlines() if line.strip()]
    real_lines = [line for line in real.splitlines() if line.strip()]
    if whole:
        assert len(shown_lines) == len(real_lines), f"shown:\n{shown}\nreal:\n{real}"
    assert len(shown_lines) <= len(real_lines)
    for a, b in zip(shown_lines, real_lines, strict=False):
        left = words(a)
        right = words(b)
        units = [*right[1:], ""]
        assert len(left) == len(right), f"shown: {a}\nreal:  {b}"
        assert all(agree(x, y, unit) for x, y, unit in zip(left, right, units, strict=True)), (
            f"shown: {a}\nreal:  {b}"
        )
