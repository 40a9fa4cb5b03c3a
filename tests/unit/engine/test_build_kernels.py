"""The kernels that come with the package are those that a fresh compilation of the same sources gives, to the byte."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from collidecli.engine.runtime.kernel_cache import _files, archive_path
from collidecli.engine.runtime.warp_internals import has_v3

BUILD = """
import sys
from collidecli.engine import build_kernels
from collidecli.engine.runtime import carried_kernels
carried_kernels.FOLDER = sys.argv[1]  # an empty one: nothing is copied
build_kernels.main()
"""


@pytest.mark.slow
@pytest.mark.skipif(not has_v3(), reason="kernels come for Linux on a processor of x86-64-v3 alone")
def test_the_archive_has_what_an_empty_cache_compiles(tmp_path):
    variables = {**os.environ, "WARP_CACHE_PATH": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", BUILD, str(tmp_path)], env=variables, check=True)
    built = _files(str(next(tmp_path.glob("*.tar.xz"))))
    carried = _files(archive_path())
    objects = [name for name in built if name.endswith(".o")]
    assert len(objects) > 100
    different = [name for name in built if name in carried and built[name] != carried[name]]
    assert not different
    missing = [name for name in objects if name not in carried]
    assert len(missing) < len(objects) / 2, "most of the carried kernels are of other sources: make kernels"
