"""What a plain USD stage costs at load: processor time a collider, for 1 000 and 10 000 in bodies of four."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from pxr import Sdf

from tests.bench.result import BenchTable

COUNTS = (1_000, 10_000)
SHAPES = {
    "Sphere": "double radius = 0.3",
    "Cube": "double size = 0.5",
    "Capsule": 'double radius = 0.2\ndouble height = 0.5\nuniform token axis = "X"',
    "Cylinder": "double radius = 0.2\ndouble height = 0.5",
}
MATERIALS = 4
MOST_REPEATS = 3

MEASURED = """
import json, sys, time
from collidecli.importers.usd.scene import add_usd
from collidecli.scene.builder import ModelBuilder
builder = ModelBuilder()
start = time.process_time()
add_usd(builder, sys.argv[1])
read = time.process_time()
builder.finalize()
print(json.dumps([read - start, time.process_time() - read]))
"""


def measure(repeats: int, clock: str) -> BenchTable:
    """Loads in processes of their own, by processor time, whatever clock was asked for."""
    table = BenchTable(
        "stages",
        "Plain USD stages: processor time of loading",
        ["colliders", "add_usd", "a collider", "finalize", "a collider"],
        notes=["Bodies of four colliders with materials and two collision groups, .usdc; least of the repeats."],
    )
    with tempfile.TemporaryDirectory() as folder:
        for count in COUNTS:
            path = write_stage(Path(folder), count)
            seconds = np.array([_load(path) for _ in range(min(repeats, MOST_REPEATS))])
            read, final = seconds.min(axis=0)
            cells = [text for each in (read, final) for text in (f"{each:.2f} s", f"{1e3 * each / count:.3f} ms")]
            table.add(f"{count:,}".replace(",", " "), *cells)
            table.keep(f"{count} seconds", seconds.ravel())
    return table


def write_stage(folder: Path, count: int) -> Path:
    """A .usdc stage of `count` colliders, four to a body."""
    parts = ['#usda 1.0\n(\nmetersPerUnit = 1\nupAxis = "Z"\n)\ndef Xform "World"\n{\n']
    for material in range(MATERIALS):
        parts.append(f'def Material "m{material}" (prepend apiSchemas = ["PhysicsMaterialAPI"])\n{{\n')
        parts.append(f"float physics:dynamicFriction = {0.1 * (material + 1)}\n}}\n")
    for group, other in (("ga", "gb"), ("gb", "ga")):
        parts.append(f'def PhysicsCollisionGroup "{group}" (prepend apiSchemas = ["CollectionAPI:colliders"])\n{{\n')
        parts.append(f"rel collection:colliders:includes = </World/b{'ab'.index(group[1])}>\n")
        parts.append(f"rel physics:filteredGroups = </World/{other}>\n}}\n")
    for body in range(count // len(SHAPES)):
        parts.append(f'def Xform "b{body}" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])\n{{\n')
        parts.append(f"double3 xformOp:translate = ({body % 100}, {body // 100}, 1)\n")
        parts.append('quatf xformOp:orient = (0.8, 0.6, 0, 0)\nuniform token[] xformOpOrder = ["xformOp:translate", ')
        parts.append('"xformOp:orient"]\n')
        for place, (kind, sizes) in enumerate(SHAPES.items()):
            apis = '["PhysicsCollisionAPI", "MaterialBindingAPI"]'
            parts.append(f'def {kind} "c{place}" (prepend apiSchemas = {apis})\n{{\n{sizes}\n')
            parts.append(f"rel material:binding:physics = </World/m{(body + place) % MATERIALS}>\n")
            parts.append(f"double3 xformOp:translate = ({0.1 * place}, {0.2 * place}, 0.1)\n")
            parts.append('uniform token[] xformOpOrder = ["xformOp:translate"]\n}\n')
        parts.append("}\n")
    parts.append("}\n")
    layer = Sdf.Layer.CreateAnonymous(".usda")
    layer.ImportFromString("".join(parts))
    path = folder / f"stage_{count}.usdc"
    layer.Export(str(path))
    return path


def _load(path: Path) -> list[float]:
    command = [sys.executable, "-c", MEASURED, str(path)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
