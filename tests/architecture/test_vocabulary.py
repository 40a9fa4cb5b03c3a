"""The project uses the field's terms: words that it once used in a private sense do not come
back."""

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("collidecli", "tests", "docs", "samples")
TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
BANNED = {
    r"rooms?\b(?! temperature)": "pair collider, or capacity",
    r"Rooms?\w*|rooms?_\w+|\w+_rooms?": "collider",
    r"doors?|\w+_doors?|doors?_\w+": "importer, exporter, API",
    r"tested in pieces|pieces of (?:a|the) pair|note_piece|PieceKind|PieceList": "sub-pairs",
    r"out of reach|within reach|beyond reach": "maximum separation",
    r"Cores|cores_of": "Minkowski difference",
    r"stag(?:ed|ing)(?! area)|Staged\w+|Staging|\w+_stag(?:ed|ing)": (
        "contact buffer; emit a contact"
    ),
    r"(?<!/)spots?|spot_\w+": "normal cone, surface point",
    r"[cC]reases?|\w+_creases?": "discontinuity of the support function",
    r"sunk|swallow\w*|buried": "penetration; inside a face",
    r"lets? (?:\w+ )?out|ways? out": "exit feature, separating feature",
    r"at once known|known at once": "analytic early-out",
    r"looks? away|looks_away|LOOKS_\w+": "back-facing",
    r"sticks? out": "convex (salient) feature",
    r"LAST_RESORT|last resorts?": "fallback",
    r"lends?": "bind (a host array)",
    r"speaks? for|no answers?": "plain words",
}
"""Word of a private vocabulary, as a regular expression of whole words, and the term of the
field."""
WORDS = {re.compile(rf"(?<![\w-])(?:{word})(?![\w-])"): term for word, term in BANNED.items()}
ANY = re.compile(rf"(?<![\w-])(?:{'|'.join(BANNED)})(?![\w-])")


def texts() -> list[Path]:
    """Sources and documentation."""
    inside = [
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".h", ".md")
    ]
    kept = [path for path in inside if "_build" not in path.parts and path != Path(__file__)]
    return [*kept, *(ROOT / name for name in TOP if (ROOT / name).exists())]


def found_in(text: str) -> list[str]:
    """The banned words of a text, each with the number of its line and the term to use."""
    if not ANY.search(text):
        return []
    return [
        f"{number}: {match.group(0)!r}: write {term}"
        for number, line in enumerate(text.splitlines(), 1)
        for word, term in WORDS.items()
        for match in word.finditer(line)
    ]


def test_no_private_words():
    found = [
        f"{path.relative_to(ROOT)}:{one}" for path in texts() for one in found_in(path.read_text())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "is_private"),
    [
        *(
            (text, True)
            for text in (
                "The room of a pair.",
                "Contacts are staged.",
                "the faces that let nothing out",
            )
        ),
        *(
            (text, False)
            for text in ("room temperature", "headroom", "a pair collider", "CPU cores")
        ),
    ],
)
def test_what_a_private_word_is(text, is_private):
    assert bool(found_in(text)) == is_private


FOREIGN = {
    *(
        "flock",
        "tempfile",
        "TemporaryDirectory",
        "mjData",
        "lerobot_dataset",
        "aggregate_stats",
        "mj_collision",
    ),
    *("xyaxes", "rotateXYZ", "H5Dwrite_chunk", "add_", "FIRST", "LAST", ""),
}
"""Names in backticks of other programs' sources and of parts of names."""
IN_KERNELS = {"mesh_nearest", "surface_interior", "nearest_on_primitive"}
"""Names that are gone, in docstrings of device functions: a change of them compiles their kernels
again."""


def test_texts_of_the_package_name_what_exists():
    """Each name in backticks of a comment or docstring is a name, a module or a word of a string in
    the package."""
    package = ROOT / "collidecli"
    known = FOREIGN | IN_KERNELS
    named = {}
    for path in package.rglob("*"):
        known.update(path.relative_to(ROOT).parts, [path.stem])
    for path in package.rglob("*.py"):
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
            is_text = token.type == tokenize.COMMENT or token.string.startswith(('"""', 'r"""'))
            if is_text:
                for name in re.findall(r"`([A-Za-z_][\w.]*)`", token.string):
                    named.setdefault(name, f"{path.relative_to(ROOT)}: {name}")
            else:
                known.update(re.findall(r"\w+", token.string))
    for path in package.rglob("*.h"):
        known.update(re.findall(r"\w+", path.read_text()))
    assert len(named) > 500
    assert [where for name, where in named.items() if not known.issuperset(name.split("."))] == []
