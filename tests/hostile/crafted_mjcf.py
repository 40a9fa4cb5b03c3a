"""MJCF scenes made to be hard: includes without end, vast counts, files elsewhere."""

from collections.abc import Iterator

from tests.hostile.seeds import ROBOT_XML

GEOM = '<geom type="sphere" size="0.1"/>'


def world(inside: str, around: str = "") -> bytes:
    return f"<mujoco>{around}<worldbody>{inside}</worldbody></mujoco>".encode(
        "utf-8", "surrogateescape"
    )


def scenes(outside: str) -> Iterator[tuple[str, dict[str, bytes], tuple[str, ...]]]:
    """What it is, the files, and which of the folder outside it names."""
    for what, text in (*_counts(), *_values(), *_texts()):
        yield what, {"robot.xml": text}, ()
    for what, text, named in _leading_outside(outside):
        yield what, {"robot.xml": text}, named
    for what, old, new in CHANGES:
        yield (
            what,
            {"robot.xml": ROBOT_XML.replace(old, new).encode("utf-8", "surrogateescape")},
            (),
        )
    yield "includes in a ring", {"part.xml": b'<mujoco><include file="robot.xml"/></mujoco>'}, ()
    yield "an include of itself", {"part.xml": b'<mujoco><include file="part.xml"/></mujoco>'}, ()
    yield "a part that is empty", {"part.xml": b""}, ()
    yield "a part that is a picture", {"part.xml": b"\x89PNG\r\n\x1a\n" + bytes(100)}, ()
    chain = {
        f"p{k}.xml": f'<mujoco><include file="p{k + 1}.xml"/></mujoco>'.encode() for k in range(200)
    }
    chain |= {"p200.xml": b"<mujoco/>", "part.xml": b'<mujoco><include file="p0.xml"/></mujoco>'}
    yield "includes in a long chain", chain, ()


def _counts() -> Iterator[tuple[str, bytes]]:
    for depth in (50, 200, 5000, 100_000):
        yield f"{depth} bodies deep", world(f"<body>{GEOM}" * depth + "</body>" * depth)
    for count in ("2000", "2000000000", "-1", "99999999999999999999"):
        yield f"replicate {count}", world(f'<replicate count="{count}">{GEOM}</replicate>')
        for attribute in ("nuserdata", "nuser_geom", "nuser_body", "nkey", "nuser_joint"):
            yield f"size {attribute} {count}", world(GEOM, f'<size {attribute}="{count}"/>')
        yield (
            f"numeric {count}",
            world(GEOM, f'<custom><numeric name="n" size="{count}" data="1"/></custom>'),
        )
    yield (
        "replicate in replicate",
        world('<replicate count="1000">' * 4 + GEOM + "</replicate>" * 4),
    )
    for memory in ("1E", "100000G", "-1", "abc", "99999999999999999999"):
        yield f"memory {memory}", world(GEOM, f'<size memory="{memory}"/>')
    asset = '<hfield name="h" nrow="{0}" ncol="{0}" size="1 1 1 1"/>'
    picture = '<texture name="t" type="2d" builtin="flat" width="{0}" height="{0}"/>'
    for extent in ("2000", "20000", "100000", "2147483647", "-1"):
        yield f"heights {extent}", world(GEOM, f"<asset>{asset.format(extent)}</asset>")
        yield f"picture {extent}", world(GEOM, f"<asset>{picture.format(extent)}</asset>")
    flex = '<flexcomp name="f" type="grid" count="{0} {0} {0}" spacing="1 1 1" dim="3"/>'
    cable = (
        '<composite type="cable" count="{0} 1 1" curve="s"><geom type="capsule"'
        ' size="0.01"/></composite>'
    )
    for extent in ("1000", "100000", "2147483647", "-1"):
        yield f"flexcomp {extent}", world(flex.format(extent))
        yield f"cable {extent}", world(cable.format(extent))


def _values() -> Iterator[tuple[str, bytes]]:
    values = (
        "nan",
        "inf",
        "-inf",
        "1e308",
        "1e400",
        "-1",
        "0",
        "5e-324",
        "abc",
        "1 2 3 4 5 6 7 8 9",
        "",
        "9" * 5000,
    )
    for value in values:
        yield f"size {value[:20]}", world(f'<geom type="sphere" size="{value}"/>')
        yield f"place {value[:20]}", world(f'<body pos="{value} 0 0"><freejoint/>{GEOM}</body>')
        yield f"turn {value[:20]}", world(f'<body quat="{value} 0 0 0"><freejoint/>{GEOM}</body>')
        yield f"margin {value[:20]}", world(f'<geom type="sphere" size="1" margin="{value}"/>')
        yield f"gap {value[:20]}", world(f'<geom type="sphere" size="1" gap="{value}"/>')
        yield f"mask {value[:20]}", world(f'<geom type="sphere" size="1" contype="{value}"/>')
        yield f"timestep {value[:20]}", world(GEOM, f'<option timestep="{value}"/>')
        key = f'<keyframe><key time="{value}"/></keyframe>'
        yield f"key at {value[:20]}", world(f"<body><freejoint/>{GEOM}</body>", key)


