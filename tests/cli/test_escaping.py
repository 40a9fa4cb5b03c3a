"""Names from files in every output: they change no structure of it, start nothing in its reader,
and stay distinct."""

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest

from collidecli.escaping import (
    FORMULA_STARTS,
    csv_text,
    markdown_code,
    markdown_text,
    printable_line,
)
from tests.cli.conftest import arrays
from tests.support.contact_sets import Edited, made_up

HOSTILE = (
    '=HYPERLINK("http://evil.example","x")',
    "+1+1",
    "-2+3",
    "-1.5",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    " =1",
    "\uff1d1",
    "'=1",
    "a|b",
    "a`b``c`",
    "a\\|b\\",
    "*a* __b__ ~c~",
    "line\nbreak",
    "\n::error::injected",
    "::warning title=x::injected",
    "x ##[add-mask]y",
    "%0A::error::injected",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "\x9b2J\x7f\x85\u2028",
    "\u202ereversed",
    "<script>alert(1)</script>",
    "</script></title></text><img src=x onerror=alert(1)>",
    '"quoted", "twice"',
    "$DATA ${x} $\\frac{1}$",
    "]]>&amp;<![CDATA[",
    "[red]markup[/red]",
    "[link](http://evil.example) ![i](x)",
    "https://evil.example www.evil.example",
    "# head",
    "#000001",
    'id="x" url(#y)',
    "{{ 7 * 7 }}",
    "",
)


def named(names: tuple[str, ...]) -> Edited:
    """Contacts between all of these shapes, copies of the made-up ones."""
    found = made_up(frames=14, worlds=1)
    size = len(found.path)
    copies = len(names) // len(found.path)
    assert size * copies == len(names)
    for column in ("shape0", "shape1"):
        found.columns[column] = (found.columns[column] + size * (found.cell % copies)).astype(
            np.int32
        )
    found.path = list(names)
    found.type = found.type * copies
    for column in ("body", "margin", "gap"):
        setattr(found, column, np.tile(getattr(found, column), copies))
    return found


def written(found: Edited, path: Path, text: str) -> str:
    """The contact set as a file, with `text` for every other name in it."""
    found.write(path)
    with h5py.File(path, "r+") as file:
        file.attrs["scene"] = text
        file.attrs["creator"] = text
        bodies = file["/model/body/path"]
        assert isinstance(bodies, h5py.Dataset)
        bodies[:] = [f"{text}{n}" for n in range(len(bodies))]
    return str(path)


@pytest.fixture
def pair(here) -> tuple[str, str]:
    """A contact set with hostile names and another, with every pair changed, of which half have
    other names."""
    a = named(HOSTILE)
    b = a.copy()
    b.columns["distance"] = b.columns["distance"] - 0.05
    b.path[::2] = [f"{name}=" for name in b.path[::2]]
    return written(a, here / "a.h5", HOSTILE[23]), written(b, here / "b.h5", HOSTILE[19])


def used(path: str) -> set[str]:
    found = arrays(path)
    rows = np.concatenate([found[f"rigid_contacts/{key}"] for key in ("shape0", "shape1")])
    return {*found["model/shape/path"][rows]}


COMMANDS = (
    *(
        "inspect A",
        "check A",
        "textconv A",
        "diff A B",
        "diff A B --github",
        "diff A A --github",
        "merge A B -o m.h5",
    ),
    *(
        "events A --graph --first 500",
        "events A --by bodies --first 500",
        "label A --by shapes -o a.npz",
    ),
    *(
        "audit A --max-depth 1mm --first 500",
        "audit A --max-depth 1mm --github",
        "export A --to csv -o a.csv",
    ),
    "audit A --html b.html",
    *("report A --against B -o a.html", "plot A -o a.svg --kind pairs"),
)


