"""Links of a URDF in the order of their tree, with links of equal names resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from collidecli.errors import InputError
from collidecli.importers.mujoco.urdf.elements import UrdfElement
from collidecli.importers.mujoco.urdf.free_names import free_name
from collidecli.wording import did_you_mean, first_and_count

WORLD = "world"
"""The root link of this name is MuJoCo's world."""


@dataclass
class Link:
    """A link: its element, the name of its body, and its joint and parent, None for a root.

    children: links with a joint to it, in the order of the joints.
    """

    element: UrdfElement
    name: str
    joint: UrdfElement | None = None
    parent: Link | None = None
    children: list[Link] = field(default_factory=list)

    @property
    def is_world(self) -> bool:
        return self.parent is None and self.element.text("name") == WORLD


def links_of(robot: UrdfElement) -> list[Link]:
    """The links of a robot, each after its parent: roots in their order, below each its children.

    Raises InputError for a joint to an unknown link, a link with two joints to parents, joints that
    form a loop, and links of equal names that differ in collision elements and that a joint names.
    A link `world` that is no root gets a number, with a warning. A parent link `world` that the
    robot does not have is the world, as in Drake, with a warning.
    """
    joints = robot.children_of("joint")
    links = _named_links(robot, joints)
    _add_world(robot, joints, links)
    for joint in joints:
        parent = _end(joint, "parent", links)
        child = _end(joint, "child", links)
        if child.joint is not None:
            what = f"link '{child.name}' has two parents, by the joints in lines"
            what += f" {child.joint.line} and {joint.line}"
            fix = "remove one: a loop is no tree, and URDF describes trees"
            raise InputError(what, joint.where, fix)
        child.joint = joint
        child.parent = parent
        parent.children.append(child)
    ordered = _in_tree_order(list(links.values()), robot)
    for link in ordered:
        # MuJoCo's world has this name.
        if link.name == WORLD and not link.is_world:
            link.name = free_name(f"{WORLD}#1", links)
            what = f"link '{WORLD}' in line {link.element.line} is no root, and is '{link.name}'"
            robot.notes.append(f"{what}: '{WORLD}' is the name of the world")
    return ordered


def _named_links(robot: UrdfElement, joints: Sequence[UrdfElement]) -> dict[str, Link]:
    """A link for each name. Of links of equal names that collide alike the first one that collides
    stays; others get a number where no joint names them. Each causes a warning."""
    same: dict[str, list[UrdfElement]] = {}
    for element in robot.children_of("link"):
        same.setdefault(element.text("name"), []).append(element)
    named = {
        end.values.get("link") for joint in joints for end in joint.children if end.name in _ENDS
    }
    links = {name: Link(elements[0], name) for name, elements in same.items()}
    dropped: list[str] = []
    for name, elements in same.items():
        if len(elements) == 1:
            continue
        colliding = [element for element in elements if element.children_of("collision")]
        if len({_collisions(element) for element in colliding}) <= 1:
            links[name] = Link((colliding or elements)[0], name)
            dropped.append(f"'{name}'")
            continue
        lines = " and ".join(str(element.line) for element in elements)
        if name in named:
            what = f"the links '{name}' in lines {lines} differ, and a joint names one of them"
            raise InputError(what, robot.location, "give each a name of its own")
        for number, element in enumerate(elements[1:], 1):
            new = free_name(f"{name}#{number}", links)
            links[new] = Link(element, new)
        robot.notes.append(f"links '{name}' in lines {lines}: all but the first get a number")
    if dropped:
        robot.notes.append(f"link {first_and_count(dropped)} is given twice, and is taken once")
    return links


_ENDS = ("parent", "child")


def _add_world(robot: UrdfElement, joints: Sequence[UrdfElement], links: dict[str, Link]) -> None:
    """Adds a link `world` where a joint has it as its parent and the robot has no such link."""
    parents = {end.values.get("link") for joint in joints for end in joint.children_of("parent")}
    if WORLD not in parents or WORLD in links:
        return
    element = UrdfElement("link", {"name": WORLD}, robot.line, robot.location, robot.notes)
    robot.children.append(element)
    links[WORLD] = Link(element, WORLD)
    robot.notes.append(
        f"a joint's parent is the link '{WORLD}', which the robot does not have: it is the world"
    )


def _end(joint: UrdfElement, end: str, links: dict[str, Link]) -> Link:
    """The link at an end of a joint."""
    element = joint.child(end)
    if element is None:
        raise InputError(f"has no <{end}>", joint.where, "name the link")
    name = element.text("link")
    if name not in links:
        what = f"names the {end} link '{name}', which the robot does not have"
        raise InputError(what, joint.where, did_you_mean(name, links, "add the link"))
    return links[name]


def _collisions(link: UrdfElement) -> tuple[object, ...]:
    return tuple(element.content() for element in link.children_of("collision"))


def _in_tree_order(links: list[Link], robot: UrdfElement) -> list[Link]:
    pending = [link for link in reversed(links) if link.parent is None]
    ordered: list[Link] = []
    while pending:
        link = pending.pop()
        ordered.append(link)
        pending += reversed(link.children)
    if len(ordered) < len(links):
        reached = {link.name for link in ordered}
        lost = [f"'{link.name}'" for link in links if link.name not in reached]
        what = f"the joints of link {first_and_count(lost)} form a loop"
        raise InputError(what, robot.location, "a robot's joints lead from one root to each link")
    return ordered
