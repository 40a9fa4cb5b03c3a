"""`check.py` of the page on CI, with tables that differ."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.doc_examples import FENCE

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "ci.md"


def check(folder: Path, was: dict[str, str], now: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """check.py with tables of these contents by recording."""
    (script,) = (
        body for _, language, body in FENCE.findall(PAGE.read_text(encoding="utf-8")) if "read_parquet" in body
    )
    (folder / "check.py").write_text(script, encoding="utf-8")
    for name, contents in (("was", was), ("now", now)):
        (folder / name).mkdir()
        rows = [
            {"job": "j", "motion": f"/{name}/demos/{motion}.h5", "demo": "", "content_sha256": content, "contacts": 7,
             "file": f"{name}/{content}.h5"}
            for motion, content in contents.items()
        ]  # fmt: skip
        for row in rows:
            (folder / row["file"]).write_text(row["content_sha256"])
        pd.DataFrame(rows).to_parquet(folder / f"{name}.parquet")
    words = [sys.executable, "check.py", "was.parquet", "now.parquet"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def test_equal_tables_are_counted(tmp_path):
    done = check(tmp_path, {"a": "0", "b": "1"}, {"b": "1", "a": "0"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "equal: 2 recordings\n", "")
    assert not (tmp_path / "different").exists()


def test_differences_are_listed_and_their_files_copied(tmp_path):
    done = check(tmp_path, {"equal": "0", "edited": "1", "old": "2"}, {"equal": "0", "edited": "3", "new": "4"})
    assert (done.returncode, done.stderr) == (1, "")
    for name in ("edited", "old", "new"):
        assert f"demos/{name}.h5" in done.stdout
    assert "equal" not in done.stdout
    assert "7.0" not in done.stdout, "counts are whole numbers"
    assert sorted(path.name for path in (tmp_path / "different").iterdir()) == ["3.h5", "4.h5"]
