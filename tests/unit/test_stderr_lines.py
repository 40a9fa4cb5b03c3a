"""Lines that compiled code writes to stderr, some of which are removed."""

import os
import threading

import pytest

from collidecli.errors import InputError
from collidecli.importers.mujoco.compile import collected_messages
from collidecli.motions.scenes import load_scene
from collidecli.stderr_lines import stderr_lines


def without(word: bytes):
    return stderr_lines(lambda lines: [line for line in lines if word not in line])


def test_lines_are_removed_and_kept(capfd):
    os.write(2, b"before\n")
    with without(b"no"):
        os.write(2, b"yes 1\nno 1\nyes 2\nlast without an end")
        assert capfd.readouterr().err == "before\n"
    os.write(2, b"\nafter\n")
    assert capfd.readouterr().err == "yes 1\nyes 2\nlast without an end\nafter\n"


def test_an_error_loses_no_line(capfd):
    def fail() -> None:
        with without(b"no"):
            os.write(2, b"no\nyes\n")
            raise ValueError("told")

    with pytest.raises(ValueError, match="told"):
        fail()
    assert capfd.readouterr().err == "yes\n"


def test_threads_share_stderr(capfd):
    """The first to begin ends first: what the other writes then is neither lost nor delayed beyond
    its end, and each removes its own lines."""
    begun = threading.Event()
    ended = threading.Event()

    def other() -> None:
        with without(b"B"):
            begun.set()
            assert ended.wait(60)
            os.write(2, b"B\ny\n")

    thread = threading.Thread(target=other)
    with without(b"A"):
        thread.start()
        assert begun.wait(60)
        os.write(2, b"A\nB\nx\n")
    assert capfd.readouterr().err == "x\n"
    ended.set()
    thread.join()
    os.write(2, b"A and B\n")
    assert capfd.readouterr().err == "y\nA and B\n"


FAR = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 -1e308 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def test_what_qhull_writes_is_no_output(tmp_path, capfd):
    (tmp_path / "far.obj").write_text(FAR)
    scene = tmp_path / "far.xml"
    mesh = '<asset><mesh name="far" file="far.obj"/></asset>'
    body = '<body><freejoint/><geom type="mesh" mesh="far"/></body>'
    scene.write_text(f"<mujoco>{mesh}<worldbody>{body}</worldbody></mujoco>")
    with pytest.raises(InputError, match="mesh 'far' cannot be used"):
        load_scene((str(scene),), None)
    assert capfd.readouterr().err == ""


def test_the_first_line_of_qhull_is_a_message(capfd):
    with collected_messages() as messages:
        os.write(2, b"ours\nQH6154 Qhull precision error: flat\n\nWhile executing: qhull\n")
    assert messages == ["Qhull: QH6154 Qhull precision error: flat"]
    assert capfd.readouterr().err == "ours\n"
