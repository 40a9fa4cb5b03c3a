"""Where an option's value comes from: flag, variable, file, default; the cache; what a run
imports."""

import json
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest

from collidecli.cli.main import group
from collidecli.cli.settings import verbs_of
from collidecli.cli.value_types import MemorySize
from collidecli.storage.field_cache import FieldCache
from tests.cli.conftest import RUN, refusals

PLAIN = (*RUN, "--force")


def test_flag_before_variable_before_file_before_default(here, collide, monkeypatch):
    def phase(*options: str) -> str:
        return collide.result(*PLAIN, *options)["broad_phase"]

    assert phase() == "explicit"
    (here / "collide.toml").write_text('broad-phase = "nxn"\n')
    (here / "ci.toml").write_text('broad-phase = "sap"\n')
    assert (phase(), phase("--config", "ci.toml")) == ("nxn", "sap")
    monkeypatch.setenv("COLLIDE_BROAD_PHASE", "sap")
    assert (phase(), phase("--broad-phase", "explicit")) == ("sap", "explicit")
    monkeypatch.delenv("COLLIDE_BROAD_PHASE")
    (here / "collide.toml").write_text(
        'broad_phase = "nxn"\n[run]\nbroad_phase = "sap"\n[inspect]\nall = true\n'
    )
    assert phase() == "sap"


def test_every_kind_of_value(here, collide):
    text = (
        'gap = 0.025\nthreads = 2\nforce = true\nmemory-limit = "1GiB"\ntrajectory ='
        ' "motion.h5"\njson = true\n'
    )
    (here / "collide.toml").write_text(text)
    result = json.loads(collide("run scene.xml").out)
    assert result["contacts"] == 14
    collide.ok("run scene.xml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('broad-fase = "sap"', ("'broad-fase'", "broad-phase")),
        ("[run]\nthread = 2", ("[run] thread", "threads")),
        ("[ran]\nthreads = 2", ("[ran]", "run")),
        ("repeats = 3", ("'repeats' is an option of single verbs", "[profile]")),
        ("atoll = 1e-3", ("'atoll' is no option", "did you mean atol in [diff] or [plot]")),
        ("zzzz = 1", ("'zzzz' is no option", "stand here, those of one in its table")),
        ("[run]\nzzzz = 1", ("[run] zzzz", "collide run --help lists its options")),
        ("gap = [1]", ("'gap'",)),
        ("gap = -1", ("'--gap'", "collide.toml")),
        ("threads = 1.5", ("'--threads'", "collide.toml")),
        ("threads = true", ("'--threads'", "collide.toml")),
        ('static-pairs = "maybe"', ("--static-pairs", "collide.toml")),
        ("gap = ", ("not TOML", "collide.toml")),
        ('output = "a\\u0000b.h5"', ("zero character", "collide.toml")),
        ('[run]\n"a\\u0000b" = 1', ("zero character", "collide.toml")),
        (f"threads = {10**20}", ("'--threads'", "below 2^63")),
        ("gap = " + "[" * 100_000, ("nested too deep", "collide.toml")),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)
def test_a_faulty_file_is_refused_by_name(here, collide, text, words):
    (here / "collide.toml").write_text(text)
    collide.refused(*PLAIN, told=words)


PROGRAM = ("engine", "python", "address", "scheduler")
"""Words of the names of options that start programs."""


def test_a_file_that_is_only_found_starts_no_program(here, collide, monkeypatch):
    """Named by --config it may; so may a variable and a flag."""
    (here / "own.py").write_text("open('started', 'w')\n")
    text = '[run]\nengine = "own.py"\n'
    (here / "collide.toml").write_text(text)
    told = ("[run] engine starts a program", "collide.toml", "--config collide.toml")
    collide.refused(*PLAIN, told=told)
    assert not (here / "started").exists()
    collide("run scene.xml -t motion.h5 -o own.h5 --config collide.toml")
    assert (here / "started").exists()


def test_every_option_that_names_a_program_is_known(collide):
    """Another verb's section of the file is refused as well."""
    context = click.Context(group)
    started = {
        (verb, option.name)
        for verb, command in verbs_of(context).items()
        for option in command.params
        if isinstance(option, click.Option) and any(word in option.name for word in PROGRAM)
    }
    marked = {
        (verb, option.name)
        for verb, command in verbs_of(context).items()
        for option in command.params
        if getattr(option, "starts_programs", False)
    }
    assert started == marked
    assert len(marked) > 9


def test_another_verbs_options_have_variables_of_their_own(here, collide, monkeypatch):
    monkeypatch.setenv("COLLIDE_RECORD_FRAMES", "3")
    monkeypatch.setenv("COLLIDE_OUTPUT", "elsewhere.h5")
    collide.ok("record scene.xml")
    assert (here / "scene.motion.h5").exists()
    assert collide.result(*PLAIN)["broad_phase"] == "explicit"
    assert (here / "elsewhere.h5").exists()


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *(("1000", 1000), ("4GiB", 4 << 30), ("4G", 4 << 30), ("4gb", 4_000_000_000)),
        *(("1.5 KiB", 1536), ("512MB", 512_000_000), ("2T", 2 << 40)),
    ],
)
def test_memory_sizes(text, size):
    assert MemorySize().convert(text, None, None) == size


