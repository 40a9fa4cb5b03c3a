"""Modules that a run without a table, a tracker and a configuration file does not import."""

from __future__ import annotations

import subprocess
import sys

import pytest

RUN = """
import sys
from collidecli.cli.main import main
code = main(["run", *sys.argv[1].split(), "--frames", "0", "-o", sys.argv[3], "--quiet"])
unused = ("rich", "psutil", "numpy.ma", "fractions", "tomllib", "html", "xml.etree.ElementTree", "matplotlib", "scipy")
print(code, [name for name in (*unused, sys.argv[2], "collidecli.analysis.contact_tracking") if name in sys.modules])
"""


@pytest.mark.parametrize(
    ("inputs", "other"),
    [
        ("samples/02_humanoid/humanoid.xml -t samples/02_humanoid/motion.h5", "pxr"),
        ("samples/01_usd_pile/pile.usda", "mujoco"),
    ],
)
def test_a_run_imports_only_what_it_uses(tmp_path, inputs, other):
    command = [sys.executable, "-c", RUN, inputs, other, str(tmp_path / "out.contacts.h5")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.strip() == "0 []", done.stderr


def test_the_command_line_imports_no_library_before_a_verb():
    """Warp's built-in functions are deferred only where Warp is imported by a verb (`deferred_builtins`)."""
    libraries = "import sys, collidecli.cli.main; print([n for n in ('warp', 'numpy', 'h5py') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", libraries], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
