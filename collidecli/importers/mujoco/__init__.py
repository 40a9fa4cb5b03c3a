"""Importer of MJCF, URDF and SRDF with MuJoCo's compiler; `scene.add_mjcf` is the entry point."""

import os

from collidecli.engine.runtime.owned_process import is_owned

if is_owned():
    # Nothing is rendered. Otherwise MuJoCo imports a window library, which starts another
    # interpreter: 60 to 90 ms.
    os.environ.setdefault("MUJOCO_GL", "disable")
