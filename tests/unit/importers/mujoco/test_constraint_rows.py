"""Rows of constraints of a scene in MJCF."""

from collidecli.importers.mujoco.constraint_rows import constraint_rows


def test_warnings_of_the_compiler_are_not_repeated(tmp_path, capfd):
    """Loading the scene has shown them: MuJoCo writes them to stderr unless they are collected."""
    file = tmp_path / "flex.xml"
    file.write_text(
        '<mujoco><worldbody><flexcomp name="cloth" type="grid" count="3 3 1" dim="2" mass="1"'
        ' spacing=".1 .1 .1" radius="0.01"/></worldbody></mujoco>'
    )
    assert constraint_rows(str(file)) == (1, 0)
    assert capfd.readouterr() == ("", "")
