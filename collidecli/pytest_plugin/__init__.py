"""The pytest plugin that comes with the package: the fixture `contacts_regression`.

pytest loads this module at every start, so it imports pytest and nothing else until a test asks for the fixture.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collidecli.pytest_plugin.regression import ContactsRegression

REGENERATE = {
    "--force-regen": ("force_regen", "Write new baselines where the results differ; such tests fail once."),
    "--regen-all": ("regen_all", "Write new baselines where the results differ; such tests pass."),
}
"""Options of pytest-regressions, where it is installed; ours, of the same meaning, where it is not."""


class ContactsWarning(UserWarning):
    """What collide warns of when a scene is read or run."""


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser) -> Generator[None, object, object]:
    """Adds the options that nobody else did: by now every plugin and every conftest has added its own."""
    result = yield
    group = parser.getgroup("contacts", "contact sets")
    for name, (_, words) in REGENERATE.items():
        try:
            group.addoption(name, action="store_true", default=False, help=words)
        except ValueError:
            continue
    return result


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker."""
    config.addinivalue_line(
        "markers",
        "contacts_tolerance(atol, rtol, ignore_shallow, ...): what contacts_regression allows, as collide diff has it",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The list of failures at the end has one line of ours: where CI is set, pytest would say the whole table again."""
    report = yield
    asked = sys.modules.get("collidecli.pytest_plugin.regression")  # there where a test asked for the fixture
    error = call.excinfo.value if call.excinfo is not None else None
    crash = getattr(report.longrepr, "reprcrash", None)
    if asked is not None and crash is not None and isinstance(error, asked.ContactsDiffer):
        crash.message = str(getattr(error, "summary", ""))
    return report


@pytest.fixture
def contacts_regression(request: pytest.FixtureRequest, tmp_path) -> ContactsRegression:
    """Compares contact sets with baselines kept beside the test: `contacts_regression.check("scene.usda", ...)`.

    A baseline is `<test file>/<test>.h5`. One that is missing is written, and the test fails saying so.
    """
    from collidecli.pytest_plugin.regression import ContactsRegression

    return ContactsRegression(request, tmp_path)
