"""Declaration of a sensor of contacts, distances or positions, whichever format it is read from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from collidecli.scene.poses import IDENTITY_POSE
from collidecli.scene.sensor_volumes import Volume

CONTACT = "contact"
"""Kind of a sensor of contacts of two sides."""
DISTANCE = "distance"
"""Kind of a sensor of the least distance of two sides."""
INSIDE = "inside"
"""Kind of a sensor of a point in a volume."""
POSITION = "position"
"""A region selects contacts by the middle of the two witness points."""
RAY = "ray"
"""A region selects contacts by the half-line from the middle of the two witness points away from
the sensing shape."""
OWN_POINT = "own point"
"""A region selects contacts by the witness point on the sensing shape."""
EACH_BODY = "body"
EACH_SHAPE = "shape"
ONE_OF_EACH = (EACH_BODY, EACH_SHAPE)
"""What a sensor may have a column for, in place of one for all of its first side."""


@dataclass(frozen=True)
class Side:
    """Shapes of one side of a sensor.

    shapes: exact paths, None for every shape. patterns: of paths of shapes or bodies, which must
    have a match; they add to `shapes` if that is not None. option: place of the patterns in the
    file, for messages.
    """

    shapes: Sequence[str] | None = None
    patterns: Sequence[str] = ()
    option: str = ""

    @property
    def is_any(self) -> bool:
        """Whether every shape is selected."""
        return self.shapes is None and not self.patterns


@dataclass(frozen=True)
class Placement:
    """A frame that moves with a body. body: path, "" for the world. pose: in the body, x y z qx qy
    qz qw."""

    body: str = ""
    pose: tuple[float, ...] = tuple(IDENTITY_POSE)


@dataclass(frozen=True)
class Region:
    """A volume that selects contacts. test: POSITION, RAY or OWN_POINT. placement: of its frame;
    None is the frame of the sensing shape's body in each contact, moved by `pose`."""

    volume: Volume
    test: str
    placement: Placement | None = None
    pose: tuple[float, ...] = tuple(IDENTITY_POSE)


@dataclass(frozen=True)
class Sensor:
    """A sensor as declared.

    name: of its column. kind: CONTACT, DISTANCE or INSIDE. declared: word of the format, such as
    "touch". first, second: sides; the normal is from the first to the second. region: of a CONTACT
    sensor, or the volume of an INSIDE sensor. point: of an INSIDE sensor, the origin of its frame.
    slots: number of columns, the nearest contacts in order. tangent: whether the contact's tangent
    is declared. each: "", or one of ONE_OF_EACH. filters: further second sides, each with columns
    of its own. where: for messages.
    """

    name: str
    kind: str
    declared: str
    first: Side = field(default_factory=Side)
    second: Side = field(default_factory=Side)
    region: Region | None = None
    point: Placement | None = None
    slots: int = 1
    tangent: bool = False
    each: str = ""
    filters: Sequence[tuple[str, Side]] = ()
    where: str = ""


Chosen = Callable[[str], bool]
"""Whether a sensor of a name is chosen."""


def any_sensor(name: str) -> bool:
    """Chooses every sensor."""
    return True


@dataclass(frozen=True)
class DeclaredSensors:
    """Sensors of a scene or a file. notes: of those that are chosen, what is given in
    place of a declared quantity, and which sensors are not of contacts. refused: reason by the
    name of each that cannot be evaluated."""

    sensors: tuple[Sensor, ...] = ()
    notes: tuple[str, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)
