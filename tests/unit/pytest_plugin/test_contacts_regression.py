"""The fixture contacts_regression, in the sample's own tests and in tests made up here."""

import re
import shlex
import shutil
import sys
from importlib.metadata import entry_points
from pathlib import Path

import h5py
import numpy as np
import pytest

from collidecli.cli.main import main
from tests.support.contact_sets import made_up

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "samples" / "03_regression_tests"
INSTALLED = bool(entry_points(group="pytest11", name="collide"))
PLUGIN = [] if INSTALLED else ["-p", "collidecli.pytest_plugin"]
"""A checkout that is not installed has no entry points."""
QUIET = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
CRATE = 'type="box" size="0.1 0.1 0.1"'
REGRESSIONS = """
def pytest_addoption(parser):
    parser.addoption("--force-regen", action="store_true", default=False, help="theirs")
"""
BASELINE = "tests/test_contacts/fall.h5"


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every module and kernel that the sample needs is here: what pytester's runs import they also
    forget."""
    out = str(tmp_path_factory.mktemp("loaded") / "out.h5")
    scene = str(SAMPLE / "scenes/crates.xml")
    motion = str(SAMPLE / "scenes/fall.h5")
    for broad_phase in ("nxn", "sap", "explicit"):
        options = ["--broad-phase", broad_phase, "--device", "cpu", "--force", "-q"]
        assert main(["run", scene, "-t", motion, "-o", out, *options]) == 0
    assert main(["diff", out, str(SAMPLE / BASELINE), "--atol", "1e-6"]) == 0
    # two copies of matplotlib in a process do not work together
    assert main(["report", out, "-o", out + ".html"]) == 0


@pytest.fixture(autouse=True)
def no_pages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure's page takes a second to draw: one test looks at it."""
    if "usefully" not in request.node.name:
        monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.fixture
def sample(loaded, pytester: pytest.Pytester) -> Path:
    """A copy of the sample's repository; its tests are run from there."""
    shutil.copytree(
        SAMPLE, pytester.path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    return pytester.path


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(*PLUGIN, *QUIET, *args)


def edit(folder: Path, old: str, new: str) -> None:
    scene = folder / "scenes" / "crates.xml"
    text = scene.read_text()
    assert text.count(old) == 1
    scene.write_text(text.replace(old, new))


def content(path: Path) -> str:
    with h5py.File(path) as file:
        return str(file.attrs["content_sha256"])


@pytest.mark.rest
def test_the_sample_passes_on_every_broad_phase(sample, pytester):
    run(pytester, "-v").assert_outcomes(passed=4)


@pytest.mark.rest
def test_a_size_that_was_edited_fails_usefully(sample, pytester, monkeypatch):
    # where pytest says each failure's whole message in its summary too
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(sample.parent))
    edit(sample, CRATE, 'type="box" size="0.1 0.1 0.12"')
    result = run(pytester, "-k", "nxn")
    result.assert_outcomes(failed=1, deselected=3)
    text = result.stdout.str()
    shown = [
        "contacts are not those of the baseline",
        "different: * contacts extra, * contacts changed",
        "first     frame 22, world 0, t = 0.11 s",
        " crate_large   crate_small *",
        (
            "::error"
            f" file={sample.name}/tests/test_contacts.py,line=*,title=test_*[[]nxn]::contacts are"
            " not *"
        ),
        (
            "FAILED *[[]nxn] - contacts are not those of the baseline: 152 contacts extra, 595"
            " contacts changed"
        ),
    ]
    result.stdout.fnmatch_lines(shown)
    words = " ".join(text.split())
    copy = f"a copy of it with its assets in {sample / BASELINE}".removesuffix("/fall.h5")
    assert f"crates.xml, is not beside fall.h5; --scene-a names it, and {copy} is found" in words
    assert "the recordings of A and B are equal files: all recorded motion is equal" in words
    assert "Traceback" not in text
    assert "regression.py" not in text, "our own code is no part of what a test's author looks at"
    kept = dict(re.findall(r"^(baseline|obtained|report|page)  +(\S+)$", text, re.M))
    assert set(kept) == {"baseline", "obtained", "report", "page"}
    assert "Different: 152 contacts extra, 595 contacts changed." in Path(kept["page"]).read_text()
    assert Path(kept["baseline"]) == sample / BASELINE
    assert "crate_small" in Path(kept["report"]).read_text()
    (look,) = re.findall(r"^look +(.*)$", text, re.M)
    words = shlex.split(look)
    assert words[:4] == ["collide", "diff", kept["baseline"], kept["obtained"]]
    assert main([*words[1:], "-q"]) == 1
    assert main([*words[1:], "-q", "--exclude", "crate_small"]) == 0
    (accept,) = re.findall(r"^accept +pytest (.*)$", text, re.M)
    run(pytester, *shlex.split(accept)).assert_outcomes(failed=1)
    assert content(Path(kept["baseline"])) == content(Path(kept["obtained"]))


