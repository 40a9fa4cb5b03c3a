"""What options add to a parsed scene: a free joint of a URDF's root link, and a ground plane."""

from __future__ import annotations

import mujoco

from collidecli.errors import InputError
from collidecli.scene.option_values import GROUND

LEAST_MASS = 1e-6
"""MuJoCo refuses moving bodies without mass; masses affect no contact [kg, kg m²]."""


def add_floating_base(spec: mujoco.MjSpec, location: str, urdf: bool) -> None:
    """Adds a free joint to the root link of a URDF.

    Raises InputError for a scene that is not a URDF, a world with several links, and a root link
    that can move.
    """
    if not urdf:
        raise InputError(
            "--floating-base is for URDF scenes", location, "give the root body a <freejoint/>"
        )
    roots = spec.worldbody.bodies
    if len(roots) != 1:
        named = ", ".join(f"'{body.name}'" for body in roots[:5]) or "none"
        what = f"--floating-base needs one root link, and the world has {len(roots)}: {named}"
        raise InputError(what, location, "remove the option, or the other links")
    root = roots[0]
    if root.joints:
        raise InputError(
            f"the root link '{root.name}' can move already", location, "remove --floating-base"
        )
    root.add_freejoint()
    spec.compiler.boundmass = max(spec.compiler.boundmass, LEAST_MASS)
    spec.compiler.boundinertia = max(spec.compiler.boundinertia, LEAST_MASS)


def add_ground(spec: mujoco.MjSpec, location: str) -> None:
    """Adds an infinite plane at z = 0 to the world. Raises InputError for a scene with a geom of
    its name."""
    if spec.geom(GROUND) is not None:
        raise InputError(f"the scene has a geom '{GROUND}' already", location, "remove --ground")
    spec.worldbody.add_geom(
        name=GROUND,
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[0.0, 0.0, 1.0],
        contype=1,
        conaffinity=1,
    )
