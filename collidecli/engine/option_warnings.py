"""Warnings of options that are given and have no effect on the contacts of a scene."""

from __future__ import annotations

from collidecli.scene.hydroelastic import HydroShapes
from collidecli.scene.model import Model
from collidecli.scene.option_values import DEFAULT_RESOLUTION, DEFAULT_STIFFNESS
from collidecli.scene.options import ContactOptions
from collidecli.scene.particles import LOOSE

NEWTON = {
    "buffer_fraction": "buffers have the exact size",
    "margin_contact_area": "only overlapping shapes have a contact surface",
}
"""Options of Newton that cannot matter here, and why."""


def no_effect_notes(model: Model, options: ContactOptions, hydro: HydroShapes) -> tuple[str, ...]:
    """A warning for each option of hydroelastic contacts and of particles that is given and has no
    effect."""
    notes = [(name, why) for name, why in NEWTON.items() if getattr(options, name) is not None]
    if options.hydro_reduce and not options.reduce_contacts:
        matched = ("normal_matching", "moment_matching", "anchor_contact")
        why = "reduced hydroelastic contacts have the exact total force"
        notes += [(name, why) for name in matched if getattr(options, name)]
    if not hydro.has_pairs and options.hydro != "all":
        unmarked = "the scene marks no two shapes that form a hydroelastic pair"
        why = "hydro is off" if options.hydro == "off" else unmarked
        given = {
            "hydro_stiffness": options.hydro_stiffness != DEFAULT_STIFFNESS,
            "hydro_resolution": options.hydro_resolution != DEFAULT_RESOLUTION,
            "hydro_surface": options.writes_surface,
            "hydro_reduce": options.hydro_reduce,
        }
        notes += [(name, why) for name, is_given in given.items() if is_given]
    particles = model.particles
    if options.self_contacts and all(kind == LOOSE for kind in particles.kind):
        notes.append(("self_contacts", "the scene has no cable, no cloth and no soft body"))
    texts = [f"{name} has no effect: {why}" for name, why in notes]
    if options.candidates_only and len(particles):
        texts.append("particles have no candidates: /candidates has pairs of shapes alone")
    return tuple(texts)
