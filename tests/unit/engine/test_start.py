"""What a scene of primitives does not pay for: kernels of meshes, heightfields, fields and reduction."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
import numpy as np
import collidecli
import collidecli.commands.run
builder = collidecli.ModelBuilder()
builder.add_ground_plane()
builder.add_shape_sphere(builder.add_body(), radius=1.0)
builder.add_shape_box(builder.add_body(), hx=1.0, hy=1.0, hz=1.0)
builder.add_shape_cylinder(builder.add_body())
pose = np.zeros((1, 1, 3, 7))
pose[..., 6] = 1.0
assert len(collidecli.collide(builder.finalize(), pose).distance)
parts = [f"collidecli.engine.{name}" for name in (
    "narrowphase.triangles", "narrowphase.sdf", "geometry.signed_distance", "contacts.reduction",
    "geometry.clearance", "geometry.mesh_nearest", "narrowphase.sub_pairs",
)]
print("LOADED", [name for name in sys.modules if name.startswith((*parts, "scipy"))])
"""


def test_a_scene_of_primitives_imports_no_collider_of_other_shapes():
    """Defining a kernel takes Warp some milliseconds, and there are hundreds of functions."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("LOADED []\n"), done.stdout


def test_a_quiet_run_imports_neither_a_window_library_nor_tables(tmp_path):
    code = "import sys; from collidecli.cli.main import main; main(sys.argv[1:])\n"
    code += "print([name for name in ('mujoco', 'glfw', 'rich', 'scipy', 'pxr') if name in sys.modules])"
    args = [
        "run",
        "samples/02_humanoid/humanoid.xml",
        "--frames",
        "0",
        "-o",
        str(tmp_path / "x.contacts.h5"),
        "--quiet",
    ]
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("['mujoco']\n"), done.stdout
