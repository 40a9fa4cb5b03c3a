"""USD scenes made to be hard: deep, endless, vast, or leading elsewhere."""

import io
import zipfile
from collections.abc import Iterator

from tests.hostile.crafted_arrays import DIRECTORY, archive, meshes
from tests.hostile.seeds import PILE_USDA

HEAD = '#usda 1.0\n(\n    defaultPrim = "World"\n    metersPerUnit = 1\n    upAxis = "Z"\n)\n'
COLLIDER = 'prepend apiSchemas = ["PhysicsCollisionAPI"]'
BODY = 'prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsRigidBodyAPI"]'


def world(inside: str, head: str = HEAD) -> bytes:
    # A property ends with its line.
    inside = inside.replace("{ ", "{\n").replace(" }", "\n}")
    return f'{head}def Xform "World"\n{{\n{inside}\n}}\n'.encode("utf-8", "surrogateescape")


def sphere(radius: str = "1", more: str = "", api: str = BODY) -> str:
    return f'def Sphere "s" ({api})\n{{\n double radius = {radius}\n {more}\n}}\n'


def nested(depth: int) -> str:
    return "".join(f'def Xform "x{k}" {{\n' for k in range(depth)) + sphere() + "}\n" * depth


def moved(values: str, kind: str = "double3", operation: str = "translate") -> str:
    name = f"xformOp:{operation}"
    return f'{kind} {name} = {values}\n uniform token[] xformOpOrder = ["{name}"]\n'


def scenes(outside: str) -> Iterator[tuple[str, dict[str, bytes], tuple[str, ...]]]:
    """What it is, the files, and which of the folder outside it names."""
    for what, text in _texts():
        yield what, {"pile.usda": text}, ()
    for what, text in meshes():
        yield what, {"pile.usda": world(text)}, ()
    for what, text, named in _leading_outside(outside):
        yield what, {"pile.usda": text}, named
    for what, old, new in CHANGES:
        yield (
            what,
            {"pile.usda": PILE_USDA.replace(old, new).encode("utf-8", "surrogateescape")},
            (),
        )
    yield "references in a ring", _ring("references"), ()
    yield "sublayers in a ring", _ring("subLayers"), ()
    yield "a part that is empty", {"part.usda": b""}, ()
    yield "a part that is a picture", {"part.usda": b"\x89PNG\r\n\x1a\n" + bytes(100)}, ()


VALUES = (
    "nan",
    "inf",
    "-inf",
    "1e308",
    "-1",
    "0",
    "5e-324",
    "1e400",
    '"x"',
    "[1, 2]",
    "None",
    "9" * 400,
)


def _with_value(value: str) -> Iterator[tuple[str, bytes]]:
    """Scenes with a value in the place of a number."""
    yield f"radius {value[:20]}", world(sphere(value))
    yield f"moved by {value[:20]}", world(sphere(more=moved(f"({value}, 0, 0)")))
    yield (
        f"scaled by {value[:20]}",
        world(sphere(more=moved(f"({value}, 1, 1)", operation="scale"))),
    )
    unit = HEAD.replace("metersPerUnit = 1", f"metersPerUnit = {value}")
    yield f"a unit of {value[:20]} m", world(sphere(), unit)
    rate = f"metersPerUnit = 1\n timeCodesPerSecond = {value}"
    motion = "double3 xformOp:translate.timeSamples = {0: (0,0,0), 1: (0,0,1)}\n"
    order = 'uniform token[] xformOpOrder = ["xformOp:translate"]\n'
    yield (
        f"rate {value[:20]}",
        world(sphere(more=motion + order), HEAD.replace("metersPerUnit = 1", rate)),
    )
    samples = f"double3 xformOp:translate.timeSamples = {{0: (0,0,0), {value}: (0,0,1)}}\n"
    yield f"time {value[:20]}", world(sphere(more=samples + order))
    yield f"gap {value[:20]}", world(sphere(more=f"float newton:contactGap = {value}"))
    yield f"group {value[:20]}", world(sphere(more=f"int newton:collision_group = {value}"))


