"""What adapters share: a problem is read, its cells are collided, and the rows are written. Needs
NumPy alone.

docs/reference/engine-problem.md specifies both files.
"""

import json
import os
import platform
import sys
import time

import numpy as np

# The folder of an adapter is first on the path, and an adapter has the name of its engine.
sys.path[:] = [
    path for path in sys.path if os.path.abspath(path) != os.path.dirname(os.path.abspath(__file__))
]


KINDS = ("plane", "sphere", "capsule", "box", "cylinder", "cone", "ellipsoid")
KINDS += ("convex_mesh", "mesh", "heightfield")
"""Types of shapes that the adapters here read. `run` skips any other type."""


class Problem:
    """A problem and the pairs that an engine holds.

    arrays: by name. poses: float64[C, S, 7]. pair: int[K, 2]. kinds, sizes: type of each shape, and
    its first three sizes, which are all of every type in KINDS. gap: of pairs, at least 0. options:
    given texts by name. used: those of `option`. shapes: the engine's, None for those that it
    lacks. held: bool[K].
    """

    def __init__(self, path, options):
        with np.load(path) as file:
            self.arrays = dict(file)
        self.options = dict(text.partition("=")[::2] for text in options)
        self.used = {}
        self.poses = self.arrays["pose"]
        self.pair = self.arrays["pair"]
        self.kinds = self.arrays["shape_type"].tolist()
        self.sizes = self.arrays["shape_size"][:, :3].tolist()
        self.gap = np.maximum(self.arrays["pair_gap"], 0.0)
        self.shapes = []
        self.held = np.zeros(len(self.pair), bool)

    def option(self, name, default, choices=()):
        """An option, of the type of its default, which the rows then name as used."""
        text = self.options.get(name, default)
        try:
            self.used[name] = type(default)(text)
        except ValueError:
            sys.exit(f"option {name}: '{text}' is not a number")
        if choices and text not in choices:
            sys.exit(f"option {name}: '{text}' is not one of {', '.join(choices)}")
        return self.used[name]

    def triangles(self, k):
        """Vertices and triangles of a hull or mesh."""
        number = self.arrays["shape_geometry"][k]
        return [
            self.arrays[name][slice(*self.arrays[f"{name}_start"][number:][:2])]
            for name in ("vertex", "face")
        ]

    def heights(self, k):
        """Heights [rows, columns] of a heightfield, and its bottom."""
        number = self.arrays["shape_geometry"][k]
        values = self.arrays["height"][slice(*self.arrays["height_start"][number:][:2])]
        return values.reshape(self.arrays["height_grid"][number]), float(
            self.arrays["height_bottom"][number]
        )

    def near_pairs(self):
        """A function of the poses of a cell, which returns shapes and gap of the held pairs that
        may touch."""
        radius = np.zeros(len(self.kinds))
        for k, kind in enumerate(self.kinds):
            if kind in ("convex_mesh", "mesh"):
                radius[k] = np.linalg.norm(self.triangles(k)[0], axis=1).max()
            elif kind in ("plane", "heightfield"):
                radius[k] = np.inf
            else:
                radius[k] = sum(self.sizes[k])
        a, b = self.pair[self.held].T
        gap = self.gap[self.held]
        reach = radius[a] + radius[b] + gap

        def near(pose):
            chosen = np.linalg.norm(pose[a, :3] - pose[b, :3], axis=1) <= reach
            return zip(a[chosen].tolist(), b[chosen].tolist(), gap[chosen].tolist(), strict=True)

        return near


def fcl_shape(engine, kind, size):
    """A shape by the classes that FCL and coal both have; None for a type that is none of them."""
    if kind == "plane":
        return engine.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
    if kind == "box":
        return engine.Box(*(2.0 * half for half in size))
    if kind == "ellipsoid":
        return engine.Ellipsoid(*size)
    if kind == "sphere":
        return engine.Sphere(size[0])
    if kind in ("capsule", "cylinder", "cone"):
        return getattr(engine, kind.capitalize())(size[0], 2.0 * size[1])
    return None


def numbers(version):
    """The numbers with which a version begins, such as (3, 2, 5); () of an unknown one."""
    parts = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        parts.append(int(digits))
    return tuple(parts)


def shapes_of(problem, engine, shape_of, kinds):
    """The engine's shapes, how each is treated, and the reasons; see `run`."""
    unknown = f"the adapter of {engine} knows no shape of type "
    found = [
        shape_of(problem, k) if kind in kinds else (None, "skipped", unknown + kind)
        for k, kind in enumerate(problem.kinds)
    ]
    return zip(*found, strict=True)


def run(
    engine,
    version,
    shape_of,
    collider,
    point_rule=lambda problem: "midpoint",
    stateful=lambda problem: False,
    reports_gap=False,
    unbounded=("plane",),
    python_loop="cells",
    least="",
    kinds=KINDS,
):
    """Reads and writes the files of the command line: problem.npz rows.npz [NAME=VALUE ...].

    shape_of: (problem, k) -> the engine's shape or None, one of exact, hull, approximated and
    skipped, and the reason. collider: (problem) -> function of a cell's poses [S, 7], which returns
    rows of both shapes, distance, normal from the first to the second, and point: 9 numbers each.
    point_rule, stateful: functions of the problem. unbounded: types of which the engine collides no
    two. python_loop: what a call of the engine is for, cells or pairs. least: least version of the
    engine with which this works. kinds: types of shapes that shape_of is called with; any other is
    skipped by name.
    """
    source, target, *options = sys.argv[1:]
    if numbers(version) and numbers(version) < numbers(least):
        sys.exit(f"OldVersion: {engine} {version} is too old: the adapter needs at least {least}")
    start = time.perf_counter()
    problem = Problem(source, options)
    problem.shapes, treated, reason = shapes_of(problem, engine, shape_of, kinds)
    treated = np.array(treated, str)
    kind = np.array(problem.kinds)
    problem.held = (treated[problem.pair] != "skipped").all(axis=1)
    problem.held &= ~np.isin(kind[problem.pair], unbounded).all(axis=1)
    collide = collider(problem)
    cells = []
    begin = time.perf_counter()
    for pose in problem.poses:
        cells.append(np.array(collide(pose), float).reshape(-1, 9))
    end = time.perf_counter()
    table = np.concatenate([np.zeros((0, 9)), *cells])
    shapes = table[:, :2].astype(int)
    number = np.full((len(kind), len(kind)), -1)
    number[problem.pair[:, 0], problem.pair[:, 1]] = np.arange(len(problem.pair))
    pair = number[shapes.min(axis=1), shapes.max(axis=1)]
    chosen = (pair >= 0) & ~(table[:, 2] > problem.gap[pair])
    table[shapes[:, 0] > shapes[:, 1], 3:6] *= -1.0
    np.savez(
        target,
        format="collide.engine_rows/1",
        engine=engine,
        version=version,
        options=json.dumps(problem.used),
        reports_gap=reports_gap,
        python_loop=python_loop,
        interpreter=platform.python_version(),
        point_rule=point_rule(problem),
        stateful=stateful(problem),
        shape_treated=treated,
        shape_reason=np.array(reason, str),
        pair_asked=problem.held,
        seconds=np.array([begin - start, end - begin]),
        cell=np.repeat(np.arange(len(cells)), [len(rows_of_cell) for rows_of_cell in cells])[
            chosen
        ],
        pair=pair[chosen],
        distance=table[chosen, 2],
        normal=table[chosen, 3:6],
        point=table[chosen, 6:],
    )
