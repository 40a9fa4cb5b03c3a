"""What README, install.md and architecture.md state of extras and imports is in pyproject.toml."""

import re
import tomllib

from tests.support.doc_names import ROOT

OF_CONTRIBUTORS = {"dev", "docs", "peers", "servers"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {
    name: requirements
    for name, requirements in PROJECT["optional-dependencies"].items()
    if name not in {*OF_CONTRIBUTORS, "all"}
}
IN_ALL = set(re.findall(r"[\w-]+", PROJECT["optional-dependencies"]["all"][0])) - {"collidecli"}


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def rows(page: str, head: str) -> list[list[str]]:
    """Cells of the rows of a table whose first cell is `head`."""
    lines = page[page.index(f"| {head} |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_of_installation_lists_every_extra():
    table = rows(text("docs/install.md"), "extra")
    found = [(re.findall(r"`([\w-]+)`", row[0]), row[1]) for row in table]
    assert {name for names, _ in found for name in names} == {*EXTRAS, "all"}
    of_all = found.index((["all"], "all of these"))
    assert {name for names, _ in found[:of_all] for name in names} == IN_ALL
    assert all("apart from `all`" in meaning for _, meaning in found[of_all + 1 :])


def test_readme_names_the_extras_of_all():
    sentence = r"`pip install \.` omits(.*?)`all` has these;(.*?)are apart"
    found = re.search(sentence, text("README.md"), re.S)
    assert found
    inside, apart = (set(re.findall(r"`([\w-]+)`", part)) & set(EXTRAS) for part in found.groups())
    assert inside == IN_ALL
    assert apart == {"cluster"}


def test_architecture_names_the_packages_of_each_extra():
    found: dict[str, set[str]] = {}
    name = ""
    for row in rows(text("docs/explanation/architecture.md"), "extra"):
        name = row[0].strip("`") or name
        found.setdefault(name, set()).update(re.findall(r"[\w-]+", row[1]))
    for extra in {*IN_ALL, "cluster"}:
        own = [one for one in EXTRAS[extra] if not one.startswith("collidecli")]
        assert found.pop(extra) == {re.split(r"[<>=\[]", one)[0] for one in own}, extra
    assert not found


def test_import_order_of_the_pages_is_that_of_the_contract():
    contract = re.search(r'name = "one direction: (.*?)"', text("pyproject.toml"))
    assert contract
    for name in ("CONTRIBUTING.md", "docs/explanation/architecture.md"):
        assert f"Imports go one way: `{contract[1]}`" in text(name), name
