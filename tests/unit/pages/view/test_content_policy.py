"""The Content-Security-Policy of a page of viser."""

import base64
import hashlib
import re
from pathlib import Path

import pytest

from collidecli.pages.view.content_policy import with_policy
from collidecli.pages.view.legend import with_panel

viser = pytest.importorskip("viser")
zstandard = pytest.importorskip("zstandard")
CLIENT = Path(viser.__file__).parent / "client" / "build" / "index.html"
ALPHABET = "".join(chr(code) for code in range(33, 127) if chr(code) not in "\"&'<>`")


def source(text: bytes | str) -> str:
    """The source of an inline script in a policy."""
    text = text.encode() if isinstance(text, str) else text
    return f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"


def policy_of(page: str) -> dict[str, list[str]]:
    """The directives of a page's policy, which comes before every script."""
    found = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    assert len(found) == 1
    assert page.index("Content-Security-Policy") < page.index("<script")
    assert page.index('charset="utf-8"') < 1024, "where a browser looks for it"
    return {words[0]: words[1:] for words in map(str.split, found[0].split(";"))}


def packed(content: bytes) -> str:
    """Base 88 as viser writes it."""
    groups = [content[first : first + 4] for first in range(0, len(content), 4)]
    text = ""
    for group in groups:
        value = int.from_bytes(group, "big")
        digits = ""
        for _ in range(len(group) + 1):
            value, digit = divmod(value, len(ALPHABET))
            digits = ALPHABET[digit] + digits
        text += digits
    return text


@pytest.mark.parametrize("length", [5, 6, 7, 8])
def test_the_code_that_the_loader_adds_is_allowed(length: int):
    """Groups of four bytes and the rest, of any length."""
    for code in (b"let number = 1;", b"let number = 12;", b"let a = 1;", "let a = 'é';".encode()):
        style = b"a" * length
        content = zstandard.ZstdCompressor().compress(style + code)
        attributes = f'data-p="{packed(content)}" data-ss="{length}" data-cs="{len(code)}"'
        quoted = ALPHABET.replace("\\", "\\\\")
        loader = f'(async()=>{{const A="{quoted}";}})();'
        page = f'<html><head><meta charset="utf-8"><script {attributes}>{loader}</script></head>'
        assert policy_of(with_policy(page))["script-src"] == [
            source(loader),
            source(code),
            "'unsafe-eval'",
        ]


def test_every_script_of_a_page_is_allowed_by_its_hash():
    """No script of another text, and no address that is not of the page itself."""
    client = CLIENT.read_text(encoding="utf-8")
    page = with_panel(client, {"frames": ["</script>"]}, "title", "", ())
    policy = policy_of(page)
    scripts = re.findall(r"<script\b([^>]*)>(.*?)</script>", page, re.DOTALL)
    executed = [
        source(text) for attributes, text in scripts if "application/json" not in attributes
    ]
    assert len(executed) >= 2
    assert set(executed) < set(policy["script-src"])
    assert len(policy["script-src"]) == len(executed) + 2, "the code that is added, and eval"
    assert "'unsafe-inline'" not in policy["script-src"]
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == ["'none'"]
    others = {
        word
        for name in policy
        if name not in ("script-src", "default-src")
        for word in policy[name]
    }
    assert others == {"'none'", "'unsafe-inline'", "data:", "blob:"}
    assert not re.search(r"<[^>]*\son[a-z]+=", page[page.index('<details id="collide"') :])


def test_the_code_of_another_client_may_be_anything_of_the_page():
    page = '<html><head><meta charset="utf-8"></head><body><script>start()</script></body></html>'
    assert policy_of(with_policy(page))["script-src"] == ["'unsafe-inline'", "'unsafe-eval'"]
