"""Damage: what happens to files on disks and on the way, and what somebody does to them on
purpose."""

import random
import re
import struct

NUMBERS = (
    "nan",
    "-nan",
    "inf",
    "-inf",
    "1e400",
    "1e308",
    "-1e308",
    "5e-324",
    "1e-320",
    "0",
    "-0.0",
    "-1",
    "4294967296",
    "-2147483649",
    "9223372036854775808",
    "99999999999999999999",
    "1e",
    "0x7f",
    "1,5",
    "",
)
WORDS = (*"\"'<&@{[(#/\\é\0\n", "</", "<!--", "..", "\udcff", "A" * 5000)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """One to three changes to a file of any kind."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        text = b"\0" not in data[:512] and rng.random() < 0.7
        data = rng.choice(TEXT_CHANGES if text else BYTE_CHANGES)(data, rng)
    return data


def flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def set_bytes(data: bytes, rng: random.Random) -> bytes:
    """A byte, a length or a number set to an extreme."""
    size = rng.choice((1, 2, 4, 8))
    half = 1 << (8 * size - 1)
    value = rng.choice((0, 1, 2 * half - 1, half, half - 1, 0x7F << 8 * (size - 1)))
    at = rng.randrange(max(1, len(data)))
    return data[:at] + value.to_bytes(size, "little") + data[at + size :]


def set_float(data: bytes, rng: random.Random) -> bytes:
    value = rng.choice((float("nan"), float("inf"), -float("inf"), 5e-324, 1e308, 0.0, -1.0))
    at = rng.randrange(max(1, len(data))) // 8 * 8
    return data[:at] + struct.pack("<d", value) + data[at + 8 :]


def truncated(data: bytes, rng: random.Random) -> bytes:
    return (
        data[: rng.randrange(len(data) + 1)]
        if rng.random() < 0.7
        else data[rng.randrange(len(data) + 1) :]
    )


def swapped(data: bytes, rng: random.Random) -> bytes:
    size = rng.choice((1, 8, 64, 512))
    a, b = (rng.randrange(max(1, len(data))) for _ in range(2))
    block_a = data[a : a + size]
    block_b = data[b : b + size]
    changed = bytearray(data)
    changed[a : a + len(block_a)] = block_b
    changed[b : b + len(block_b)] = block_a
    return bytes(changed)


def repeated(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(max(1, len(data)))
    size = rng.choice((1, 16, 256, 4096))
    return data[:at] + data[at : at + size] * rng.choice((2, 3, 50)) + data[at + size :]


def erased(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(max(1, len(data)))
    size = rng.choice((1, 16, 256))
    return (
        data[:at]
        + rng.choice((b"", bytes(size), b"\xff" * size, rng.randbytes(size)))
        + data[at + size :]
    )


def lengthened(data: bytes, rng: random.Random) -> bytes:
    return data + rng.choice((b"\0" * 4096, rng.randbytes(100), data))


def other_number(data: bytes, rng: random.Random) -> bytes:
    return _replaced(data, rb"-?\d+(\.\d+)?", rng, rng.choice(NUMBERS).encode())


def other_word(data: bytes, rng: random.Random) -> bytes:
    """A name takes the place of another one of the same file."""
    words = re.findall(rb"[A-Za-z_]\w+", data)
    return _replaced(data, rb"[A-Za-z_]\w+", rng, rng.choice(words) if words else b"")


def wild_word(data: bytes, rng: random.Random) -> bytes:
    return _replaced(data, rb"\W", rng, rng.choice(WORDS).encode("utf-8", "surrogateescape"))


def line_changed(data: bytes, rng: random.Random) -> bytes:
    """A line twice, gone, elsewhere, or many times."""
    lines = data.split(b"\n")
    line = lines.pop(rng.randrange(len(lines)))
    at = rng.randrange(len(lines) + 1)
    return b"\n".join(lines[:at] + [line] * rng.choice((0, 1, 2, 1000)) + lines[at:])


def _replaced(data: bytes, pattern: bytes, rng: random.Random, by: bytes) -> bytes:
    places = [match.span() for match in re.finditer(pattern, data)]
    if not places:
        return data
    start, end = rng.choice(places)
    return data[:start] + by + data[end:]


BYTE_CHANGES = (
    flipped,
    flipped,
    set_bytes,
    set_bytes,
    set_float,
    truncated,
    swapped,
    repeated,
    erased,
    lengthened,
)
TEXT_CHANGES = (
    other_number,
    other_number,
    other_word,
    wild_word,
    line_changed,
    flipped,
    truncated,
    erased,
    repeated,
)
