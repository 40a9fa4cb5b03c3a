"""No module between files and contacts uses arithmetic whose last bit depends on the processor
(docs/adr/0068)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATH = ("importers", "storage", "scene", "engine", "numerics")
"""Packages of collidecli that decide a contact."""
MODULES = (
    "analysis/cell_poses.py",
    "analysis/contact_motion.py",
    "analysis/contact_tracking.py",
)
"""Further modules that do; of analysis, what changes contact sets while they are made."""
NOT_ON_THE_PATH = (
    *(
        "storage/flat_tables.py",
        "storage/array_files.py",
        "storage/profile_files.py",
        "storage/json_results.py",
    ),
    *("storage/contact_sets/check.py", "storage/contact_sets/row_rules.py", "importers/visuals.py"),
    "importers/mujoco/sdf_plugins.py",
)
"""What reads finished contact sets, or draws them; what measures a mesh for a warning."""

# Python's, NumPy's and Warp's functions that call the C library or select an implementation by the
# processor.
FUNCTIONS = {
    *(
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "asin",
        "acos",
        "atan",
        "atan2",
        "asinh",
        "acosh",
        "atanh",
    ),
    *(
        "arcsin",
        "arccos",
        "arctan",
        "arctan2",
        "arcsinh",
        "arccosh",
        "arctanh",
        "hypot",
        "cbrt",
        "dist",
    ),
    *(
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "pow",
        "power",
        "float_power",
        "logaddexp",
    ),
    *("gamma", "lgamma", "erf", "erfc", "sinc", "fsum", "sumprod", "fma"),
    *(
        "dot",
        "vdot",
        "inner",
        "matmul",
        "tensordot",
        "einsum",
        "kron",
        "convolve",
        "correlate",
        "polyfit",
        "interp",
    ),
    *(
        "quat_from_axis_angle",
        "quat_to_axis_angle",
        "quat_rpy",
        "quat_slerp",
        "svd3",
        "eig3",
        "qr3",
    ),
}
OWN = {"numerics", "trigonometry", "products"}
"""Modules of ours that have functions of these names."""
OF_WARP_VECTORS = {"wp": {"dot", "cross"}}
"""Of Warp: sums of products of three numbers, which kernels compile to single operations."""
WHOLE_MODULES = {"linalg", "Rotation", "fft", "random"}
PXR = {
    "XformCache",
    "GetLocalToWorldTransform",
    "ComputeLocalToWorldTransform",
    "GetLocalTransformation",
    "Slerp",
}
MUJOCO = {"mju_axisAngle2Quat", "mju_euler2Quat", "mju_quatIntegrate", "resolve_orientation"}

IN_FLOAT32 = re.compile(r"^ .*Real\(-?[\d.e-]+ [-+*/] -?[\d.e-]+\)", re.M)
"""Arithmetic of numbers in a function, which Warp computes in float32: Real(1.0 - 1.0e-12) is 1."""

ALLOWED = {
    "storage/array_loops.py: @": "products of integers, which NumPy computes without BLAS",
    "importers/mujoco/scene.py: mj_kinematics": (
        "of the scene at rest: hinges at 0, whose sine MuJoCo does not take"
    ),
    "importers/mujoco/sensors.py: mj_kinematics": (
        "of bodies that are fixed to the world: no joint has an angle"
    ),
    "numerics/products.py: **": "of a fraction, infinity and NaN: exact",
    "scene/filter_rules.py: @": "sums of 0 and 1 compared with 0: exact in any order",
}


def sources() -> list[Path]:
    package = ROOT / "collidecli"
    found = [path for part in PATH for path in sorted((package / part).rglob("*.py"))]
    found += [package / name for name in MODULES]
    return [path for path in found if not name_of(path).startswith(NOT_ON_THE_PATH)]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT / "collidecli").as_posix()


def is_whole(node: ast.expr) -> bool:
    """A number written out as an integer."""
    if isinstance(node, ast.UnaryOp):
        return is_whole(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Lines and names of what is not allowed."""
    foreign = FUNCTIONS & {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("collidecli")
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield node.lineno, "@"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow):
            base = node.left if isinstance(node, ast.BinOp) else node.target
            exponent = node.right if isinstance(node, ast.BinOp) else node.value
            power_of_two = (
                isinstance(base, ast.Constant) and base.value == 2.0 and is_whole(exponent)
            )
            if not (power_of_two or is_count(base)):
                yield node.lineno, "**"
        elif isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if (
                node.attr in FUNCTIONS
                and owner not in OWN
                and node.attr not in OF_WARP_VECTORS.get(owner, ())
            ):
                yield node.lineno, f"{owner}.{node.attr}"
            elif node.attr in WHOLE_MODULES | PXR | MUJOCO or node.attr == "mj_kinematics":
                yield node.lineno, node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in foreign:
            yield node.lineno, node.id


COUNTS = {"count", "shape_count", "SIDE", "BLOCK"}


def is_count(node: ast.expr) -> bool:
    """Whether a power's base is a whole number by its text: a literal, a length, or a name of a
    count."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("len", "int")
    return is_whole(node) or (isinstance(node, ast.Name) and node.id in COUNTS)


def test_native_code_calls_no_function_of_the_c_library_but_those_that_are_exact():
    sections = sorted((ROOT / "collidecli").rglob("*.h"))
    call = re.compile(rf"\b(?:{'|'.join(FUNCTIONS - {'dot'})})\(")
    assert len(sections) >= 8
    assert [name_of(path) for path in sections if call.search(path.read_text())] == []


def test_kernels_compute_no_constants_in_float32():
    assert IN_FLOAT32.search("def f(x):\n    return x < Real(-1.0 + 1.0e-12)")
    assert [name_of(path) for path in sources() if IN_FLOAT32.search(path.read_text())] == []


def test_the_modules_are_found():
    names = {name_of(path) for path in sources()}
    assert {
        "importers/usd/scene.py",
        "engine/reduction.py",
        "scene/convex_hull.py",
        *MODULES,
    } <= names
    assert len(names) > 100


def test_arithmetic_that_depends_on_the_processor_is_allowed_by_name():
    lines = [(path, *use) for path in sources() for use in uses(ast.parse(path.read_text()))]
    found = {f"{name_of(path)}: {what}" for path, _, what in lines}
    assert [
        f"{path}:{line}: {what}"
        for path, line, what in lines
        if f"{name_of(path)}: {what}" not in ALLOWED
    ] == []
    assert set(ALLOWED) <= found


@pytest.mark.parametrize(
    ("line", "what"),
    [
        *(
            ("a @ b", "@"),
            ("a @= b", "@"),
            ("x ** 0.5", "**"),
            ("x ** 2", "**"),
            ("2.0 ** x", "**"),
        ),
        *(("np.linalg.norm(a)", "linalg"), ("np.dot(a, b)", "np.dot"), ("a.dot(b)", "a.dot")),
        *(("math.sin(a)", "math.sin"), ("wp.pow(a, b)", "wp.pow")),
        ("cache.GetLocalToWorldTransform(prim)", "GetLocalToWorldTransform"),
        ("from math import sin\nsin(1.0)", "sin"),
    ],
)
def test_what_is_found(line, what):
    assert what in [name for _, name in uses(ast.parse(line))]


@pytest.mark.parametrize(
    "line", ["2.0 ** -28", "2**31", "numerics.sin(a)", "wp.dot(a, b)", "np.sqrt(a)", "SIDE**3"]
)
def test_what_is_allowed(line):
    assert not list(uses(ast.parse(line)))