CASES = """
import pytest

@pytest.mark.parametrize("gap", [0.01, 0.02], ids=["of one", "of ano'ther"])
def test_each(contacts_regression, gap):
    contacts_regression.check("../scenes/crates.xml", "../scenes/fall.h5", frames="20:30", gap=gap)
"""


@pytest.mark.rest
def test_the_accept_line_replaces_the_baseline_of_one_case(sample, pytester):
    (sample / "tests" / "test_cases.py").write_text(CASES)
    run(pytester, "tests/test_cases.py").assert_outcomes(failed=2)
    edit(sample, CRATE, 'type="box" size="0.1 0.1 0.12"')
    baselines = sorted((sample / "tests" / "test_cases").glob("*.h5"))
    before = [content(path) for path in baselines]
    result = run(pytester, "tests/test_cases.py")
    result.assert_outcomes(failed=2)
    accepts = re.findall(r"^accept +pytest (.*)$", result.stdout.str(), re.M)
    assert [shlex.split(line)[0] for line in accepts] == [
        "tests/test_cases.py::test_each[of one]",
        "tests/test_cases.py::test_each[of ano'ther]",
    ]
    run(pytester, *shlex.split(accepts[0])).assert_outcomes(failed=1)
    assert sum(content(path) != old for path, old in zip(baselines, before, strict=True)) == 1
    run(pytester, "tests/test_cases.py").assert_outcomes(passed=1, failed=1)


NO_CONTACTS = """
import pytest

def test_apart(contacts_regression):
    contacts_regression.check("apart.xml")

@pytest.mark.filterwarnings("ignore:.*no contacts")
def test_meant(contacts_regression):
    contacts_regression.check("apart.xml")
"""
APART = """<mujoco><worldbody><geom size="0.1"/><body pos="0 0 1"><freejoint/><geom size="0.1"/></body></worldbody>
</mujoco>"""


def test_a_baseline_without_contacts_gives_a_warning(loaded, pytester):
    (pytester.path / "apart.xml").write_text(APART)
    pytester.makepyfile(test_apart=NO_CONTACTS)
    for outcomes in ({"failed": 2}, {"passed": 2}):
        result = run(pytester, "-W", "always")
        result.assert_outcomes(**outcomes, warnings=1)
        result.stdout.fnmatch_lines(["*test_apart.h5: the baseline has no contacts: is the scene*"])


def test_a_baseline_that_is_missing_is_written(sample, pytester):
    shutil.rmtree(sample / "tests/test_contacts")
    result = run(pytester, "-k", "nxn or touches")
    result.assert_outcomes(failed=2, deselected=2)
    result.stdout.fnmatch_lines(
        ["Contact set not found beside the test, created:", "- *test_contacts?fall.h5"]
    )
    result.stdout.fnmatch_lines(
        ["inspect it (collide inspect *test_contacts?fall.h5), and commit it*"]
    )
    for name in ("fall.h5", "test_what_touches_at_rest.h5"):
        assert content(sample / "tests/test_contacts" / name) == content(
            SAMPLE / "tests/test_contacts" / name
        )


