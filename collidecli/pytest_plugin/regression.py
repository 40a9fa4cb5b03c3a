"""The fixture `contacts_regression`: runs a scene, compares with the baseline, reports the
differences."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from collidecli.cli.streams import console
from collidecli.errors import CollideError, ContactsWarning, OutputError
from collidecli.escaping import printable_values
from collidecli.pytest_plugin.tolerances import MARKER, diff_command, tolerance_options
from collidecli.results.outputs import write_output
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.verbs.diff.diff import DiffRequest, diff
from collidecli.verbs.diff.tables import diff_table
from collidecli.verbs.diff.words import markdown

PathLike = str | os.PathLike[str]
WIDTH = 110
"""Columns of the table in a failure."""
DIFFERENT = "contacts are not those of the baseline"


class ContactsDiffer(pytest.fail.Exception):
    """A failure with a table of differences. summary: one line of it, for pytest's list of
    failures."""

    def __init__(self, words: str, summary: str) -> None:
        super().__init__(words, pytrace=False)
        self.summary = summary


class ContactsRegression:
    """The value of the fixture in one test."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self._request = request
        self._folder = folder
        self._here = Path(request.node.path)
        self._checked: set[Path] = set()

    def check(
        self,
        scene: PathLike | Sequence[PathLike],
        trajectory: PathLike | None = None,
        *,
        basename: str | None = None,
        **options: Any,
    ) -> None:
        """Runs a scene in motion as `collide run` does, and fails the test if its contacts differ
        from the baseline.

        Args:
            scene, trajectory: paths, relative to the folder of the test's file. Several scenes are
                one world each.
            basename: name of the baseline in place of the test's name; tests may share it.
            options: those of `collide run`, such as `worlds=4`, `frames="0:10"`, `gap=0.01`,
                `broad_phase="sap"`. The default device is "cpu", and with pytest-xdist the default
                number of threads is 1.
        """
        __tracebackhide__ = True
        from collidecli.verbs.run.run import run, run_request

        name, obtained, allowed = self._begun(basename)
        chosen = {
            "device": "cpu",
            **({"threads": 1} if "PYTEST_XDIST_WORKER" in os.environ else {}),
            **options,
        }
        try:
            result = run(run_request(scene, trajectory, self._here.parent, obtained, chosen))
        except CollideError as error:
            raise pytest.fail.Exception(
                f"collide cannot run this: {error}", pytrace=False
            ) from None
        for text in result.warnings:
            warnings.warn(ContactsWarning(text), stacklevel=2)
        sources: dict[str, str] = {}
        if isinstance(scene, (str, os.PathLike)):
            sources["scene_b"] = str(self._here.parent / scene)
        if trajectory is not None:
            sources["trajectory_b"] = str(self._here.parent / trajectory)
        self._compare(name, obtained, allowed, sources)

    def check_file(self, contacts: PathLike, *, basename: str | None = None) -> None:
        """Fails the test if a contact set file differs from the baseline.

        contacts: path of a finished contact set, as `collide run` writes; relative to the folder of
        the test's file.
        """
        __tracebackhide__ = True
        name, obtained, allowed = self._begun(basename)
        try:
            shutil.copyfile(self._here.parent / contacts, obtained)
        except OSError as error:
            raise pytest.fail.Exception(
                f"{contacts}: cannot be read: {error.strerror}", pytrace=False
            ) from None
        self._compare(name, obtained, allowed, {})

    def _begun(self, basename: str | None) -> tuple[str, Path, dict[str, Any]]:
        """Name of the baseline, path of the obtained set, and the tolerances of a check that
        begins."""
        __tracebackhide__ = True
        name = basename or re.sub(r"\W", "_", self._test_name())
        if self._baseline(name) in self._checked:
            pytest.fail(
                f"this test compares with {name}.h5 twice: give each check another basename"
            )
        self._checked.add(self._baseline(name))
        return name, self._folder / f"{name}.obtained.h5", self._allowed()

    def _test_name(self) -> str:
        """The test's name; with the option --with-test-class-names of pytest-regressions, after its
        class's name."""
        name = self._request.node.name
        cls = self._request.cls
        wanted = self._request.config.getoption("with_test_class_names", False)
        return f"{cls.__name__}_{name}" if wanted and cls is not None else name

    def _case(self) -> str:
        """The node id of this case alone, with its parameters; pytest-xdist may have added a
        group."""
        node = self._request.node
        return node.nodeid[: node.nodeid.rindex(node.name) + len(node.name)]

    def _baseline(self, name: str) -> Path:
        return self._here.with_suffix("") / f"{name}.h5"

    def _compare(
        self, name: str, obtained: Path, allowed: Mapping[str, Any], sources: Mapping[str, Any]
    ) -> None:
        """Fails the test if a contact set differs from the baseline. allowed, sources: fields of
        the DiffRequest, tolerances and where scene and recording are."""
        __tracebackhide__ = True
        baseline = self._baseline(name)
        if not baseline.exists() and self._written(obtained, baseline):
            warn_of_no_contacts(baseline)
            if not self._asked("--regen-all"):
                words = (
                    f"Contact set not found beside the test, created:\n- {baseline}\ninspect it"
                    " (collide inspect "
                )
                words += (
                    f"{shlex.quote(str(baseline))}), and commit it: the next run compares with it"
                )
                pytest.fail(words, pytrace=False)
            return
        force = self._asked("--force-regen")
        try:
            compared = diff(DiffRequest(str(baseline), str(obtained), **allowed, **sources))
        except CollideError as error:
            if not (force or self._asked("--regen-all")) or str(baseline) not in error.where:
                raise pytest.fail.Exception(str(error), pytrace=False) from None
            compared = None
        if compared is not None and compared.equal:
            warn_of_no_contacts(baseline)
            return
        if force or self._asked("--regen-all"):
            self._written(obtained, baseline, force=True)
            warn_of_no_contacts(baseline)
            if force:
                words = (
                    f"Contacts differ and --force-regen set, regenerating file at:\n- {baseline}"
                )
                pytest.fail(words, pytrace=False)
            return
        assert compared is not None
        words = self._words(compared.as_dict(), baseline, obtained, allowed, sources)
        raise ContactsDiffer(words, f"{DIFFERENT}: {', '.join(compared.reasons)}")

    def _allowed(self) -> dict[str, Any]:
        """Fields of DiffRequest from the markers; the closest marker takes precedence for each
        name."""
        __tracebackhide__ = True
        options: dict[str, Any] = {}
        for marker in self._request.node.iter_markers(MARKER):
            if marker.args:
                words = (
                    f"{MARKER} takes keyword arguments, such as atol=1e-6, and not"
                    f" {marker.args[0]!r}"
                )
                pytest.fail(words, pytrace=False)
            options = {**marker.kwargs, **options}
        try:
            return tolerance_options(options)
        except CollideError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None

    def _asked(self, option: str) -> bool:
        return bool(self._request.config.getoption(option, False))

    def _written(self, obtained: Path, baseline: Path, force: bool = False) -> bool:
        """Copies the obtained set to the baseline atomically; False if another process has written
        it first."""
        __tracebackhide__ = True
        try:
            baseline.parent.mkdir(parents=True, exist_ok=True)
            write_output(baseline, obtained.read_bytes(), force)
        except OutputError as error:
            if not force and baseline.exists():
                return False
            raise pytest.fail.Exception(
                f"the baseline cannot be written: {error}", pytrace=False
            ) from None
        except OSError as error:
            words = f"the baseline cannot be written: {baseline}: {error.strerror}"
            raise pytest.fail.Exception(words, pytrace=False) from None
        return True

    def _words(
        self,
        record: Mapping[str, Any],
        baseline: Path,
        obtained: Path,
        allowed: Mapping[str, Any],
        sources: Mapping[str, Any],
    ) -> str:
        """Table of differences and paths of the files; writes the report beside the obtained
        file."""
        report = obtained.with_name(obtained.name.replace(".obtained.h5", ".diff.md"))
        report.write_text(markdown(record), encoding="utf-8")
        page = write_page(baseline, obtained, report.with_suffix(".html"), allowed, sources)
        rows = {
            "baseline": baseline,
            "obtained": obtained,
            "report": report,
            **({"page": page} if page else {}),
            "look": diff_command(baseline, obtained, allowed, sources),
            "accept": shlex.join(["pytest", self._case(), "--force-regen"]),
        }
        lines = [f"{name:10}{value}" for name, value in rows.items()]
        out = console(io.StringIO())
        out.width = WIDTH
        with out.capture() as captured:
            out.print(diff_table(printable_values(record)))
        table = [line.rstrip() for line in captured.get().rstrip().splitlines()]
        return "\n".join([DIFFERENT, "", *table, "", *lines])


def warn_of_no_contacts(baseline: Path) -> None:
    """Warns of a baseline without a row in any group, with which few faults of a scene would
    differ."""
    try:
        with ContactSet.open(baseline) as contacts:
            row_count = contacts.contact_count + sum(contacts.group_rows.values())
    except CollideError:  # the comparison says what is wrong with it
        return
    if not row_count:
        text = (
            f"{baseline}: the baseline has no contacts: is the scene, its motion and the gap what"
            " is meant?"
        )
        warnings.warn(ContactsWarning(text), stacklevel=4)


def write_page(
    baseline: Path,
    obtained: Path,
    output: Path,
    allowed: Mapping[str, Any],
    sources: Mapping[str, Any],
) -> Path | None:
    """Writes the page of `collide report`; None if its packages are not installed."""
    if find_spec("matplotlib") is None or find_spec("jinja2") is None:
        return None
    from collidecli.verbs.report.page import report_page
    from collidecli.verbs.report.report import ReportRequest, report

    kept = {
        name: value for name, value in allowed.items() if name in ("atol", "rtol", "ignore_shallow")
    }
    result = report(ReportRequest(str(obtained), str(baseline), **kept, **sources))
    output.write_text(report_page(result.as_dict()), encoding="utf-8")
    return output
