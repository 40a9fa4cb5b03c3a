"""The pytest plugin of the package: the fixture `contacts_regression`.

pytest loads this module at every start, so it imports pytest and errors alone until a test uses the
fixture.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from collidecli.errors import ContactsWarning

if TYPE_CHECKING:
    from collidecli.pytest_plugin.regression import ContactsRegression

__all__ = ["ContactsWarning", "contacts_regression"]

REGENERATE = {
    "--force-regen": "Write new baselines where the results differ; such tests fail once.",
    "--regen-all": "Write new baselines where the results differ; such tests pass.",
}
"""Options and their help text. pytest-regressions defines them too; they have the same meaning
there."""


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser) -> Generator[None, object, object]:
    """Adds the options that no plugin and no conftest has added; at this point all of them are
    loaded."""
    result = yield
    group = parser.getgroup("contacts", "contact sets")
    for name, words in REGENERATE.items():
        try:
            group.addoption(name, action="store_true", default=False, help=words)
        except ValueError:
            continue
    return result


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker."""
    config.addinivalue_line(
        "markers",
        "contacts_tolerance(atol, rtol, ignore_shallow, ...): tolerances of contacts_regression",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shortens the entry in the list of failures to one line; with CI set, pytest would repeat the
    whole table."""
    report = yield
    # loaded if a test used the fixture
    regression = sys.modules.get("collidecli.pytest_plugin.regression")
    error = call.excinfo.value if call.excinfo is not None else None
    crash = getattr(report.longrepr, "reprcrash", None)
    if (
        regression is not None
        and crash is not None
        and isinstance(error, regression.ContactsDiffer)
    ):
        crash.message = str(getattr(error, "summary", ""))
    if report.failed and "contacts_regression" in getattr(item, "fixturenames", ()):
        # A worker of pytest-xdist sends the report's attributes; a failure without a trace has its
        # text alone.
        report.contacts_failure = getattr(crash, "message", str(report.longrepr))  # pyright: ignore
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Annotates the tests of the fixture that failed, where GitHub Actions runs them."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    from collidecli.escaping import github_command

    folder = os.environ.get("GITHUB_WORKSPACE") or os.getcwd()
    for report in terminalreporter.stats.get("failed", ()):
        if text := getattr(report, "contacts_failure", ""):
            file, line, test = report.location
            path = os.path.relpath(terminalreporter.config.rootpath / file, folder)
            terminalreporter.write_line(github_command("error", test, text, path, (line or 0) + 1))


@pytest.fixture
def contacts_regression(request: pytest.FixtureRequest, tmp_path) -> ContactsRegression:
    """Compares contact sets with baselines in the folder of the test:
    `contacts_regression.check("scene.usda", ...)`.

    A baseline is `<test file>/<test>.h5`. A missing baseline is written, and the test fails with a
    message.
    """
    from collidecli.pytest_plugin.regression import ContactsRegression

    return ContactsRegression(request, tmp_path)
