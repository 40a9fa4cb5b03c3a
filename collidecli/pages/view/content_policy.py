"""The Content-Security-Policy of a page of viser: its own scripts alone, and no network.

What the client of viser 1.1 executes and loads, found in its built sources:

- a loader, a script of the page that decompresses style and code with zstd as WebAssembly and adds
  both to the page as a style and a module;
- workers from `blob:`, or `data:` where that fails, which have the policy of the page;
- a sorter of Gaussian splats, which it fetches from a `data:` URL and starts with the page, also
  where there are none. Its glue calls `Function` with text, for which 'unsafe-eval' is allowed;
- pictures from `data:` and `blob:`, style attributes, and no fonts.
"""

from __future__ import annotations

import base64
import hashlib
import re

import numpy as np

_SCRIPT = re.compile(r"<script\b([^>]*)>(.*?)</script>", re.DOTALL)
_PACKED = re.compile(r' data-p="([^"]*)" data-ss="(\d+)" data-cs="(\d+)"')
"""The loader's attributes: compressed bytes as text, and the lengths of style and code in them."""
_ALPHABET = re.compile(r'const A="((?:[^"\\]|\\.)*)"')
_DATA = 'type="application/json"'
_HEAD = "<head>"


def with_policy(page: str) -> str:
    """The page with its policy, before everything that the policy is about.

    The code of another client than that of viser 1.1 may have no known hash: then any script of the
    page itself is allowed.
    """
    scripts = [match for match in _SCRIPT.finditer(page) if _DATA not in match[1]]
    sources = [_hash(match[2].encode()) for match in scripts]
    codes = [_unpacked_code(match[1], match[2]) for match in scripts]
    if any(codes):
        sources += [_hash(code) for code in codes if code]
    else:
        sources = ["'unsafe-inline'"]
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(dict.fromkeys(sources))} 'unsafe-eval'",
            "worker-src blob: data:",
            "style-src 'unsafe-inline'",
            "img-src data: blob:",
            "connect-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return page.replace(_HEAD, f"{_HEAD}\n    {meta}", 1)


def _hash(script: bytes) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"


def _unpacked_code(attributes: str, loader: str) -> bytes:
    """The code that the loader adds to the page; empty for a script that is no loader."""
    packed = _PACKED.search(attributes)
    alphabet = _ALPHABET.search(loader)
    if packed is None or alphabet is None:
        return b""
    import zstandard  # viser needs it

    style_size = int(packed[2])
    code_size = int(packed[3])
    content = zstandard.ZstdDecompressor().decompress(
        _decoded(packed[1], alphabet[1].replace("\\\\", "\\")), style_size + code_size
    )
    return content[style_size : style_size + code_size]


def _decoded(text: str, alphabet: str) -> bytes:
    """The bytes of a text in base 88: five characters for four bytes, the last group has fewer."""
    digit = np.zeros(128, np.int64)
    digit[[ord(character) for character in alphabet]] = np.arange(len(alphabet))
    values = digit[np.frombuffer(text.encode("ascii"), np.uint8)]
    rest = len(values) % 5
    whole = values[: len(values) - rest].reshape(-1, 5) @ len(alphabet) ** np.arange(4, -1, -1)
    last = 0
    for value in values[len(values) - rest :].tolist():
        last = last * len(alphabet) + value
    return whole.astype(">u4").tobytes() + last.to_bytes(max(0, rest - 1), "big")