def _large() -> Iterator[tuple[str, bytes]]:
    """Scenes with many of one thing."""
    samples = ", ".join(f"{k}: (0, 0, {k})" for k in range(100_000))
    order = 'uniform token[] xformOpOrder = ["xformOp:translate"]\n'
    yield (
        "100000 time samples",
        world(sphere(more=f"double3 xformOp:translate.timeSamples = {{{samples}}}\n{order}")),
    )
    many = "".join(
        f'def Sphere "s{k}" ({COLLIDER}) {{ double radius = 0.1 }}\n' for k in range(500)
    )
    yield "500 static colliders", world(many)
    yield (
        "a list of 100000 operations",
        world(sphere(more="uniform token[] xformOpOrder = [" + '"a",' * 100_000 + "]")),
    )
    yield "one operation many times", world(
        sphere(more='double3 xformOp:translate = (1e300, 0, 0)\n uniform token[] xformOpOrder = ['
               + ", ".join(['"xformOp:translate"'] * 50) + "]"))  # fmt: skip


def _texts() -> Iterator[tuple[str, bytes]]:
    for depth in (100, 1000, 3000):
        yield f"{depth} prims deep", world(nested(depth))
    for value in VALUES:
        yield from _with_value(value)
    yield from _large()
    yield "strings that do not end", HEAD.encode() + b'def Xform "' + b"x" * 100_000
    yield "a name twice", world(sphere() + sphere("2"))
    yield "a name that is not UTF-8", world('def Sphere "\udcff\udcfe" (' + BODY + ") {}")
    yield (
        "a name of 100000 letters",
        world(f'def Sphere "{"n" * 100_000}" ({BODY}) {{ double radius = 1 }}'),
    )
    yield (
        "text of 100000 open brackets",
        HEAD.encode() + b'def Xform "World" { double[] a = ' + b"[" * 100_000,
    )
    yield (
        "a dictionary nested deep",
        world(f"custom dictionary d = {'{ dictionary d = ' * 3000}{'}' * 3000}"),
    )
    yield (
        "a vast instancer",
        world(
            'def PointInstancer "i" { point3f[] positions = [(0,0,0)]\n int[] protoIndices ='
            f' [2147483647]\nrel prototypes = [</World/i/p>]\n def Sphere "p" ({COLLIDER}) {{}} }}'
        ),
    )
    yield (
        "an instancer of itself",
        world(
            'def PointInstancer "i" { point3f[] positions = [(0,0,0)]\n int[] protoIndices = [0]\n'
            "rel prototypes = [</World/i>] }"
        ),
    )


def _leading_outside(outside: str) -> Iterator[tuple[str, bytes, tuple[str, ...]]]:
    def part(target: str, how: str = "references") -> bytes:
        return world(sphere() + f'def "part" (prepend {how} = @{target}@</Part>) {{}}')

    yield "a reference to a file outside", part(f"{outside}/secret.usda"), ("secret.usda",)
    yield "a reference to a text outside", part(f"{outside}/secret.txt"), ("secret.txt",)
    yield "a reference to a folder", part(outside), ()
    yield "a reference to a device", part("/dev/zero"), ()
    yield "a reference to a pipe", part("/dev/stdin"), ()
    yield "a payload that is missing", part("./none.usda", "payload"), ()
    yield "a reference to a network", part("http://127.0.0.1:9/x.usda"), ()
    yield "a reference that climbs out", part("../" * 50 + "etc/passwd"), ()
    yield "a texture outside", world(sphere(more=f"asset inputs:file = @{outside}/secret.txt@")), ()
    yield (
        "a reference to itself",
        world(sphere() + 'def "again" (prepend references = </World>) {}'),
        (),
    )
    yield (
        "an inherit of itself",
        world(sphere() + 'def "again" (prepend inherits = </World/again>) {}'),
        (),
    )
    chain = "".join(
        f'def "c{k}" (prepend references = </World/c{k + 1}>) {{}}\n' for k in range(200)
    )
    yield "references in a long chain", world(chain + 'def "c200" { ' + sphere() + "}"), ()
    double = "".join(
        f'def "d{k}" {{ def "a" (prepend references = </World/d{k + 1}>) {{}}\n'
        f'def "b" (prepend references = </World/d{k + 1}>) {{}} }}\n'
        for k in range(9)
    )
    yield "references that double 9 times", world(double + 'def "d9" { ' + sphere() + "}"), ()
    relations = (
        'def PhysicsFixedJoint "j" { rel physics:body0 = </World/j>\n rel physics:body1 ='
        " </World/j> }"
    )
    yield "a joint of itself", world(sphere() + relations), ()
    members = "rel collection:colliders:includes = [</World/g.collection:colliders>]"
    group = f'def PhysicsCollisionGroup "g" {{ prepend {members} }}'
    yield "a collection of itself", world(sphere() + group), ()


