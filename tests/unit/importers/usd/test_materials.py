"""Physics materials of USD colliders: which one is bound, what it says, and what a pair's contacts
have of two."""

import pytest

import collidecli
from collidecli.importers.usd.scene import add_usd
from collidecli.importers.usd.stage import parse_physics
from collidecli.scene.materials import COMBINE_MODES, Material
from collidecli.scene.model import Model
from tests.support.usd_scenes import at, check_refused, load, sphere, write_usda

CENTIMETRES = 'metersPerUnit = 0.01\n kilogramsPerUnit = 10\n upAxis = "Z"'


def material(name: str, inside: str = "", apis: str = "PhysicsMaterialAPI") -> str:
    return f'def Material "{name}" (prepend apiSchemas = ["{apis}"]) {{\n{inside}\n}}\n'


def collider(name: str, inside: str = "", place: float = 0.0) -> str:
    """A sphere of radius 1 that is a body and that bindings may be on."""
    apis = '["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "MaterialBindingAPI"]'
    return sphere(name, f"{at(place, 0, 0)}{inside}", f"(prepend apiSchemas = {apis})")


def bound(target: str, purpose: str = ":physics", strength: str = "") -> str:
    meta = f'(bindMaterialAs = "{strength}")' if strength else ""
    return f"rel material:binding{purpose} = <{target}> {meta}"


def number(name: str, value: object) -> str:
    return f"float {name} = {value}"


def surface(model: Model, name: str) -> Material:
    (row,) = (k for k, path in enumerate(model.shapes.path) if path.rsplit("/", 1)[-1] == name)
    return model.shapes.material.row(row)


MATERIALS = (
    'def Scope "M" {\n'
    + material("Ice", number("physics:dynamicFriction", 0.125))
    + material("Rubber", number("physics:dynamicFriction", 0.75))
    + 'def Material "Paint" {\n}\n}\n'
)
GROUP = (
    'def Xform "{name}" (prepend apiSchemas = ["MaterialBindingAPI"]) {{\n{binding}\n{inside}\n}}\n'
)
BINDINGS = MATERIALS + (
    collider("none")
    + collider("physics", bound("/M/Ice"))
    + collider("all_purposes", bound("/M/Rubber", ""))
    + collider("both", bound("/M/Ice") + "\n" + bound("/M/Rubber", ""))
    + collider("paint", bound("/M/Paint", ""))
    + collider("paint_and_physics", bound("/M/Paint", "") + "\n" + bound("/M/Ice"))
    + collider("preview", bound("/M/Ice", ":preview"))
    + GROUP.format(
        name="weak",
        binding=bound("/M/Ice"),
        inside=collider("inherits")
        + collider("own_is_nearer", bound("/M/Rubber"))
        + collider("all_purposes_is_later", bound("/M/Rubber", ""))
        + GROUP.format(name="deeper", binding="", inside=collider("inherits_from_far")),
    )
    + GROUP.format(
        name="strong",
        binding=bound("/M/Ice", strength="strongerThanDescendants"),
        inside=collider("overruled", bound("/M/Rubber")),
    )
    + 'def Xform "collected" (prepend apiSchemas = ["MaterialBindingAPI", "CollectionAPI:few"]) {\n'
    + 'uniform token collection:few:expansionRule = "expandPrims"\nrel collection:few:includes ='
    " </collected/in>\n"
    + "rel material:binding:collection:physics:few = [</collected.collection:few>, </M/Rubber>]\n"
    + collider("in")
    + collider("out")
    + "}\n"
)
ICE = 0.125
RUBBER = 0.75
DEFAULT = 0.5
BOUND = dict.fromkeys(("none", "paint", "preview", "out"), DEFAULT)
BOUND |= dict.fromkeys(
    ("physics", "both", "paint_and_physics", "inherits", "inherits_from_far", "overruled"), ICE
)
BOUND |= {"all_purposes_is_later": ICE} | dict.fromkeys(
    ("all_purposes", "own_is_nearer", "in"), RUBBER
)


