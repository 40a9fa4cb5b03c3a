"""Where an option's value comes from: flag, variable, file, default."""

from __future__ import annotations

import json

import pytest

from collidecli.cli.option_types import MemorySize

PLAIN = ("run", "scene.xml", "-t", "motion.h5", "--force", "--device", "cpu")
RUN = (*PLAIN, "--json")


def broad_phase(answer) -> str:
    assert answer.code == 0, answer.err
    return json.loads(answer.out)["broad_phase"]


def test_flag_before_variable_before_file_before_default(here, collide, monkeypatch):
    assert broad_phase(collide(*RUN)) == "explicit"
    (here / "collide.toml").write_text('broad-phase = "nxn"\n')
    assert broad_phase(collide(*RUN)) == "nxn"
    monkeypatch.setenv("COLLIDE_BROAD_PHASE", "sap")
    assert broad_phase(collide(*RUN)) == "sap"
    assert broad_phase(collide(*RUN, "--broad-phase", "explicit")) == "explicit"


def test_a_verbs_own_table_comes_before_the_rest_of_the_file(here, collide):
    (here / "collide.toml").write_text('broad_phase = "nxn"\n[run]\nbroad_phase = "sap"\n[inspect]\nall = true\n')
    assert broad_phase(collide(*RUN)) == "sap"


def test_config_names_another_file(here, collide):
    (here / "collide.toml").write_text('broad-phase = "nxn"\n')
    (here / "ci.toml").write_text('broad-phase = "sap"\n')
    assert broad_phase(collide(*RUN, "--config", "ci.toml")) == "sap"


def test_every_kind_of_value(here, collide):
    text = 'gap = 0.025\nthreads = 2\nforce = true\nmemory-limit = "1GiB"\ntrajectory = "motion.h5"\njson = true\n'
    (here / "collide.toml").write_text(text)
    result = json.loads(collide("run", "scene.xml").out)
    assert result["contacts"] == 14
    assert collide("run", "scene.xml").code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('broad-fase = "sap"', ("'broad-fase'", "broad-phase")),
        ("[run]\nthread = 2", ("[run] thread", "threads")),
        ("[ran]\nthreads = 2", ("[ran]", "run")),
        ("repeats = 3", ("'repeats'",)),
        ("gap = [1]", ("'gap'",)),
        ("gap = -1", ("'--gap'", "collide.toml")),
        ("threads = 1.5", ("'--threads'", "collide.toml")),
        ("threads = true", ("'--threads'", "collide.toml")),
        ('static-pairs = "maybe"', ("--static-pairs", "collide.toml")),
        ("gap = ", ("not TOML", "collide.toml")),
        ("gap = " + "[" * 100_000, ("nested too deep", "collide.toml")),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)
def test_a_faulty_file_is_refused_by_name(here, collide, text, words):
    (here / "collide.toml").write_text(text)
    answer = collide(*PLAIN)
    assert (answer.code, answer.out) == (2, "")
    for word in words:
        assert word in answer.err


def test_a_faulty_variable_is_refused_and_an_unknown_one_is_noticed(here, collide, monkeypatch):
    monkeypatch.setenv("COLLIDE_THREADS", "few")
    answer = collide(*RUN)
    assert answer.code == 2
    assert "the value is from COLLIDE_THREADS" in answer.err
    monkeypatch.delenv("COLLIDE_THREADS")
    monkeypatch.setenv("COLLIDE_BROADPHASE", "sap")
    assert "COLLIDE_BROAD_PHASE" in collide(*RUN).err


def test_another_verbs_options_have_variables_of_their_own(here, collide, monkeypatch):
    monkeypatch.setenv("COLLIDE_RECORD_FRAMES", "3")
    monkeypatch.setenv("COLLIDE_OUTPUT", "elsewhere.h5")
    assert collide("record", "scene.xml").code == 0
    assert (here / "scene.motion.h5").exists()
    assert broad_phase(collide(*RUN)) == "explicit"
    assert (here / "elsewhere.h5").exists()


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1000", 1000),
        ("4GiB", 4 << 30),
        ("4G", 4 << 30),
        ("4gb", 4_000_000_000),
        ("1.5 KiB", 1536),
        ("512MB", 512_000_000),
        ("2T", 2 << 40),
    ],
)
def test_memory_sizes(text, size):
    assert MemorySize().convert(text, None, None) == size


@pytest.mark.parametrize("name", ["COLLIDE_THREADS", "COLLIDE_RUN_THREADS"])
def test_the_variable_of_a_bad_value_is_named(here, collide, monkeypatch, name):
    monkeypatch.setenv(name, "many")
    answer = collide(*PLAIN)
    assert answer.code == 2
    assert f"\n  the value is from {name}; collide run --help" in answer.err


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
    answer = collide("run", "scene.xml", "-o", "out.h5", *words)
    assert (answer.code, where in answer.err) == (2, True), answer.err
    monkeypatch.setenv("COLLIDE_GAP", "3e18")
    (here / "collide.toml").unlink()
    if not words:
        assert "COLLIDE_GAP, options: gap is 3e+18" in collide("run", "scene.xml", "-o", "out.h5").err
