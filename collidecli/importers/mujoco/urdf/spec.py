"""A URDF as a MuJoCo spec."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import mujoco

from collidecli.errors import InputError
from collidecli.importers.mujoco.obsolete_settings import (
    refuses_attribute,
    removal_note,
    without_obsolete,
)
from collidecli.importers.mujoco.urdf.elements import UrdfElement, read_elements
from collidecli.importers.mujoco.urdf.geometries import IDENTITY, GeometryReader, origin_of
from collidecli.importers.mujoco.urdf.inertials import set_inertial
from collidecli.importers.mujoco.urdf.joint_names import joint_names
from collidecli.importers.mujoco.urdf.joints import add_joint, add_mimic
from collidecli.importers.mujoco.urdf.links import Link, links_of
from collidecli.importers.mujoco.urdf.visual_elements import make_visuals_collide
from collidecli.wording import first_and_count

_SETTINGS = ("compiler", "option", "size")
"""Elements of `<mujoco>` that a URDF may have."""
_COMPILER_ERRORS = (ValueError, mujoco.FatalError, RuntimeError)


def urdf_spec(
    text: bytes,
    location: str,
    visual_patterns: Sequence[str] = (),
    *,
    strict: bool = False,
    visuals_left_out: Collection[str] = (),
) -> tuple[mujoco.MjSpec, list[str]]:
    """The spec of a URDF with its links, collision elements and joints, and warnings.

    Visual elements are in it where `<compiler discardvisual="false">` keeps them. Content that
    affects no contact and cannot be read causes a warning. visual_patterns,
    visuals_left_out: see `make_visuals_collide`; () for none. strict: such content is refused, for
    simulation. Raises InputError with the line for other content that cannot be read.
    """
    notes: list[str] = []
    robot = read_elements(text, location, notes)
    if visual_patterns:
        make_visuals_collide(robot, visual_patterns, visuals_left_out)
    spec = _settings(robot, strict)
    links = links_of(robot)
    bodies = _add_bodies(spec, links)
    # Names and meshes are numbered in the order of the file, not of the tree.
    place = {id(element): number for number, element in enumerate(robot.children)}
    _add_contents(spec, sorted(links, key=lambda link: place[id(link.element)]), bodies, strict)
    jointed = [link for link in links if link.joint is not None]
    _add_joints(spec, sorted(jointed, key=lambda link: place[id(link.joint)]), bodies, strict)
    return spec, notes


def _settings(robot: UrdfElement, strict: bool) -> mujoco.MjSpec:
    """An empty spec with the settings of `<mujoco>` and MuJoCo's defaults for URDF."""
    own = robot.child("mujoco")
    sections = [] if own is None else [child for child in own.children if child.name in _SETTINGS]
    text = f"<mujoco>{''.join(map(_xml, sections))}</mujoco>"
    if not strict:
        text = _current(text, robot.notes)
    try:
        spec = mujoco.MjSpec.from_string(text)
    except _COMPILER_ERRORS as error:
        what = f"MuJoCo cannot read <mujoco>: {' '.join(str(error).split())}"
        raise InputError(what, robot.location, "correct or remove it") from error
    visuals = [section.values.get("discardvisual") for section in sections]
    spec.compiler.discardvisual = "false" not in visuals
    spec.compiler.degree = False
    spec.modelname = robot.text("name", "") or spec.modelname
    return spec


def _current(text: str, notes: list[str]) -> str:
    """A text of settings; where MuJoCo no longer reads some that affect no contact, without these
    and with a note."""
    try:
        mujoco.MjSpec.from_string(text)
    except _COMPILER_ERRORS as error:
        if refuses_attribute(" ".join(str(error).split())):
            current, names = without_obsolete(text.encode())
            if names:
                notes.append(removal_note(names, mujoco.__version__))
                return current.decode()
    return text


def _xml(element: UrdfElement) -> str:
    from xml.sax.saxutils import quoteattr  # imports http and ssl: 9 ms of each run, MJCF's too

    attributes = "".join(f" {name}={quoteattr(value)}" for name, value in element.values.items())
    inside = "".join(map(_xml, element.children))
    return f"<{element.name}{attributes}>{inside}</{element.name}>"


def _add_bodies(spec: mujoco.MjSpec, links: Sequence[Link]) -> dict[str, mujoco.MjsBody]:
    """The body of each link, by the link's name, at the origin of its joint."""
    bodies: dict[str, mujoco.MjsBody] = {}
    for link in links:
        if link.is_world:
            bodies[link.name] = spec.worldbody
            continue
        parent = spec.worldbody if link.parent is None else bodies[link.parent.name]
        position = [0.0, 0.0, 0.0]
        quaternion = IDENTITY
        if link.joint is not None:
            position, quaternion = origin_of(link.joint)
        bodies[link.name] = parent.add_body(name=link.name, pos=position, quat=quaternion)
    return bodies


def _add_contents(
    spec: mujoco.MjSpec, links: Sequence[Link], bodies: dict[str, mujoco.MjsBody], strict: bool
) -> None:
    """Adds geoms and inertias of links."""
    if not links:
        return
    notes = links[0].element.notes
    geometries = GeometryReader(spec, notes)
    incomplete: list[str] = []
    for link in links:
        geometries.add(link.element, bodies[link.name])
        if link.is_world:
            continue
        try:
            set_inertial(link.element, bodies[link.name])
        except InputError as error:
            if strict:
                raise
            incomplete.append(f"'{link.name}' ({error.what})")
    geometries.add_notes()
    if incomplete:
        notes.append(
            f"<inertial> of link {first_and_count(incomplete)} is not used, and affects no contact"
        )


def _add_joints(
    spec: mujoco.MjSpec, links: Sequence[Link], bodies: dict[str, mujoco.MjsBody], strict: bool
) -> None:
    """Adds the joints of links, and then what couples two of them."""
    names = joint_names(links)
    for link in links:
        assert link.joint is not None
        assert link.parent is not None
        add_joint(link.joint, names[link.name], bodies[link.name], link.parent.is_world, strict)
    for link in links:
        assert link.joint is not None
        add_mimic(link.joint, names[link.name], spec)
