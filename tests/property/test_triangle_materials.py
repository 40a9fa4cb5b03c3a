"""Materials of contacts with meshes of several materials, against the nearest triangle to each
witness point in float64 by a search of all triangles."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli import Material, ModelBuilder, ShapeConfig, TriangleMaterials
from collidecli.errors import InputError
from collidecli.scene.contact_columns import RIGID_COLUMNS
from collidecli.scene.model import Model
from collidecli.scene.triangle_mesh import TriangleMesh, triangle_mesh
from tests.support.engine_runs import assert_identical
from tests.support.meshes import every_distance

FRAMES = 25
FRICTIONS = (0.2, 0.9)
OWN = 0.5
BALL = 0.7
SIDE = 3
"""Squares of the plate along x and y, each of two triangles and of side 0.4."""


def plate(bowl: float) -> TriangleMesh:
    """A closed plate 0.2 m thick; `bowl`: height of its rim, so that it is not convex."""
    steps = 0.4 * (np.arange(SIDE + 1) - SIDE / 2)
    x, y = (axis.reshape(-1) for axis in np.meshgrid(steps, steps, indexing="ij"))
    top = np.stack([x, y, bowl * (x * x + y * y)], axis=1)
    below = np.stack([x, y, np.full_like(x, -0.2)], axis=1)
    count = len(top)
    square = [(i * (SIDE + 1) + j) for i in range(SIDE) for j in range(SIDE)]
    across = SIDE + 1
    faces = []
    for k in square:
        faces += [(k, k + across, k + across + 1), (k, k + across + 1, k + 1)]
    faces += [tuple(count + v for v in reversed(face)) for face in faces]
    sides = np.concatenate([np.array(faces)[:, [k, (k + 1) % 3]] for k in range(3)])
    upper = sides[(sides < count).all(axis=1)]
    known = {tuple(side) for side in upper.tolist()}
    for a, b in upper.tolist():
        if (b, a) not in known:
            faces += [(b, a, count + a), (b, count + a, count + b)]
    mesh = triangle_mesh(np.concatenate([top, below]), np.array(faces), "plate")
    assert mesh.is_closed
    assert not mesh.repairs
    return mesh


def scene(bowl: float, moves: bool, last: bool, worlds: int = 1) -> Model:
    """A plate of three materials, one of them its own, with a ball and a box near it.

    moves: the plate is a body. last: it is the second shape of each pair.
    """
    mesh = plate(bowl)
    row = np.random.default_rng(3).integers(-1, 2, len(mesh.face))
    surfaces = tuple(Material(friction=value) for value in FRICTIONS)
    own = TriangleMaterials(("first", "second"), surfaces, row)
    builder = ModelBuilder()
    cfg = ShapeConfig(material=Material(friction=OWN), triangle_materials=own, gap=0.05)
    tilted = (0.3, -0.2, 0.5, *Rotation.from_euler("xyz", (10, 20, 30), degrees=True).as_quat())
    ball = ShapeConfig(material=Material(friction=BALL, friction_combine="max"), gap=0.05)

    def add_plate() -> None:
        builder.add_shape_mesh(
            builder.add_body() if moves else -1, mesh, None, tilted, cfg, "plate"
        )

    if not last:
        add_plate()
    builder.add_shape_sphere(builder.add_body(), radius=0.15, cfg=ball, key="ball")
    builder.add_shape_box(builder.add_body(), hx=0.3, hy=0.2, hz=0.1, cfg=ball, key="box")
    if last:
        add_plate()
    return builder.finalize(world_count=worlds)


def poses_of(model: Model) -> np.ndarray:
    """float64[FRAMES, 1, B, 7]: the plate far away and turned, the others touching it anywhere."""
    rng = np.random.default_rng(11)
    body = dict(zip(model.shapes.path, model.shapes.body.tolist(), strict=True))
    shape = model.shapes.pose[model.shapes.path.index("plate")].copy()
    poses = np.zeros((FRAMES, 1, len(model.bodies), 7))
    for frame in range(FRAMES):
        base, turn = np.zeros(3), Rotation.identity()
        if body["plate"] >= 0:
            base, turn = rng.normal(size=3) * 100.0, Rotation.random(random_state=rng)
            poses[frame, 0, body["plate"]] = [*base, *turn.as_quat()]
        of_plate = turn * Rotation.from_quat(shape[3:])
        center = base + turn.apply(shape[:3])
        for name, height in (("ball", 0.24), ("box", 0.19)):
            place = [*rng.uniform(-0.7, 0.7, 2), height + rng.uniform(-0.02, 0.02)]
            flat = rng.uniform() < 0.5
            about = (
                Rotation.from_rotvec([0, 0, rng.uniform(0, 6)])
                if flat
                else Rotation.random(random_state=rng)
            )
            poses[frame, 0, body[name]] = [
                *(center + of_plate.apply(place)),
                *(of_plate * about).as_quat(),
            ]
    return poses


def expected_rows(model: Model, poses: np.ndarray, contacts, side: int) -> list[set[int]]:
    """Materials of all triangles nearest to each witness point, within rounding; of the triangles
    that face the other shape most directly, if they are on an edge."""
    row = model.shapes.path.index("plate")
    body = model.shapes.body[row]
    mesh = model.meshes[model.shapes.mesh[row]]
    own = model.shapes.pose[row].copy()
    found = [{-1}] * contacts.rigid_contact_count
    at = np.flatnonzero(getattr(contacts, f"shape{side}") == row)
    frame = np.repeat(np.arange(FRAMES), np.diff(contacts.cell_start))[at]
    outer = poses[frame, 0, body] if body >= 0 else np.tile([0, 0, 0, 0, 0, 0, 1.0], (len(at), 1))
    turn = Rotation.from_quat(outer[:, 3:])
    origin = outer[:, :3] + turn.apply(own[:3])
    turn = turn * Rotation.from_quat(own[3:])
    local = turn.inv().apply(getattr(contacts, f"point{side}")[at] - origin)
    towards = (1 - 2 * side) * turn.inv().apply(contacts.normal[at].astype(float))
    distance = every_distance(local, mesh.vertex[mesh.face])
    facing = towards @ mesh.face_normal.T
    for k, contact in enumerate(at):
        near = np.flatnonzero(distance[k] <= distance[k].min() + 4e-6)
        near = near[facing[k, near] >= facing[k, near].max() - 1e-5]
        found[contact] = set(model.triangle_materials.row[row][near].tolist())
    return found


@pytest.mark.parametrize("bowl", [0.0, 0.3], ids=["convex", "bowl"])
@pytest.mark.parametrize(("moves", "last"), [(False, False), (True, True)])
def test_a_contact_has_the_material_of_the_triangle_that_it_touches(bowl, moves, last):
    model = scene(bowl, moves, last)
    poses = poses_of(model)
    contacts = collidecli.collide(model, poses, device="cpu", columns="friction", broad_phase="nxn")
    optional = set(contacts.columns) - {column.name for column in RIGID_COLUMNS}
    assert optional == {"friction", "material0", "material1"}
    side = int(last)
    material = contacts.columns[f"material{side}"]
    expected = expected_rows(model, poses, contacts, side)
    sure = np.array([len(one) == 1 for one in expected])
    assert all(int(value) in one for value, one in zip(material, expected, strict=True))
    assert len(material) > 100
    assert sure.mean() > 0.7
    assert set(material.tolist()) == {-1, 0, 1}
    assert (contacts.columns[f"material{1 - side}"] == -1).all()
    of_plate = np.array([*FRICTIONS, OWN])[material]
    row = model.shapes.path.index("plate")
    is_of_plate = (contacts.shape0 == row) | (contacts.shape1 == row)
    mixed = np.where(is_of_plate, np.maximum(of_plate, BALL), BALL)
    np.testing.assert_array_equal(contacts.columns["friction"], mixed.astype(np.float32))


def test_a_face_of_an_exact_mesh_is_the_triangle_of_its_feature():
    model = scene(0.3, False, False)
    contacts = collidecli.collide(model, poses_of(model), device="cpu")
    faces = np.flatnonzero((contacts.shape0 == 0) & (contacts.feature0 % 3 == 2))
    assert len(faces) > 20
    touched = model.triangle_materials.row[0][contacts.feature0[faces] // 3]
    np.testing.assert_array_equal(contacts.columns["material0"][faces], touched)


@pytest.mark.parametrize(
    ("phase", "chunk", "threads"), [("nxn", 1, 1), ("sap", 7, 2), ("explicit", 0, 2)]
)
def test_materials_do_not_depend_on_how_work_is_divided(phase, chunk, threads):
    model = scene(0.3, True, False)
    poses = poses_of(model)
    names = ("material0", "material1", "friction")
    first = collidecli.collide(model, poses, device="cpu", columns="friction", broad_phase="nxn")
    again = collidecli.collide(
        model,
        poses,
        device="cpu",
        columns="friction",
        chunk_cells=chunk,
        threads=threads,
        broad_phase=phase,
    )
    for name in names:
        assert again.columns[name].tobytes() == first.columns[name].tobytes()


@pytest.mark.parametrize("moves", [False, True])
def test_every_world_has_the_materials_of_the_first(moves):
    one = scene(0.3, moves, False)
    poses = poses_of(one)
    first = collidecli.collide(one, poses, device="cpu", columns="friction")
    many = scene(0.3, moves, False, worlds=3)
    contacts = collidecli.collide(many, poses, device="cpu", columns="friction", chunk_cells=4)
    for frame in range(FRAMES):
        for world in range(3):
            assert_identical(contacts.cell(frame, world), first.cell(frame))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: row[:5], "have the shape (5,)"),
        (lambda row: row + 1, "does not exist"),
        (lambda row: row - 2, "does not exist"),
        (lambda row: row.astype(float), "does not exist"),
    ],
)
def test_rows_that_are_no_materials_are_refused(change, said):
    mesh = plate(0.0)
    own = TriangleMaterials(("a",), (Material(),), change(np.zeros(len(mesh.face), int)))
    with pytest.raises(InputError, match="triangle") as error:
        ModelBuilder().add_shape_mesh(-1, mesh, None, None, ShapeConfig(triangle_materials=own))
    assert said in str(error.value)


def test_materials_of_triangles_of_a_box_are_refused():
    own = TriangleMaterials(("a",), (Material(),), np.zeros(12, int))
    with pytest.raises(InputError, match="no triangle mesh"):
        ModelBuilder().add_shape_box(-1, cfg=ShapeConfig(triangle_materials=own))


def test_materials_of_triangles_that_a_repair_changes_are_refused():
    mesh = plate(0.0)
    faces = np.concatenate([mesh.face, [[0, 0, 1]]])
    own = TriangleMaterials(("a",), (Material(),), np.zeros(len(faces), int))
    cfg = ShapeConfig(triangle_materials=own)
    with pytest.raises(InputError, match="repairs change the triangles"):
        ModelBuilder().add_shape_mesh(-1, mesh.vertex, faces, cfg=cfg)
    rows = TriangleMaterials(("a",), (Material(),), np.zeros(len(mesh.face), int))
    cfg = ShapeConfig(triangle_materials=rows)
    assert ModelBuilder().add_shape_mesh(-1, mesh.vertex, mesh.face, cfg=cfg) == 0