def test_which_material_is_bound(tmp_path):
    imported, model = load(tmp_path, BINDINGS)
    assert {name: surface(model, name).friction for name in BOUND} == BOUND
    # pxr's own physics parser, collider by collider; it looks at colliders that have the binding
    # API.
    parsed = parse_physics(imported.stage, imported.file, [])
    of_material = {"/M/Ice": ICE, "/M/Rubber": RUBBER}
    seen = 0
    for path, descriptor in parsed.shapes.items():
        theirs = [
            of_material[str(held)] for held in descriptor.materials if str(held) in of_material
        ]
        assert (theirs or [DEFAULT]) == [surface(model, path.rsplit("/", 1)[-1]).friction], path
        seen += len(theirs)
    assert seen == sum(value != DEFAULT for value in BOUND.values())
    assert not [w for w in imported.warnings if "has the material" in w]


def test_materials_that_pxr_passes_over_are_warned_of(tmp_path):
    bare = 'def Sphere "bare" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {\n}\n'
    text = MATERIALS + GROUP.format(name="G", binding=bound("/M/Ice"), inside=bare)
    imported, model = load(tmp_path, text)
    assert surface(model, "bare").friction == ICE
    assert not parse_physics(imported.stage, imported.file, []).shapes["/G/bare"].materials
    (warning,) = (w for w in imported.warnings if "has the material" in w)
    assert warning.startswith(
        "</G/bare>: has the material </M/Ice> though MaterialBindingAPI is not applied to it"
    )


def test_materials_that_are_not_there_are_warned_of(tmp_path):
    imported, model = load(tmp_path, collider("a", bound("/M/Gone")))
    assert surface(model, "a").friction == DEFAULT
    assert "</a>: the material binding names </M/Gone>, which does not exist" in imported.warnings


def test_values_over_time_are_warned_of(tmp_path):
    sampled = "float physics:dynamicFriction.timeSamples = {\n0: 0.25,\n1: 0.5\n}"
    imported, model = load(tmp_path, material("Melts", sampled) + collider("a", bound("/Melts")))
    assert surface(model, "a").friction == 0.25
    assert (
        "</Melts>: physics:dynamicFriction changes over time; its first value is used"
        in imported.warnings
    )


def test_numbers_of_a_material_are_in_si(tmp_path):
    values = {"dynamicFriction": 0.25, "staticFriction": 0.5, "restitution": 0.75}
    newton = {
        "torsionalFriction": 2,
        "rollingFriction": 4,
        "contactStiffness": 8,
        "contactDamping": 16,
    }
    newton |= {"contactFrictionGain": 32, "contactAdhesion": "-inf"}
    modes = {"friction": "multiply", "restitution": "max"}
    lines = [number(f"physics:{name}", value) for name, value in values.items()]
    lines += [number(f"newton:{name}", value) for name, value in newton.items()]
    lines += [
        f'uniform token physxMaterial:{name}CombineMode = "{mode}"' for name, mode in modes.items()
    ]
    full = "\n".join(lines)
    text = (
        material("Full", full)
        + material("Bare")
        + collider("a", bound("/Full"))
        + collider("b", bound("/Bare"))
    )
    _, model = load(tmp_path, text, header=CENTIMETRES)
    # Torsional and rolling friction are lengths; stiffness, damping and gain have the unit of mass
    # in them.
    stiff = {"contact_ke": 80.0, "contact_kd": 160.0, "contact_kf": 320.0}
    assert surface(model, "a") == Material(0.25, 0.5, 0.02, 0.04, 0.75, "multiply", "max", **stiff)
    # UsdPhysics' own defaults are zero.
    assert surface(model, "b") == Material(0.0, 0.0)


