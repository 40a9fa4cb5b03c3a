"""collide cache, and the options that say where the cache is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from collidecli.cli import main as cli
from collidecli.storage.field_cache import FieldCache


@pytest.fixture
def filled(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    cache = FieldCache(str(tmp_path / "here"))
    for key in ("aa", "bb"):
        cache.save(key, {"values": np.arange(300.0)})
    return tmp_path / "here"


def result(capsys, *words: str) -> dict:
    assert cli.main(["cache", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_show_and_clear(filled, capsys):
    shown = result(capsys, "--cache-dir", str(filled))
    assert shown["schema"] == "collide.cache/1"
    assert sorted(entry["key"] for entry in shown["entries"]) == ["aa", "bb"]
    assert shown["bytes"] == sum(path.stat().st_size for path in filled.rglob("*.sdf")) > 4800
    assert shown["limit"] == 1 << 30
    assert len(result(capsys, "clear", "--cache-dir", str(filled))["removed"]) == 2
    assert result(capsys, "--cache-dir", str(filled))["entries"] == []


def test_in_words(filled, capsys):
    assert cli.main(["cache", "--cache-dir", str(filled)]) == 0
    out = capsys.readouterr().out
    assert "2 signed distance fields" in out
    assert "of 1 GiB" in out
    assert cli.main(["cache", "clear", "--cache-dir", str(filled)]) == 0
    assert "2 signed distance fields removed" in capsys.readouterr().out


def test_hulls_are_counted(filled, capsys):
    FieldCache(str(filled)).save("hull-cc", {"values": np.arange(3.0)})
    assert cli.main(["cache", "--cache-dir", str(filled)]) == 0
    out = capsys.readouterr().out
    assert "2 signed distance fields, 1 convex hull," in out
    assert "convex hull" in out


def test_variable_and_file_say_where(filled, capsys, monkeypatch):
    monkeypatch.setenv("COLLIDE_CACHE_DIR", str(filled))
    assert len(result(capsys)["entries"]) == 2
    monkeypatch.delenv("COLLIDE_CACHE_DIR")
    Path("collide.toml").write_text('cache-dir = "here"\ncache-limit = "2MiB"\n')
    shown = result(capsys)
    assert (len(shown["entries"]), shown["limit"]) == (2, 2 << 20)
    assert result(capsys, "--cache-limit", "0B")["limit"] == 0


def test_wrong_words(filled, capsys):
    assert cli.main(["cache", "burn"]) == 2
    assert "burn" in capsys.readouterr().err
    assert cli.main(["cache", "--cache-limit", "much"]) == 2
    assert "memory size" in capsys.readouterr().err