def _ring(how: str) -> dict[str, bytes]:
    def one(other: str) -> bytes:
        if how == "subLayers":
            return world(
                sphere(),
                HEAD.replace("metersPerUnit = 1", f"metersPerUnit = 1\n subLayers = [@./{other}@]"),
            )
        return world(sphere() + f'def "other" (prepend references = @./{other}@) {{}}')

    return {"pile.usda": one("part.usda"), "part.usda": one("pile.usda")}


CHANGES = (
    ("a layer of version 9", "#usda 1.0", "#usda 9.9"),
    ("an axis of its own", 'token axis = "Z"', 'token axis = "\x1b[31mQ"'),
    ("an up axis of its own", 'upAxis = "Z"', 'upAxis = "W"'),
    ("a type of its own", "def Sphere", "def Klein_Bottle"),
    ("an API of its own", "PhysicsRigidBodyAPI", "NoSuchAPI"),
    ("no default prim", 'defaultPrim = "World"', 'defaultPrim = "Nothing"'),
    ("a variant that is not there", 'string size = "small"', 'string size = "vast"'),
    ("a joint to nothing", "physics:body1 = </World/ball>", "physics:body1 = </Nothing>"),
    ("a collider that is a list", "double radius = 0.2", "double[] radius = [0.2, 0.3]"),
    ("samples of another type", "0: (0, 0, 0.5)", '0: "up"'),
    ("samples out of order", "3: (0, 0, 0.1)", "-3: (0, 0, 0.1)"),
    (
        "a place that is no number",
        "xformOp:translate = (0.3, 0, 0.3)",
        "xformOp:translate = (nan, 0, 0)",
    ),
)


def packages(good: bytes, outside: str) -> Iterator[tuple[str, bytes]]:
    """usdz: archives of USD, which must be stored, not packed."""
    with zipfile.ZipFile(io.BytesIO(good)) as held:
        members = {name: held.read(name) for name in held.namelist()}

    yield "packed", archive(members, zipfile.ZIP_DEFLATED)
    yield (
        "a bomb",
        archive({**members, "big.usda": HEAD.encode() + b" " * (64 << 20)}, zipfile.ZIP_DEFLATED),
    )
    yield "names that lead out", archive({f"../../{name}": data for name, data in members.items()})
    part = f'def "p" (prepend references = @../../{outside}/secret.usda@) {{}}'
    yield "a scene that leads out", archive({"a.usda": world(part)})
    yield "no scene in it", archive({"readme.txt": b"hello"})
    yield "nothing in it", archive({})
    yield "a package in a package", archive({"a.usdz": good})
    yield "not aligned", archive(members)
    at = good.rindex(b"PK\x01\x02")
    for what, (offset, value) in DIRECTORY.items():
        yield (
            f"directory with another {what}",
            good[: at + offset] + value + good[at + offset + len(value) :],
        )
