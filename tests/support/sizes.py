"""python -m tests.support.sizes: lines, files and records of the tree."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def sizes() -> dict[str, int]:
    """Lines and files of the package and of the tests, and the number of decision records."""
    figures = {"decision records": len(list((ROOT / "docs/adr").glob("0*.md")))}
    for name, pattern in (
        ("package,", "collidecli/**/*.py"),
        ("package, C++", "collidecli/**/*.h"),
        ("tests,", "tests/**/*.py"),
    ):
        sources = [path for path in ROOT.glob(pattern) if "__pycache__" not in path.parts]
        figures[f"{name} files"] = len(sources)
        figures[f"{name} lines"] = sum(path.read_bytes().count(b"\n") for path in sources)
    return figures


def main() -> None:
    for name, figure in sizes().items():
        print(f"{name:20}{figure:>9,}")


if __name__ == "__main__":
    main()
