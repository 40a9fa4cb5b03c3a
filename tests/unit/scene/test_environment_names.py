"""Roots of environments in paths, by the patterns of the option."""

import pytest

from collidecli.scene.environment_names import local_path, roots_by_pattern

LAB = ("/World/ground", "/World/envs/env_0/a", "/World/envs/env_10/b/c", "/World/envs/light/d")
GUIDE = ("/World/Env_0/a", "/World/Env_1_light/b", "/World/Env_2/c")


@pytest.mark.parametrize(
    ("paths", "pattern", "roots"),
    [
        (LAB, "", {"/World/envs/env_0", "/World/envs/env_10"}),
        (LAB, "none", set()),
        (LAB, "/World/envs/*", {"/World/envs/env_0", "/World/envs/env_10", "/World/envs/light"}),
        (LAB, "/World/envs", {"/World/envs"}),
        (LAB, "/Other/*", set()),
        (GUIDE, "", {"/World/Env_0", "/World/Env_2"}),
        ((*LAB, *GUIDE), "", {"/World/envs/env_0", "/World/envs/env_10"}),
        ((*GUIDE, "/World/env"), "re:/World/Env_[02]", {"/World/Env_0", "/World/Env_2"}),
        (("box", "ball"), "", set()),
    ],
)
def test_roots_by_pattern(paths, pattern, roots):
    assert roots_by_pattern(paths, pattern) == roots


def test_local_paths():
    roots = roots_by_pattern(LAB, "")
    assert [local_path(path, roots) for path in LAB] == [
        "/World/ground",
        "a",
        "b/c",
        "/World/envs/light/d",
    ]
    assert local_path("/World/envs/env_0", roots) == "."