def test_regenerating(sample, pytester):
    edit(sample, CRATE, 'type="box" size="0.1 0.1 0.12"')
    baseline = sample / BASELINE
    rest = sample / "tests/test_contacts/test_what_touches_at_rest.h5"
    before = content(baseline)
    untouched = rest.read_bytes()
    result = run(pytester, "--force-regen", "-k", "nxn or touches")
    result.assert_outcomes(failed=1, passed=1, deselected=2)
    result.stdout.fnmatch_lines(
        ["Contacts differ and --force-regen set, regenerating file at:", f"- {baseline}"]
    )
    assert content(baseline) != before
    assert rest.read_bytes() == untouched, (
        "the same pairs touch: within what is allowed nothing is written"
    )
    edit(sample, '0.1 0.1 0.12"', '0.1 0.1 0.1"')
    run(pytester, "--regen-all", "-k", "nxn").assert_outcomes(passed=1, deselected=3)
    assert content(baseline) == before


def test_a_baseline_that_is_no_contact_set(sample, pytester):
    baseline = sample / BASELINE
    baseline.write_text("version https://git-lfs.github.com/spec/v1\n")
    result = run(pytester, "-k", "nxn")
    result.assert_outcomes(failed=1, deselected=3)
    result.stdout.fnmatch_lines([f"{baseline}: *"])
    assert "Traceback" not in result.stdout.str()
    run(pytester, "--force-regen", "-k", "nxn").assert_outcomes(failed=1, deselected=3)
    assert content(baseline) == content(SAMPLE / BASELINE)


MARKED = """
@pytest.mark.contacts_tolerance({tolerances})
def test_{number}(contacts_regression):
    contacts_regression.check("../scenes/crates.xml", "../scenes/fall.h5", {options})
"""


def run_marked(
    sample: Path, pytester: pytest.Pytester, cases: list[tuple[str, str]]
) -> pytest.RunResult:
    """Tests of these tolerances and options, compared with the sample's baseline."""
    module = (
        "import pytest\npytestmark = pytest.mark.contacts_tolerance(atol={'distance': 5e-3, '':"
        " 1.0}, rename=[])\n"
    )
    for number, (tolerances, options) in enumerate(cases):
        module += MARKED.format(tolerances=tolerances, number=number, options=options)
    (sample / "tests/test_marked.py").write_text(module)
    shutil.copytree(sample / "tests/test_contacts", sample / "tests/test_marked")
    return run(pytester, "-v", "tests/test_marked.py")


@pytest.mark.rest
def test_tolerances_by_marker(sample, pytester):
    # The ball sinks 2 mm deeper into all that it meets.
    edit(sample, 'type="sphere" size="0.08"', 'type="sphere" size="0.082"')
    cases = {
        "max_extra=20, max_missing=20": "PASSED",
        "max_extra=20, max_missing=20, atol=['distance=1e-3', 1.0]": "FAILED",
        "max_extra=20, max_missing=20, atol=['distance=1e-3', 1.0], exclude='ball'": "PASSED",
        "max_extra=0": "PASSED",  # the extra ones are within 5 mm of the gap
        "max_extra=20, atol=['distance=1e-5', 1.0], fields='normal'": "PASSED",
        "max_extra=0, atol=['distance=1e-5', 1.0], fields='normal'": "FAILED",
    }
    result = run_marked(sample, pytester, [(tolerances, "basename='fall'") for tolerances in cases])
    result.stdout.fnmatch_lines(
        [f"*::test_{number} {word} *" for number, word in enumerate(cases.values())]
    )


def test_what_is_refused_by_name(sample, pytester):
    cases = {
        ("atoll=1e-6", ""): "contacts_tolerance: 'atoll' is no tolerance",
        (
            "1e-6",
            "",
        ): "contacts_tolerance takes keyword arguments, such as atol=1e-6, and not 1e-06",
        ("atol='speed=1'", ""): "--atol: 'speed' is no field with a tolerance of this kind",
        ("ignore_shallow=-1", ""): "contacts_tolerance: ignore_shallow is -1",
        ("allow_fraction=2", ""): "contacts_tolerance: allow_fraction is 2",
        ("match_frames='no'", ""): "contacts_tolerance: match_frames is 'no'",
        (
            "",
            "broadphase='sap'",
        ): "collide cannot run this: options: 'broadphase' is no option of a run",
        ("", "broad_phase='bvh'"): "collide cannot run this: options: broad_phase is 'bvh'",
        ("", "narrow_phase='sat'"): "collide cannot run this: options: narrow_phase is 'sat'",
    }
    result = run_marked(sample, pytester, list(cases))
    result.assert_outcomes(failed=len(cases))
    result.stdout.fnmatch_lines(list(cases.values()))
    assert "Traceback" not in result.stdout.str()
    assert "another exception" not in result.stdout.str()


