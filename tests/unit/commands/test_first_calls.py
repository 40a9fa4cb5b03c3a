"""The first calls of `collide` in a process, from several threads: no crash, and no setting of the process changed."""

from __future__ import annotations

import subprocess
import sys

import pytest

CALLS = """
import faulthandler, os, sys, threading
import numpy as np
import collidecli
import warp as wp

THREADS = 8
faulthandler.enable()
settings = lambda: (wp.config.log_level, sys.getswitchinterval(), os.fstat(2).st_ino, os.get_inheritable(2))
before, started, found = settings(), threading.Barrier(THREADS), [None] * THREADS
changed = []

def model(number):
    builder = collidecli.ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_sphere(builder.add_body(), radius=0.5)
    if number % 2:
        builder.add_shape_box(builder.add_body(), hx=0.5, hy=0.5, hz=0.5)
    if number % 3:
        builder.add_shape_capsule(builder.add_body(), radius=0.2, half_height=0.3)
    return builder.finalize()

def first_call(number):
    started.wait()
    made = model(number)
    poses = np.zeros((3, 1, len(made.bodies.path), 7))
    poses[..., 2] = np.array([0.6, 0.52, 0.4]).reshape(3, 1, 1)
    poses[..., 6] = 1.0
    contacts = collidecli.collide(made, poses, device="cpu", memory_limit=1 << 30)
    found[number] = contacts.distance.tobytes()

def watch():
    while not done.wait(0.001):
        if settings() != before:
            changed.append(settings())

done = threading.Event()
watcher = threading.Thread(target=watch)
watcher.start()
threads = [threading.Thread(target=first_call, args=(number,)) for number in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
done.set()
watcher.join()
assert None not in found
assert found[0] == found[6] and found[1] == found[7] and found[2] == found[4] and found[1] == found[5]
assert not changed and settings() == before, (changed[:1], before)
os.write(2, b"by the descriptor\\n")
print("by Python", file=sys.stderr)
"""


def check_first_calls() -> None:
    done = subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "by the descriptor\nby Python\n" in done.stderr


def test_first_calls_from_eight_threads():
    check_first_calls()


@pytest.mark.slow
@pytest.mark.parametrize("run", range(20))
def test_first_calls_from_eight_threads_many_times(run):
    check_first_calls()
