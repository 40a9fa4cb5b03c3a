"""Titles of columns in tables of joints: the joint, the quantity and the unit that a title names.

Nothing is taken from a title that is not in the tables below: another title is that of no joint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from collidecli.importers.recordings.joint_units import DEGREES, RADIANS

_UNIT_WORDS = {
    **dict.fromkeys(("rad", "rads", "radian", "radians"), RADIANS),
    **dict.fromkeys(("deg", "degs", "degree", "degrees", "°"), DEGREES),
    **dict.fromkeys(("m", "meter", "meters", "metre", "metres"), "m"),
    **dict.fromkeys(("cm", "centimeter", "centimeters", "centimetres"), "cm"),
    **dict.fromkeys(("mm", "millimeter", "millimeters", "millimetres"), "mm"),
}
TIME_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(
        ("ms", "msec", "msecs", "millis", "millisec", "millisecond", "milliseconds"), 1e-3
    ),
    **dict.fromkeys(("us", "µs", "usec", "usecs", "micros", "microsec", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanos", "nanosec", "nanosecs", "nanoseconds"), 1e-9),
}
_TIME_WORDS = {"time", "times", "t", "timestamp", "timestamps", "stamp", "elapsed", "sim"}
_INDEX_TITLES = {"", "frame", "index", "idx", "step", "row", "frame_index", "unnamed: 0"}
"""Titles of running numbers, which are not used; pandas writes the last."""
_POSITION_WORDS = {"q", "qpos", "pos", "position", "positions", "angle", "angles", "dof", "value"}
_PLACE_WORDS = {"joint", "joints", "state", "states", "observation", "robot"}
"""Words that a title may have beside a joint's name, and that name no quantity."""
_MEASURED_WORDS = {"meas", "measured", "actual", "act", "feedback", "fb", "obs", "observed"}
_COMMAND_WORDS = {
    *("cmd", "command", "commands", "commanded", "target", "targets", "desired", "des", "ref"),
    *("reference", "setpoint", "goal", "action", "actions"),
    *("ctrl", "control", "controls"),
}
_OTHER_WORDS = {
    *("vel", "velocity", "velocities", "qd", "dq", "qvel", "qdot", "speed", "rate"),
    *("acc", "accel", "acceleration", "qdd", "ddq", "qacc"),
    *("eff", "effort", "efforts", "torque", "torques", "tau", "force", "current", "temp"),
    *("forces", "currents", "accelerations", "speeds"),
    *("temperature", "voltage", "error", "err", "power", "load", "stiffness", "damping"),
}
_OTHER_UNITS = re.compile(
    r"(rad|deg|°|m|cm|mm)/s([\^]?2|²)?|n|nm|n·m|n\*m|a|ma|v|w|°?c|%|rpm|kg", re.IGNORECASE
)
_BRACKETS = re.compile(r"^(.*?)[\s_]*[\[(]([^\])]*)[\])]$")
_BREAKS = re.compile(r"[\s_./:\-]+")
_BREAK = "_./:- "
POSITION = "position"
COMMAND = "command"
OTHER = "other"


@dataclass(frozen=True)
class JointTitle:
    """What a title says of a joint. name: the scene's. quantity: `POSITION`, `COMMAND`, or `OTHER`,
    which is no position. unit: a key of ANGLE_UNITS or LENGTH_UNITS, another text in brackets, or
    "" for none."""

    name: str
    quantity: str = POSITION
    unit: str = ""


@dataclass(frozen=True)
class RootTitle:
    """What a title says of a pose. prefix: what stands before; columns of a pose have one. kind:
    "position", "quaternion", "angle", or "rotation", which may be either. axis: x, y, z or w."""

    prefix: str
    kind: str
    axis: str
    unit: str = ""


def joint_title(title: str, names: Iterable[str]) -> JointTitle | None:
    """What a title says of a joint; None where it names none.

    names: of the scene's joints. A title is a name, or the longest name with words of the tables
    above before and behind it, apart from it by one of `_ . / : -` or a space.
    """
    if title in names:
        return JointTitle(title)
    text, unit = _without_brackets(title)
    quantity = OTHER if _OTHER_UNITS.fullmatch(unit) else POSITION
    unit = _UNIT_WORDS.get(unit.lower(), unit)
    for name in sorted(names, key=len, reverse=True):
        start = text.find(name)
        while start >= 0:
            words = _words_beside(text, start, len(name))
            if words is not None:
                units = [_UNIT_WORDS[word] for word in words if word in _UNIT_WORDS]
                return JointTitle(name, _quantity(words, quantity), unit or "".join(units[:1]))
            start = text.find(name, start + 1)
    return None


def _words_beside(text: str, start: int, length: int) -> list[str] | None:
    """The known words of a title before and behind a joint's name; None where there are others."""
    before = text[:start]
    behind = text[start + length :]
    if (before and before[-1] not in _BREAK) or (behind and behind[0] not in _BREAK):
        return None
    words = [word.lower() for word in _BREAKS.split(f"{before} {behind}") if word]
    known = (
        _POSITION_WORDS
        | _PLACE_WORDS
        | _MEASURED_WORDS
        | _COMMAND_WORDS
        | _OTHER_WORDS
        | _UNIT_WORDS.keys()
    )
    return words if set(words) <= known else None


