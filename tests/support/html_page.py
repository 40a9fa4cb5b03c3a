"""A page of HTML as its elements, for tests."""

from collections import defaultdict
from html.parser import HTMLParser


class Page(HTMLParser):
    """Tags, ids, texts, links and rows of tables of a page; every element but void ones is
    closed."""

    VOID = ("meta", "link", "br", "img", "input", "path", "use", "image", "rect", "stop", "wbr")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags = []
        self.ids = []
        self.words = []
        self.rows: list[list[str]] = []
        self.attributes = defaultdict(list)
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes[name].append(value)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self._open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if {"th", "td"} & set(self._open):
            self.rows[-1][-1] += data

    def check(self) -> None:
        """The page runs no script and loads nothing, and its links lead to its own elements."""
        ids = self.attributes["id"]
        assert "script" not in self.tags
        assert len(ids) == len(set(ids)), "an id names one element"
        links = self.attributes["href"]
        assert all(link.startswith(("#", "data:")) for link in links)
        assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
        assert "src" not in self.attributes