@pytest.mark.share(6, 3)
@pytest.mark.parametrize(
    "words",
    [
        *(words.split() for words in COMMANDS),
        ["inspect", "A", "--why", "\x1b[2J", "\n::error::x"],
        ["events", "A", "--include", "\x1b[2J\n::error::x"],
        ["view", "\x1b[2J\n::error::x"],
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.usefixtures("no_charts")
def test_terminals(pair, collide, words, form):
    """No byte controls the terminal, no line is a workflow command but those of --github."""
    answer = collide(*({"A": pair[0], "B": pair[1]}.get(word, word) for word in words), *form)
    assert answer.code in (0, 1, 2), answer.err
    assert answer.out or answer.code == 2
    lines = (answer.out + answer.err).splitlines()
    assert all(line.isprintable() for line in lines), [
        line for line in lines if not line.isprintable()
    ]
    commands = [line for line in lines if line.lstrip().startswith("::")]
    assert all(
        re.match("::(error|notice) title=collide (diff|audit)[^,:]*::", line) for line in commands
    )
    assert bool(commands) == ("--github" in words)
    if form and answer.code != 2:
        json.loads(answer.out)
    elif not form:
        assert not any("##[" in line for line in lines)


def test_json_has_the_names_themselves(pair, collide):
    found = collide.result("events", pair[0], "--first", "9999")["listed"]
    assert {one[side] for one in found for side in ("shape0", "shape1")} <= used(pair[0])
    assert len(found) > 20
    parquet = pytest.importorskip("pyarrow.parquet")
    collide.ok("export", pair[0], "--to", "parquet", "-o", "x.parquet")
    table = parquet.read_table("x.parquet").to_pydict()
    assert set(table["shape0"]) | set(table["shape1"]) == used(pair[0])
    assert collide("diff", *pair, "--junit-xml", "x.xml").code == 1
    root = ElementTree.parse("x.xml").getroot()
    assert [one.tag for one in root.iter()].count("testcase") == 6
    assert "\\x1b[31mred" in "".join(root.itertext())


@pytest.mark.parametrize(
    "words", [["export", "A", "--to", "csv", "-o", "x.csv"], ["events", "A", "--csv", "x.csv"]]
)
def test_csv(pair, collide, words):
    collide.ok(*(pair[0] if word == "A" else word for word in words))
    with open("x.csv", newline="", encoding="utf-8") as file:
        head, *rows = list(csv.reader(file))
    assert len(rows) > 20
    assert all(len(row) == len(head) for row in rows)
    texts = [k for k, name in enumerate(head) if name in ("shape0", "shape1")]
    numbers = [
        row[k]
        for row in rows
        for k, name in enumerate(head)
        if not re.match("file|shape.|.*body", name)
    ]
    assert any(float(cell) < 0.0 for cell in numbers if cell not in ("", "true", "false")), (
        "no mark before numbers"
    )
    cells = {row[k] for row in rows for k in texts}
    assert not any(
        cell.lstrip()[:1] in FORMULA_STARTS and not cell.startswith("'") for cell in cells
    )
    assert {cell.removeprefix("'") for cell in cells} <= used(pair[0])
    assert len(cells) > 15


@pytest.mark.parametrize("text", HOSTILE)
def test_a_cell_of_csv_is_one_cell_with_the_text(text):
    ((cell, end),) = csv.reader([*f"{csv_text(text)},end".splitlines(keepends=True)])
    assert (cell.removeprefix("'"), end) == (text, "end")
    assert cell[:1] not in FORMULA_STARTS[:-1]
    assert cell.lstrip()[:1] not in FORMULA_STARTS[:-1]


def rendered(text: str):
    """Tokens of Markdown with tables; those inside of lines too."""
    found = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table").parse(text)
    return [inner for token in found for inner in (token, *(token.children or ()))]


def test_markdown(pair, collide):
    assert collide("diff", *pair, "--markdown", "x.md").code == 1
    tokens = rendered(Path("x.md").read_text(encoding="utf-8"))
    kinds = {token.type for token in tokens}
    assert not kinds & {
        "link_open",
        "image",
        "html_block",
        "strong_open",
        "em_open",
        "fence",
        "blockquote_open",
    }
    assert [token.tag for token in tokens if token.type == "heading_open"] == ["h3"]
    assert {token.content for token in tokens if token.type == "html_inline"} <= {
        "<code>",
        "</code>",
    }
    columns = []
    count = 0
    for token in tokens:
        count = 0 if token.type == "tr_open" else count + (token.type in ("td_open", "th_open"))
        columns += [count] if token.type == "tr_close" else []
    assert set(columns) <= {3, 4, 6}, "sides, fields, pairs"
    assert columns.count(6) > 10


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_of_one_text(text):
    kept = "".join(
        t.content for t in rendered(markdown_text(text)) if t.type in ("text", "text_special")
    )
    assert kept.strip() == printable_line(text).strip()
    assert "://" not in markdown_text(text)
    head, *cells = [
        t
        for t in rendered(f"| a | b |\n| - | - |\n| {markdown_code(text)} | end |\n")
        if t.type == "inline"
    ]
    assert len(cells) == 3
    shown = "".join(
        t.content
        for t in cells[1].children or ()
        if t.type in ("text", "code_inline", "text_special")
    )
    assert shown == printable_line(text)
    assert (head.content, cells[2].content) == ("a", "end")


def test_dot(pair, collide):
    collide.ok("events", pair[0], "--dot", "x.dot")
    quoted = r'"(?:[^"\\]|\\.)*"'
    pattern = re.compile(
        rf"  (?:node )?(?:{quoted})?(?: -- {quoted})? ?\[(?:[a-z_]+=(?:{quoted}|[\w.+-]+) ?)+\];"
    )
    lines = Path("x.dot").read_text(encoding="utf-8").splitlines()
    assert all(pattern.fullmatch(line) for line in lines[1:-1]), lines
    assert len(lines) > 30


class Elements(HTMLParser):
    """Elements of a page with the names of their attributes; its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found = set()
        self.texts = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.add((tag, *sorted(name for name, _ in attrs)))

    handle_startendtag = handle_starttag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.rest
@pytest.mark.share(2, 2)
@pytest.mark.parametrize("output", ["report", "plot", "view"])
def test_pages(pair, collide, here, output):
    """A page with hostile names has the elements of a page with plain ones."""
    if output == "view":
        pytest.importorskip("viser")
    plain = written(
        named(tuple(f"name{n}" for n in range(len(HOSTILE)))), here / "plain.h5", "plain"
    )
    page = "x.svg" if output == "plot" else "x.html"
    words = {"report": ["-o", page, "--against", pair[1]], "plot": ["--kind", "pairs", "-o", page]}
    pages = []
    for file in (plain, pair[0]):
        collide.ok(output, file, *words.get(output, ["--export", page]), "--force")
        pages.append(Path(page).read_text(encoding="utf-8"))
    assert Elements(pages[0]).found == Elements(pages[1]).found
    if output == "plot":
        ElementTree.fromstring(pages[1])
    else:
        assert "<script>alert(1)</script>" not in pages[1]
        assert (
            any(printable_line(HOSTILE[26]) in text for text in Elements(pages[1]).texts)
            or output == "view"
        )
    if output == "view":
        data = re.search(r'id="collide-data">(.*?)</script>', pages[1])
        assert data
        paths = {path for one in json.loads(data[1])["worlds"][0]["pairs"] for path in one["paths"]}
        assert paths <= used(pair[0])
        assert len(paths) > 15


def test_a_file_name_is_text_of_the_page(here, collide):
    pytest.importorskip("viser")
    made_up().write(here / "$DATA<i>&.h5")
    collide.ok("view", "$DATA<i>&.h5", "--export", "x.html")
    assert "<summary>$DATA&lt;i&gt;&amp;.h5</summary>" in Path("x.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("ending", ["usda", "usdc"])
def test_usd(pair, collide, ending):
    from pxr import Usd

    collide.ok("export", pair[0], "--to", "usd", "-o", f"x.{ending}")
    stage = Usd.Stage.Open(f"x.{ending}")
    root = stage.GetPrimAtPath("/collide_contacts")
    assert tuple(root.GetAttribute("collide:shapes").Get()) == HOSTILE
    assert [str(prim.GetPath()) for prim in stage.Traverse()] == [
        f"/collide_contacts{rest}"
        for rest in ("", "/world_0", "/world_0/points", "/world_0/normals")
    ]
    assert HOSTILE[23] in stage.GetRootLayer().documentation
