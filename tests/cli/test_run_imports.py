"""Modules that a run without a table, a tracker and a configuration file does not import."""

from __future__ import annotations

import subprocess
import sys

import pytest

RUN = """
import sys
from collidecli.cli.main import main
code = main(["run", *sys.argv[1].split(), "--frames", "0", "-o", sys.argv[2], "--quiet"])
unused = ("rich", "psutil", "numpy.ma", "fractions", "tomllib", "html", "xml.etree.ElementTree", "matplotlib", "scipy")
print(code, [name for name in (*unused, "collidecli.analysis.contact_tracking") if name in sys.modules])
"""


@pytest.mark.parametrize(
    "inputs",
    ["samples/02_humanoid/humanoid.xml -t samples/02_humanoid/motion.h5", "samples/01_usd_pile/pile.usda"],
)
def test_a_run_imports_only_what_it_uses(tmp_path, inputs):
    command = [sys.executable, "-c", RUN, inputs, str(tmp_path / "out.contacts.h5")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.strip() == "0 []", done.stderr