def _texts() -> Iterator[tuple[str, bytes]]:
    yield "entities that double", (
        b'<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa">' + b"".join(
            b'<!ENTITY %c "%s">' % (98 + k, b"&%c;" % (97 + k) * 10) for k in range(9)
        ) + b']><mujoco model="&j;"><worldbody><geom size="1"/></worldbody></mujoco>')  # fmt: skip
    yield (
        "an entity outside",
        b'<!DOCTYPE m [<!ENTITY x SYSTEM "file:///etc/passwd">]><mujoco model="&x;"/>',
    )
    yield "elements nested deep", b"<mujoco>" + b"<worldbody>" * 50_000
    yield "an attribute of a megabyte", world(f'<geom name="{"n" * 1_000_000}" size="1"/>')
    yield (
        "100000 attributes",
        b"<mujoco " + b" ".join(b'a%d="1"' % k for k in range(100_000)) + b"/>",
    )
    yield "names twice", world('<geom name="a" size="1"/><geom name="a" size="1"/>')
    yield "a name that is not UTF-8", world('<geom name="\udcff\udcfe" size="1"/>')
    yield "a name that steers the terminal", world('<geom name="\x1b[2J" size="1"/>')
    yield "a zero byte", world('<geom name="a\0b" size="1"/>')
    yield (
        "another encoding",
        "<mujoco><worldbody><geom size='1'/></worldbody></mujoco>".encode("utf-16"),
    )
    yield "another root", b"<html><body>hello</body></html>"
    yield "nothing but spaces", b" " * 10_000
    yield (
        "a default class of itself",
        world(GEOM, '<default class="a"><default class="a"/></default>'),
    )
    yield "2000 geoms", world('<geom size="0.1" contype="0" conaffinity="0"/>' * 2000)


def _leading_outside(outside: str) -> Iterator[tuple[str, bytes, tuple[str, ...]]]:
    def include(target: str) -> bytes:
        return world(GEOM, f'<include file="{target}"/>')

    yield "an include of a text outside", include(f"{outside}/secret.txt"), ("secret.txt",)
    yield "an include of a scene outside", include(f"{outside}/secret.xml"), ("secret.xml",)
    yield "an include of a folder", include(outside), ()
    yield "an include of a device", include("/dev/zero"), ()
    yield "an include of a pipe", include("/dev/stdin"), ()
    yield "an include of nothing", include(""), ()
    yield "an include that climbs out", include("../" * 50 + "etc/passwd"), ("/etc/passwd",)
    yield "an include of a long name", include("x" * 100_000), ()
    shown = 'contype="0" conaffinity="0"'
    for kind, target in (
        ("text", f"{outside}/secret.txt"),
        ("device", "/dev/zero"),
        ("folder", outside),
    ):
        named = ("secret.txt",) if kind == "text" else ()
        for ending in ("stl", "obj", "msh"):
            asset = f'<asset><mesh name="m" file="{target}" content_type="model/{ending}"/></asset>'
            yield (
                f"a {ending} mesh that is a {kind}",
                world(f'<geom type="mesh" mesh="m" {shown}/>', asset),
                named,
            )
        picture = f'<asset><texture name="t" type="2d" file="{target}"/></asset>'
        yield f"a picture that is a {kind}", world(GEOM, picture), named
        heights = f'<asset><hfield name="h" file="{target}" size="1 1 1 1"/></asset>'
        yield f"heights that are a {kind}", world(GEOM, heights), named
    attach = '<asset><model name="m" file="robot.xml"/></asset>'
    yield "a scene attached to itself", world('<attach model="m" prefix="a"/>', attach), ()
    plugin = '<extension><plugin plugin="mujoco.none"/></extension>'
    yield "a plugin that is not there", world(GEOM, plugin), ()


CHANGES = (
    (
        "a mesh of one point",
        "<worldbody>",
        '<asset><mesh name="m" vertex="0 0 0"/></asset><worldbody>',
    ),
    ("a key of other length", 'qpos="0 0 0.4', 'qpos="0.4'),
    ("a key that is NaN", 'qpos="0 0 0.4', 'qpos="nan 0 0.4'),
    ("a key without rotation", "0.4 1 0 0 0", "0.4 0 0 0 0"),
    ("an exclude of nothing", 'body1="base"', 'body1="nothing"'),
    ("a pair with itself", 'geom2="floor"', 'geom2="ball"'),
    ("a motor of nothing", 'motor joint="hip"', 'motor joint="nothing"'),
    ("a sensor of nothing", 'jointpos joint="hip"', 'jointpos joint="nothing"'),
    ("a joint with a bad range", 'range="-1 1"', 'range="1 -1"'),
    ("a body in itself", '<body name="leg"', '<body name="base"'),
    ("a type of its own", 'type="box"', 'type="klein"'),
    ("an angle of its own", '<option timestep="0.01"/>', '<compiler angle="turn"/>'),
)
