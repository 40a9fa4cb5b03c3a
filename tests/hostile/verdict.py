"""What collide may answer to a hostile input."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

MOST_SECONDS = 10.0
MOST_BYTES = 1 << 30
MOST_ERROR_LETTERS = 4000
SECRET = "SECRET-7f3a"
OPTIONS = ("--memory-limit", "--frames")
"""Options that a message may name in place of an input; collide.toml sets the second."""
OUTPUTS = ("-o", "--csv", "--parquet", "--export", "--mask")
SPOKEN = re.compile(r"(error: |warning: |  |failed call to posix_madvise)")
"""The last is what OpenUSD itself writes where it cannot map a file."""


def faults(facts: dict[str, Any]) -> Iterator[str]:
    """Everything wrong with one answer, in words; nothing where it is as it should be."""
    code, out, err, args = facts["code"], facts["out"], facts["err"], facts["args"]
    if "internal error" in err:
        yield err.partition("internal error: ")[2].splitlines()[0]
        return
    if code not in (0, 1, 2) or (code == 1 and args[0] not in ("check", "diff")):
        yield f"exit code {code}"
    if "Traceback" in err + out:
        yield "a traceback"
    if facts["seconds"] > MOST_SECONDS:
        yield f"took {facts['seconds']:.1f} s"
    if facts["peak"] > MOST_BYTES:
        yield f"took {facts['peak'] / 2**30:.1f} GiB"
    if SECRET in out or SECRET in err or "PICKLE" in out + err:
        yield "tells what is in another file, or ran what it holds"
    if facts["opened"]:
        yield f"opened {', '.join(facts['opened'][:3])}"
    wanted = sorted(args[at + 1] for at, word in enumerate(args) if word in OUTPUTS) if code == 0 else []
    if facts["left"] != wanted:
        yield f"left {facts['left']} behind"
    if facts.get("check", 0) != 0:
        yield "wrote a contact set that is not well formed"
    yield from _words(code, out, err, args, facts.get("main", args[1]))


def _words(code: int, out: str, err: str, args: list[str], main: str) -> Iterator[str]:
    strange = [line for line in err.splitlines() if line and not SPOKEN.match(line)]
    if strange:
        yield f"stderr has a line that is not ours: {strange[0][:120]!r}"
    if any(not c.isprintable() and c != "\n" for c in err + out):
        yield "control characters in what it says"
    spoken = re.search(r"^error: (.*?)(?=^warning: |\Z)", err, re.M | re.S)
    errors = spoken[1] if spoken else ""
    if code == 2:
        inputs = [word for word in args[1:] if re.search(r"\.(usd\w?|xml|urdf|srdf|h5|hdf5|np[yz]|csv)$", word)]
        named = [*(name for name in inputs if name != "out.h5"), main, main.split("/")[0], *OPTIONS]
        if not any(name in errors for name in named):
            yield f"the message names no input: {errors[:120]!r}"
        if len(errors.splitlines()) > 2 or len(errors) > MOST_ERROR_LETTERS:
            yield f"the message has {len(errors.splitlines())} lines and {len(errors)} letters"
    elif errors:
        yield f"an error message with exit code {code}"
    if code == 1 and not out.strip():
        yield "a failed check, or a difference, that does not say what is wrong"