@pytest.mark.parametrize("name", ["COLLIDE_THREADS", "COLLIDE_RUN_THREADS"])
def test_the_variable_of_a_bad_value_is_named(here, collide, monkeypatch, name):
    monkeypatch.setenv(name, "many")
    collide.refused(*PLAIN, told=f"\n  the value is from {name}; collide run --help")


def test_an_unknown_variable_is_noticed(here, collide, monkeypatch):
    monkeypatch.setenv("COLLIDE_BROADPHASE", "sap")
    assert "COLLIDE_BROAD_PHASE" in collide(*PLAIN).err


@pytest.mark.parametrize(
    ("text", "words", "where"),
    [
        ("gap = 1e18", (), "collide.toml, options: gap is 1e+18"),
        ('device = "cpY"', (), "collide.toml, --device: there is no device 'cpY'"),
        ("gap = 1e18", ("--gap", "2e18"), "error: options: gap is 2e+18"),
    ],
)
def test_the_source_of_a_refused_value_is_named(here, collide, monkeypatch, text, words, where):
    """A value of the right type that no run can have is refused after the options are read."""
    (here / "collide.toml").write_text(text)
    collide.refused("run scene.xml -o out.h5", *words, told=where)
    monkeypatch.setenv("COLLIDE_GAP", "3e18")
    (here / "collide.toml").unlink()
    if not words:
        assert "COLLIDE_GAP, options: gap is 3e+18" in collide("run scene.xml -o out.h5").err


@pytest.fixture
def filled(tmp_path, collide) -> Path:
    """The folder `fields` in the current one, a cache with two entries."""
    cache = FieldCache(str(tmp_path / "fields"))
    for key in ("aa", "bb"):
        cache.save(key, {"values": np.arange(300.0)})
    return tmp_path / "fields"


def test_the_cache_is_shown_until_it_is_cleared(filled, collide):
    shown = collide.result("cache --cache-dir fields")
    assert shown["schema"] == "collide.cache/1"
    assert sorted(entry["key"] for entry in shown["entries"]) == ["aa", "bb"]
    assert shown["bytes"] == sum(path.stat().st_size for path in filled.rglob("*.sdf")) > 4800
    assert shown["limit"] == 1 << 30
    assert all(entry["used"].endswith("+00:00") for entry in shown["entries"]), "in UTC"
    FieldCache(str(filled)).save("hull-cc", {"values": np.arange(3.0)})
    words = collide.ok("cache --cache-dir fields").out
    assert "2 signed distance fields, 1 convex hull," in words
    assert "of 1 GiB" in words
    assert len(collide.result("cache clear --cache-dir fields")["removed"]) == 3
    assert collide.result("cache --cache-dir fields")["entries"] == []
    FieldCache(str(filled)).save("aa", {"values": np.arange(3.0)})
    assert "1 signed distance field removed" in collide.ok("cache clear --cache-dir fields").out


def test_a_variable_says_where(filled, collide, monkeypatch):
    monkeypatch.setenv("COLLIDE_CACHE_DIR", "fields")
    assert len(collide.result("cache")["entries"]) == 2


def test_a_file_says_where(filled, collide):
    Path("collide.toml").write_text('cache-dir = "fields"\ncache-limit = "2MiB"\n')
    shown = collide.result("cache")
    assert (len(shown["entries"]), shown["limit"]) == (2, 2 << 20)
    assert collide.result("cache --cache-limit 0B")["limit"] == 0


test_wrong_words = refusals("cache", ("burn", "burn"), ("--cache-limit much", "memory size"))


def main(*words: str) -> str:
    """A program that calls the command line with these words, and prints its exit code."""
    return f"from collidecli.cli.main import main; print(main({[*words]}), end=' ')"


def run(words: str) -> str:
    samples = Path(__file__).parents[2] / "samples"
    return main(
        *(
            "run",
            *words.replace("samples", str(samples)).split(),
            "--frames",
            "0",
            "-o",
            "out.h5",
            "-q",
        )
    )


NONE_OF_A_RUN = (
    "rich psutil numpy.ma fractions tomllib html xml.etree.ElementTree matplotlib scipy "
)
UNUSED = {
    "the package": ("import collidecli", "numpy warp h5py pxr mujoco", ""),
    "its plugin of pytest": (
        "import collidecli.pytest_plugin",
        "warp pxr mujoco h5py numpy click rich",
        "",
    ),
    "an output that exists": (
        main("run", "scene.xml", "-o", "motion.h5"),
        "warp mujoco pxr h5py numpy",
        "3 ",
    ),
    "a run of MJCF": (
        run("samples/02_humanoid/humanoid.xml -t samples/02_humanoid/motion.h5"),
        NONE_OF_A_RUN + "pxr",
        "0 ",
    ),
    "a run of USD": (run("samples/01_usd_pile/pile.usda"), NONE_OF_A_RUN + "mujoco", "0 "),
}
"""Programs, modules that they do not import, as some take seconds, and what they print."""


@pytest.mark.parametrize("name", UNUSED)
def test_only_what_is_used_is_imported(here, name):
    code, unused, printed = UNUSED[name]
    code = f"import sys; {code}; print([name for name in {unused.split()} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == f"{printed}[]\n", done.stderr
