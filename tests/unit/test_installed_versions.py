"""Versions of installed packages, read without the parser of mails."""

from importlib.metadata import PackageNotFoundError, version

import pytest

from collidecli import installed_versions
from collidecli.installed_versions import installed_version


@pytest.mark.parametrize("package", ["collidecli", "numpy", "warp-lang", "h5py"])
def test_versions_are_those_of_the_parser(package: str) -> None:
    assert installed_version(package) == version(package)


def test_a_package_that_is_not_installed() -> None:
    with pytest.raises(PackageNotFoundError):
        installed_version("no-such-package")


@pytest.mark.parametrize("text", [None, "", "Name: x\n"])
def test_without_a_line_of_the_version_the_parser_is_asked(
    monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    class Installed:
        version = "7"

        def read_text(self, _: str) -> str | None:
            return text

    monkeypatch.setattr(installed_versions, "distribution", lambda _: Installed())
    assert installed_version("x") == "7"