def test_what_no_material_says_is_the_builders_default(tmp_path):
    builder = collidecli.ModelBuilder()
    default = Material(0.9, torsional_friction=0.01, contact_ke=5.0, friction_combine="min")
    builder.default_shape_cfg = collidecli.ShapeConfig(friction=0.3, material=default)
    ice = number("physics:dynamicFriction", 0.125)
    add_usd(
        builder,
        write_usda(tmp_path, material("Ice", ice) + collider("a") + collider("b", bound("/Ice"))),
    )
    model = builder.finalize()
    assert surface(model, "a") == Material(0.3, 0.3, 0.01, friction_combine="min", contact_ke=5.0)
    assert surface(model, "b") == Material(0.125, 0.0, 0.01, friction_combine="min", contact_ke=5.0)


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (number("physics:dynamicFriction", -1), "physics:dynamicFriction is -1"),
        (number("physics:staticFriction", "inf"), "physics:staticFriction is inf"),
        (number("physics:restitution", "nan"), "physics:restitution is nan"),
        (number("physics:restitution", 1.5), "physics:restitution is 1.5"),
        (number("newton:rollingFriction", -0.5), "newton:rollingFriction is -0.5"),
        ('string newton:contactStiffness = "hard"', "newton:contactStiffness is 'hard'"),
        (
            'uniform token physxMaterial:frictionCombineMode = "mean"',
            "physxMaterial:frictionCombineMode is 'mean'",
        ),
    ],
)
def test_refusals_name_the_material(tmp_path, inside, message):
    check_refused(
        lambda: load(tmp_path, material("Odd", inside) + collider("a", bound("/Odd"))),
        (message, "</Odd>"),
    )


COEFFICIENTS = {
    "average": (0.25, 0.125),
    "min": (0.5, 0.25),
    "multiply": (0.75, 0.5),
    "max": (1.0, 0.75),
}
"""Dynamic and static friction of a surface of each mode: powers of two, so that every mixture is
exact."""


def mixed_by_hand(mode: str, a: float, b: float) -> float:
    return {"average": (a + b) / 2, "min": min(a, b), "multiply": a * b, "max": max(a, b)}[mode]


def opposite(mode: str) -> str:
    return COMBINE_MODES[-1 - COMBINE_MODES.index(mode)]


def test_contacts_of_every_two_modes(tmp_path):
    """PhysX: of two modes the later of average, min, multiply, max; never slides harder than it
    sticks."""
    text = ""
    for mode, (dynamic, static) in COEFFICIENTS.items():
        values = {"dynamicFriction": dynamic, "staticFriction": 4 * static, "restitution": static}
        inside = "\n".join(number(f"physics:{name}", value) for name, value in values.items())
        for name, combined in (("friction", mode), ("restitution", opposite(mode))):
            inside += f'\nuniform token physxMaterial:{name}CombineMode = "{combined}"'
        text += material(f"M_{mode}", inside) + collider(f"a_{mode}", bound(f"/M_{mode}"))
        text += collider(f"b_{mode}", bound(f"/M_{mode}"), place=0.5)
    _, model = load(tmp_path, text)
    columns = ("friction", "static_friction", "restitution")
    contacts = collidecli.collide(model, device="cpu", columns=columns)
    pairs = set(zip(contacts.shape0.tolist(), contacts.shape1.tolist(), strict=True))
    assert len(pairs) == 8 * 7 // 2
    for row, (a, b) in enumerate(zip(contacts.shape0, contacts.shape1, strict=True)):
        modes = [model.shapes.path[k].rsplit("_", 1)[-1] for k in (a, b)]
        (dynamic_a, static_a), (dynamic_b, static_b) = (COEFFICIENTS[mode] for mode in modes)
        mode = max(modes, key=COMBINE_MODES.index)
        friction = mixed_by_hand(mode, dynamic_a, dynamic_b)
        assert contacts.columns["friction"][row] == friction
        sticking = mixed_by_hand(mode, 4 * static_a, 4 * static_b)
        assert contacts.columns["static_friction"][row] == max(friction, sticking)
        bounce = max(map(opposite, modes), key=COMBINE_MODES.index)
        assert contacts.columns["restitution"][row] == mixed_by_hand(bounce, static_a, static_b)
