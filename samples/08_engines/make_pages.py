"""Motions of five scenes, a page of each, and the map and table of all: python make_pages.py
[PYTHON] [FOLDER].

PYTHON: interpreter that has the engines. FOLDER: of the pages, out/engines by default.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

from collidecli.pages.chart_kinds import chart_file
from collidecli.verbs.fidelity.page import KINDS, wrong_share
from collidecli.verbs.fidelity.words import types_text

SAMPLES = Path(__file__).parents[1]
ENGINES = "mujoco,newton,coal,fcl,drake,bullet,bullet-kept=bullet,dart,dart-dart=dart,dart-bullet=dart,dart-ode=dart"
ENGINES += ",rapier"
OPTIONS = "bullet-kept.stateful=1,dart-dart.detector=dart,dart-bullet.detector=bullet,dart-ode.detector=ode"
NAMES = [each.partition("=")[0] for each in ENGINES.split(",")]
RECORDED = {
    "dog": (
        "dm_control",
        "suite/dog.xml",
        ["--frames", "60", "--every", "5", "--control", "random"],
    ),
    "hand": (
        "gymnasium_robotics",
        "envs/assets/hand/manipulate_block.xml",
        ["--frames", "100", "--every", "10", "--control", "random"],
    ),
    "arm": (
        "cmeel",
        "../cmeel.prefix/share/example-robot-data/robots/panda_description/urdf/panda.urdf",
        ["--frames", "100", "--every", "10", "--noise", "1.5"],
    ),
}
"""Package, file and options of `collide record` of each scene that has no motion."""


def collide(*arguments):
    """What `collide` prints."""
    command = [sys.executable, "-m", "collidecli", *map(str, arguments), "--force"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def scenes(folder):
    """Scene and options of each."""
    found = {"pile": [SAMPLES / "01_usd_pile/pile.usda"]}
    humanoid = SAMPLES / "02_humanoid"
    found["humanoid"] = [humanoid / "humanoid.xml", "-t", humanoid / "motion.h5"]
    for name, (package, file, options) in RECORDED.items():
        spec = importlib.util.find_spec(package)
        scene = Path(spec.submodule_search_locations[0]) / file
        collide("record", scene, *options, "-o", folder / f"{name}.h5", "--quiet")
        found[name] = [scene, "-t", folder / f"{name}.h5"]
    return found


def table(results):
    """Wrong, missed and phantom answers, depths 1 mm and normals 10 degrees off, of each pair of
    types with a fault."""
    lines = [
        "| scene | pair | touching | " + " | ".join(NAMES) + " |",
        "|---|---|---:|" + "---|" * len(NAMES),
    ]
    for scene, result in results.items():
        kinds = {}
        for row in result["rows"]:
            kinds.setdefault(types_text(row["types"]), {})[row["engine"]] = row
        for kind, rows in kinds.items():
            if not any(row["wrong"] for row in rows.values()):
                continue
            cells = []
            nothing = dict.fromkeys(next(iter(rows.values())), 0)
            for row in (rows.get(name, nothing) for name in NAMES):
                words = (
                    [f"{100 * wrong_share(row):.0f} %"] if row["asked"] + row["phantom"] else ["–"]
                )
                words += [
                    f"{row[each]} {each}"
                    for each in ("missed", "phantom", "zero_normals")
                    if row[each]
                ]
                for each, text in (("depth_error", "depth"), ("angle", "normal")):
                    if row[each] and row[each]["over"]:
                        words.append(f"{text} {100 * row[each]['over']:.0f} %")
                cells.append(", ".join(words).replace("_", " "))
            touching = max(row["asked"] + row["not_asked"] for row in rows.values())
            lines.append(f"| {scene} | {kind} | {touching} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def together(results):
    """One result with the rows of all scenes by engine and types."""
    rows = {}
    for result in results.values():
        for row in result["rows"]:
            held = rows.setdefault(
                (row["engine"], *row["types"]), {**row, "wrong": 0, "asked": 0, "phantom": 0}
            )
            for each in ("wrong", "asked", "phantom"):
                held[each] += row[each]
    return {"engines": [{"name": name} for name in NAMES], "rows": list(rows.values())}


def main(python=sys.executable, folder="out/engines"):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    results = {}
    for name, scene in scenes(folder).items():
        engines = ["--engines", ENGINES, "--engine-option", OPTIONS, "--engine-python", python]
        files = ["-o", folder / f"{name}.html", "--repro", folder / f"{name}-repros"]
        files += ["--view", folder / f"{name}-worst.html", "--json"]
        results[name] = json.loads(collide("fidelity", *scene, *engines, *files))
    (folder / "table.md").write_text(table(results))
    (folder / "map.svg").write_bytes(chart_file(together(results), "wrong", "svg", kinds=KINDS))


if __name__ == "__main__":
    main(*sys.argv[1:])
