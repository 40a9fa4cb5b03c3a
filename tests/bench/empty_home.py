"""python -m tests.bench.empty_home [ENVIRONMENT ...]: what a user waits for, from an empty home, as
pip installs.

Each command of COMMANDS runs three times in turn in a new home and a new folder; then in another,
as often as --repeats says. Without an environment, the wheel of this checkout is built and
installed with its requirements into a new one.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from shutil import copytree, ignore_patterns
from statistics import median

import click

ROOT = Path(__file__).parents[2]
COMMANDS = {
    "sample 01, 120 frames": "run samples/01_usd_pile/pile.usda",
    "sample 02, 1 frame": (
        "run samples/02_humanoid/humanoid.xml -t samples/02_humanoid/motion.h5 --frames 0"
    ),
    "sample 02, 500 frames": (
        "run samples/02_humanoid/humanoid.xml -t samples/02_humanoid/motion.h5"
    ),
}
ORDER = ("first", "second", "third")


def install(environment: Path) -> Path:
    """A new environment with the wheel of a copy of this checkout, as others may be installing from
    its sources."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder, "sources")
        ignored = ignore_patterns(
            ".?*", "__pycache__", "build", "out", "docs", "samples", "tests", "*.egg-info"
        )
        copytree(ROOT, sources, ignore=ignored)
        subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, sources], check=True)
        wheel = next(Path(folder).glob("*.whl"))
        print(f"{wheel.name}: {wheel.stat().st_size} bytes", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
        subprocess.run([environment / "bin" / "pip", *pip[3:], "install", wheel], check=True)
    return environment


def run(environment: Path, command: str, home: str) -> tuple[float, float, str]:
    """Seconds of the wall clock and of the processor, and the content hash of the contact set."""
    output = Path(home) / "out.contacts.h5"
    words = [environment / "bin" / "collide", *command.split(), "-o", output, "--force"]
    variables = {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    printed = subprocess.run(
        words, cwd=ROOT, env=variables, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    content = re.search(r"^content +(\w+)", printed, re.MULTILINE)
    assert content, printed
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, content[1]


@click.command()
@click.argument(
    "environments", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--repeats", default=1, show_default=True, help="New homes for each command.")
def main(environments: tuple[Path, ...], repeats: int) -> None:
    """Print seconds of whole runs: least (median) of the wall clock, and of the processor."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = environments or (install(Path(folder, "environment")),)
        for name, command in COMMANDS.items():
            times: dict[tuple[Path, str], list[tuple[float, float]]] = {}
            hashes = set()
            for _ in range(repeats):
                for environment in chosen:
                    with tempfile.TemporaryDirectory() as home:
                        for which in ORDER:
                            wall, processor, content = run(environment, command, home)
                            times.setdefault((environment, which), []).append((wall, processor))
                            hashes.add(content)
            for (environment, which), measured in times.items():
                wall, processor = zip(*measured, strict=True)
                print(
                    f"{name:<24} {environment.name:<12} {which:<7} {min(wall):6.2f} s"
                    f" ({median(wall):.2f}), processor {min(processor):6.2f} s"
                    f" ({median(processor):.2f})"
                )
            assert len(hashes) == 1, f"{name}: content hashes differ: {hashes}"


if __name__ == "__main__":
    main()