def test_a_file_is_compared_only_once(sample, pytester):
    check = '    contacts_regression.check_file("test_contacts/fall.h5", basename="kept")\n'
    (sample / "tests/test_files.py").write_text(
        f"def test_file(contacts_regression):\n{check}{check}"
    )
    run(pytester, "tests/test_files.py").assert_outcomes(failed=1)
    assert (sample / "tests/test_files/kept.h5").read_bytes() == (sample / BASELINE).read_bytes()
    result = run(pytester, "tests/test_files.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*compares with kept.h5 twice*"])


def test_options_of_pytest_regressions_are_left_alone(sample, pytester):
    pytester.makepyfile(regressions_like=REGRESSIONS)
    pytester.syspathinsert()
    for order in (["-p", "regressions_like", *PLUGIN], [*PLUGIN, "-p", "regressions_like"]):
        result = pytester.runpytest_inprocess(*order, *QUIET, "--help")
        assert result.stdout.str().count("--force-regen") == 1
        result.stdout.fnmatch_lines(["*--force-regen*theirs*"])
        result.stdout.fnmatch_lines(["*--regen-all*"])


@pytest.mark.rest
def test_several_workers_write_one_baseline(sample, pytester, monkeypatch):
    """Their failures are annotated, and have no message of Warp among what pytest captures."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    (sample / "tests/test_many.py").write_text("""
import pytest

@pytest.mark.parametrize("number", range(6))
def test_file(contacts_regression, number):
    contacts_regression.check_file("test_contacts/fall.h5", basename="kept")

def test_run(contacts_regression):
    contacts_regression.check("../scenes/crates.xml", "../scenes/none.h5")
""")
    done = pytester.runpytest_subprocess(*PLUGIN, *QUIET, "-n", "2", "tests/test_many.py")
    outcomes = done.parseoutcomes()
    assert (outcomes["failed"], outcomes["passed"]) == (
        2,
        5,
    ), "one worker writes, the others compare with it"
    (line,) = re.findall(
        r"^::error file=tests/test_many.py,line=8,title=test_run::(.*)$", done.stdout.str(), re.M
    )
    assert "none.h5" in line
    assert "Warp" not in done.stdout.str()
    assert [path.name for path in (sample / "tests/test_many").iterdir()] == ["kept.h5"]
    assert (sample / "tests/test_many/kept.h5").read_bytes() == (sample / BASELINE).read_bytes()


def test_the_package_has_it_as_a_plugin():
    text = (ROOT / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\ncollide = "collidecli.pytest_plugin"\n' in text
    if INSTALLED:
        (found,) = entry_points(group="pytest11", name="collide")
        assert found.value == "collidecli.pytest_plugin"


def test_contacts_at_the_reporting_limit_are_within_a_tolerance(pytester):
    """Of two files, one lacks a contact that is 1e-9 m below its pair's gap in the other."""
    whole = made_up()
    whole.gap = np.full(5, 0.1)
    whole.columns["distance"][11] = np.float32(0.1 - 1e-9)
    folder = pytester.mkdir("test_noise")
    whole.write(folder / "kept.h5")
    whole.rows(np.arange(len(whole.cell)) != 11).write(pytester.path / "now.h5")
    pytester.makepyfile(
        test_noise="""
import pytest

@pytest.mark.contacts_tolerance(atol=2e-9)
def test_within(contacts_regression):
    contacts_regression.check_file("now.h5", basename="kept")

def test_exact(contacts_regression):
    contacts_regression.check_file("now.h5", basename="kept")
"""
    )
    result = run(pytester, "-v")
    result.stdout.fnmatch_lines(["*::test_within PASSED *", "*::test_exact FAILED *"])