def _quantity(words: list[str], otherwise: str) -> str:
    if set(words) & _OTHER_WORDS:
        return OTHER
    return COMMAND if set(words) & _COMMAND_WORDS else otherwise


def is_position(title: str) -> bool:
    """Whether no word and no unit of a title names another quantity than a position, or a
    command; for a description without a scene."""
    words = [word.lower() for word in _BREAKS.split(title) if word]
    unit = _without_brackets(title)[1]
    others = _OTHER_WORDS | _COMMAND_WORDS
    return not (set(words) & others or _OTHER_UNITS.fullmatch(unit))


def is_decorated(title: str) -> bool:
    """Whether a title is more than a name: it ends or begins with a quantity, or has a unit."""
    words = [word.lower() for word in _BREAKS.split(title) if word]
    ends = {*words[:1], *words[-1:]}
    told = _POSITION_WORDS | _MEASURED_WORDS | _COMMAND_WORDS | _OTHER_WORDS | _UNIT_WORDS.keys()
    return bool(_without_brackets(title)[1]) or (len(words) > 1 and bool(ends & told))


def time_factor(title: str) -> float | None:
    """Seconds of a unit of a column of times, 1 where it names no unit; None for another title."""
    text, unit = _without_brackets(title)
    words = [word.lower() for word in _BREAKS.split(text) if word]
    units = [word for word in words if word in TIME_UNITS]
    if not words or len(units) > 1 or not set(words) <= _TIME_WORDS | TIME_UNITS.keys():
        return None
    if not set(words) & _TIME_WORDS and (unit or len(words) > 1 or len(words[0]) < len("sec")):
        return None
    if unit:
        return TIME_UNITS.get(unit.lower())
    return TIME_UNITS[units[0]] if units else 1.0


def are_parts_of_a_time(whole: str, part: str) -> bool:
    """Whether one title is of whole seconds and the other of what a clock has beyond them: equal
    words, such as `stamp`, beside a unit of one second and a smaller one."""
    if time_factor(whole) != 1.0 or time_factor(part) not in (1e-3, 1e-6, 1e-9):
        return False
    beside, others = (
        [word.lower() for word in _BREAKS.split(_without_brackets(title)[0]) if word]
        for title in (whole, part)
    )
    return [w for w in beside if w not in TIME_UNITS] == [w for w in others if w not in TIME_UNITS]


def is_index(title: str) -> bool:
    """Whether a column has running numbers, which no reader uses."""
    return title.lower() in _INDEX_TITLES


_ANGLES = {"roll": "x", "pitch": "y", "yaw": "z"}
_KIND_WORDS = {
    **dict.fromkeys(("p", "pos", "position", "t", "trans", "translate", "translation"), POSITION),
    **dict.fromkeys(("q", "quat", "quaternion"), "quaternion"),
    **dict.fromkeys(("euler", "rpy", "angle"), "angle"),
    **dict.fromkeys(("r", "rot", "rotate", "rotation", "orientation"), "rotation"),
}
_ROOT_WORDS = {
    *("root", "base", "pelvis", "hips", "trunk", "torso", "chassis", "robot", "body", "free"),
    *("floating", "freejoint", "freeflyer", "joint", "link", "frame", "world", "global", "pose"),
    *("odom", "state", "states", "observation"),
} | _MEASURED_WORDS
"""Words before the axes of a root's pose; those of other bodies, as grippers, are not among
them."""
_AXIS = re.compile(rf"({'|'.join(sorted(_KIND_WORDS, key=len, reverse=True))})?([wxyz])")


def root_title(title: str) -> RootTitle | None:
    """What a title says of a pose; None where it names no axis."""
    text, unit = _without_brackets(title)
    words = [word for word in _BREAKS.split(text) if word]
    if len(words) > 1 and words[-1].lower() in _UNIT_WORDS and not unit:
        unit = words.pop()
    if not words:
        return None
    unit = _UNIT_WORDS.get(unit.lower(), unit)
    last = words.pop().lower()
    before = words[-1].lower() if words else ""
    if last in _ANGLES:
        words = words[:-1] if _KIND_WORDS.get(before) in ("angle", "rotation") else words
        return RootTitle("_".join(words), "angle", _ANGLES[last], unit)
    found = _AXIS.fullmatch(last)
    if found is None:
        return None
    kind = _KIND_WORDS.get(found[1] or before, POSITION)
    if not found[1] and before in _KIND_WORDS:
        words.pop()
    return RootTitle("_".join(words), kind, found[2], unit)


def is_named(prefix: str, names: Iterable[str]) -> bool:
    """Whether the text that the columns of a pose begin with is one of these names."""
    return prefix in {"_".join(_BREAKS.split(name)) for name in names}


def is_of_root(prefix: str) -> bool:
    """Whether a pose whose columns begin with this text is that of a root: by known words alone, or
    without any."""
    return {word for word in _BREAKS.split(prefix.lower()) if word} <= _ROOT_WORDS


def _without_brackets(title: str) -> tuple[str, str]:
    """A title and the unit that it has in brackets at its end, "" without one. A number in brackets
    is part of the title."""
    found = _BRACKETS.fullmatch(title)
    if found is None or found[2].strip().isdigit() or not found[1].strip():
        return title, ""
    return found[1].strip(), found[2].strip()
