"""Every public function refuses values of other types than its annotations with InputError."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import warp as wp

import collidecli
from collidecli import InputError

ALIASES = {
    "SceneSource": "str | os.PathLike | Sequence | Model | None",
    "MotionSource": "str | os.PathLike | np.ndarray | Motion | None",
    "PathLike": "str | os.PathLike",
    "ShowProgress": "bool | Callable",
    "Xform": "Sequence[float] | None",
    "Cfg": "ShapeConfig | None",
}
WRONG = {
    "True": (True, {"bool"}),
    "numpy true": (np.True_, {"bool"}),
    "5": (5, {"int", "float"}),
    "2.5": (2.5, {"float"}),
    "numpy 2.5": (np.float32(2.5), {"float"}),
    "text": ("no such", {"str"}),
    "bytes": (b"no such", set()),
    "None": (None, {"None"}),
    "complex": (1j, set()),
    "object": (object(), set()),
    "function": (lambda *_: None, {"Callable"}),
    "slice": (slice(0, 2), {"slice"}),
    "slice of text": (slice("a"), set()),
    "mapping": ({"a": 1}, set()),
    "list of objects": ([object()], {"np.ndarray"}),
    "list of None": ([None], {"np.ndarray"}),
    "list of numbers": ([2.5], {"np.ndarray", "Sequence[float]", "Sequence[str | float]"}),
    "array of no dimension": (np.array(5.0), {"np.ndarray", "float"}),
}
"""Values, and the words of annotations of which one or more allow each."""
NOT_CHECKED = {
    "Model": "the engine's own methods, in whose arguments nothing is a text of a user",
    "Motion": "a protocol that users implement",
    "ShapeConfig": "any attribute by name; the builder checks the values",
    "TriangleMaterials": "called by the builder",
}


def callables() -> Iterator[tuple[str, Callable[..., Any], bool]]:
    """The public functions and methods with arguments, with their names, and whether each is a
    method."""
    for name in collidecli.__all__:
        found = getattr(collidecli, name)
        if inspect.isfunction(found):
            yield name, found, False
        elif inspect.isclass(found) and name not in NOT_CHECKED:
            for attribute in dir(found):
                method = inspect.getattr_static(found, attribute)
                method = getattr(method, "__func__", method)
                is_own = inspect.isfunction(method) and not attribute.startswith("_")
                if is_own and len(inspect.signature(method).parameters) > 1:
                    yield f"{name}.{attribute}", method, True


CALLABLES = {name: (function, is_method) for name, function, is_method in callables()}


def test_the_public_functions_are_found():
    assert {"run", "collide", "clearance", "audit", "record", "Contacts.events"} <= CALLABLES.keys()
    assert "ModelBuilder.add_shape_box" in CALLABLES
    assert len(CALLABLES) > 60


def words(annotation: str) -> str:
    """An annotation with its aliases replaced."""
    for alias, text in ALIASES.items():
        annotation = re.sub(rf"\b{alias}\b", text, annotation)
    return annotation


def is_allowed(annotation: str, allowing: set[str]) -> bool:
    # The members of a list are no alternatives of the list.
    inner = re.compile(r"\b(Sequence|Iterable|tuple|Mapping|Callable|PathLike|Literal)\[[^][]*\]")
    outer = annotation
    while inner.search(outer):
        outer = inner.sub(r"\1", outer)
    alternatives = {part.strip() for part in outer.split("|")}
    return bool(allowing & alternatives) or any(
        text in annotation for text in allowing if "[" in text
    )


@pytest.mark.parametrize("name", CALLABLES)
def test_other_types_are_refused_by_argument(name):
    function, is_method = CALLABLES[name]
    parameters = inspect.signature(function).parameters
    itself = [object] if is_method else []
    for parameter in list(parameters.values())[len(itself) :]:
        annotation = words(str(parameter.annotation))
        if annotation == "Any" or parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            continue
        for label, (value, allowing) in WRONG.items():
            if is_allowed(annotation, allowing):
                continue
            with pytest.raises(InputError) as told:
                function(*itself, **{parameter.name: value})
            case = f"{name}({parameter.name}={label}): {annotation}: {told.value}"
            assert told.value.where == name.split(".")[-1], case
            assert told.value.what.startswith(f"{parameter.name} is "), case
            assert told.value.fix, case


@pytest.mark.parametrize("name", CALLABLES)
def test_unknown_choices_are_refused(name):
    function, is_method = CALLABLES[name]
    for parameter in inspect.signature(function).parameters.values():
        if "Literal[" in str(parameter.annotation):
            with pytest.raises(InputError, match=f"{parameter.name} is 'no such'"):
                function(*[object][: int(is_method)], **{parameter.name: "no such"})


def test_values_of_the_right_type_that_are_wrong(tmp_path):
    """Found by a campaign over every argument; each raised an error of Python."""
    builder = collidecli.ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_sphere(builder.add_body(), radius=0.5)
    contacts = collidecli.collide(builder.finalize(), device="cpu").contact_set
    path = contacts.path
    for call in (
        lambda: contacts.column("distance", slice(0, 1, 0)),
        lambda: list(contacts.blocks(first=-1)),
        lambda: collidecli.diff(path, path, allow_fraction=float("nan")),
        lambda: collidecli.diff(path, path, allow_fraction=float("inf")),
        lambda: collidecli.audit(path, against="\0"),
    ):
        with pytest.raises(InputError):
            call()


def test_a_text_of_names_is_split_in_every_function(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    builder = collidecli.ModelBuilder()
    builder.add_ground_plane(key="floor")
    builder.add_shape_sphere(builder.add_body(key="ball"), radius=0.5, key="ball")
    model = builder.finalize()
    poses = np.zeros((2, 1, 1, 7))
    poses[..., 2:] = (0.4, 0, 0, 0, 1)
    columns = ["friction", "restitution"]
    split = collidecli.collide(model, poses, columns="friction,restitution")
    assert split.columns.keys() == collidecli.collide(model, poses, columns=columns).columns.keys()
    assert split.columns.keys() >= set(columns)
    one = collidecli.clearance(model, poses, between="floor,ball")
    assert one.items == collidecli.clearance(model, poses, between=["floor", "ball"]).items
    assert collidecli.audit(split, max_depth=0.01, allow="floor,ball").passed
    assert collidecli.audit(split, max_depth=0.01, allow=[("floor", "ball")]).passed
    assert not collidecli.audit(split, max_depth=np.float32(0.01), allow="floor,floor").passed
    kept = collidecli.collide(model, poses, keep_on_device="distance,shape0")
    assert kept.columns.keys() == {"distance", "shape0"}


def test_scalars_of_numpy_are_numbers():
    builder = collidecli.ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_sphere(builder.add_body(), radius=np.float32(0.5))
    model = builder.finalize()
    contacts = collidecli.collide(model, gap=np.float64(0.1), sweep=np.bool_(False))
    assert contacts.cell(frame=np.int64(0), world=np.uint8(0)).rigid_contact_count == 1
    assert not contacts.events(threshold=np.float32(-1.0), worlds=np.array([0])).row_count


def test_vectors_of_warp_and_scalars_of_numpy_are_taken():
    builder = collidecli.ModelBuilder()
    body = builder.add_body(xform=wp.transform(wp.vec3(0.0, 0.0, 1.0), wp.quat_identity()))
    builder.add_shape_box(body, hx=np.array(0.5), xform=wp.transform_identity())
    builder.add_cloth_mesh(
        vertices=np.eye(3), indices=[[0, 1, 2]], pos=wp.vec3(0.0, 0.0, 1.0), rot=wp.quat_identity()
    )
    model = builder.finalize()
    contacts = collidecli.collide(model, broad_phase=np.str_("sap"))
    audited = collidecli.audit(contacts, max_depth=1.0, allow=np.array([["*", "*"]]))
    assert audited.passed


def test_a_set_of_numbers_has_no_order():
    builder = collidecli.ModelBuilder()
    with pytest.raises(InputError, match="xform"):
        builder.add_body(xform={0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0})


@pytest.mark.parametrize("vel", [0.005, [0.0, 1.0], [[0.0, 0.0, 0.0]] * 3])
def test_a_value_in_the_place_of_velocities_is_refused(vel):
    """A radius by place, which would be 0.1 m then."""
    builder = collidecli.ModelBuilder()
    with pytest.raises(InputError, match="vel has the shape"):
        builder.add_particles([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0]], vel)
    builder.add_particles([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0]], [0.0, 0.0, 0.0])
    builder.add_particles([[0.0, 0.0, 1.0]], vel=[[0.0, 0.0, 0.0]])
