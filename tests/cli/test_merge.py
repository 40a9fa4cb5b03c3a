"""collide merge on the command line: parts of real runs, and what is refused by name."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest

from tests.support.contact_edits import made_up

RUN = ("run", "scene.xml", "--device", "cpu", "-q", "--gap", "1")


@pytest.fixture
def parts(here, collide):
    """a.h5: frames 0 to 7; b.h5: the others; whole.h5: all."""
    for name, frames in (("whole", ":"), ("a", ":8"), ("b", "8:")):
        assert collide(*RUN, "-t", "motion.h5", "--frames", frames, "-o", f"{name}.h5").code == 0
    return here


def sha(path) -> str:
    with h5py.File(path) as file:
        return str(file.attrs["content_sha256"])


def test_a_split_run_is_one_run_again(parts, collide):
    answer = collide("merge", "b.h5", "a.h5", "-o", "ab.h5", "--json")
    assert answer.code == 0, answer.err
    result = json.loads(answer.out)
    assert result["content_sha256"] == sha(parts / "ab.h5") == sha(parts / "whole.h5")
    assert (result["schema"], result["frames"], result["contacts"]) == ("collide.merge/1", 20, 20)
    assert collide("check", "ab.h5").code == 0
    assert collide("diff", "whole.h5", "ab.h5", "--full").code == 0
    assert collide("merge", "b.h5", "a.h5", "-o", "ab.h5").code == 3


def test_sets_of_both_formats_are_merged_to_the_one_asked_for(parts, collide):
    for name, frames in (("whole2", ":"), ("a2", ":8")):
        assert collide(*RUN, "-t", "motion.h5", "--frames", frames, "-o", f"{name}.h5", "--format", "2").code == 0
    assert collide("merge", "a2.h5", "b.h5", "-o", "mixed.h5").err.startswith("error: ")
    assert not (parts / "mixed.h5").exists()
    for version, whole in (("1", "whole"), ("2", "whole2")):
        answer = collide("merge", "a2.h5", "b.h5", "-o", f"mixed{version}.h5", "--format", version)
        assert answer.code == 0, answer.err
        assert sha(parts / f"mixed{version}.h5") == sha(parts / f"{whole}.h5")
        assert collide("check", f"mixed{version}.h5").code == 0
    assert sha(parts / "whole.h5") != sha(parts / "whole2.h5")
    assert collide("diff", "whole.h5", "whole2.h5").code == 0
    assert collide("diff", "mixed2.h5", "whole.h5", "--full").code == 0


def test_contacts_that_were_followed_have_no_union(here, collide):
    """The second part cannot know which id a contact that goes on had in the first."""
    for name, frames in (("a", ":8"), ("b", "8:")):
        args = (*RUN, "-t", "motion.h5", "--contact-ids", "--frames", frames, "-o", f"{name}.h5")
        assert collide(*args).code == 0
    answer = collide("merge", "a.h5", "b.h5", "-o", "ab.h5")
    assert answer.code == 2
    assert "a.h5: /rigid_contacts/contact_id" in answer.err
    assert not (here / "ab.h5").exists()


def test_worlds_of_a_split_recording(here, collide):
    """Three worlds of one motion, of which two and one are recorded apart."""
    with h5py.File(here / "motion.h5", "r+") as file:
        poses = np.repeat(file["body_q"][()], 3, axis=1)
        poses[:, 1, :, 0] += 0.05
        poses[:, 2, :, 2] -= 0.02
        del file["body_q"]
        file["body_q"] = poses
    for name, worlds in (("a", slice(0, 2)), ("b", slice(2, 3))):
        with h5py.File(here / "motion.h5") as source, h5py.File(here / f"{name}.motion.h5", "w") as file:
            for key, value in source.attrs.items():
                file.attrs[key] = value
            for key in ("time", "body_name"):
                source.copy(key, file)
            file["body_q"] = source["body_q"][:, worlds]
        assert collide(*RUN, "-t", f"{name}.motion.h5", "-o", f"{name}.h5").code == 0
    assert collide(*RUN, "-t", "motion.h5", "-o", "whole.h5").code == 0
    answer = collide("merge", "a.h5", "b.h5", "--worlds", "-o", "ab.h5")
    assert answer.code == 0, answer.err
    assert sha(here / "ab.h5") == sha(here / "whole.h5")
    assert collide("merge", "b.h5", "a.h5", "--worlds", "-o", "ba.h5").code == 0
    assert sha(here / "ba.h5") != sha(here / "whole.h5"), "worlds are in the order of the files"
    answer = collide("merge", "a.h5", "b.h5", "a.h5", "--worlds", "-o", "no.h5")
    assert (answer.code, "it has worlds of a.h5" in answer.err) == (2, True)
    answer = collide("merge", "a.h5", "b.h5", "-o", "no.h5")
    assert (answer.code, "has 1 worlds, and a.h5 has 2" in answer.err) == (2, True)


REFUSED = (
    (("a.h5",), "give two contact sets or more"),
    ((), "Missing argument"),
    (("a.h5", "whole.h5"), "step 0 is in"),
    (("a.h5", "whole.h5"), "and so are 7 more"),
    (("a.h5", "b.h5", "--worlds"), "differ from those of a.h5 in /time/step"),
    (("a.h5", "motion.h5"), "not a contact set"),
    (("a.h5", "gap.h5"), "in the option gap: 0.5 and 1.0"),
    (("a.h5", "scene.h5"), "scene_sha256: the scenes are different files"),
    (("a.h5", "columns.h5"), "the option columns"),
    (("a.h5", "nowhere.h5"), "there is no such file"),
    (("a.h5", "b.h5", "--compression", "best"), "'best' is not one of"),
)


def test_what_has_no_union_is_refused_by_name(parts, collide):
    text = (parts / "scene.xml").read_text()
    (parts / "scene2.xml").write_text(text.replace("9 0 0", "8 0 0"))
    last = ("-t", "motion.h5", "--frames", "8:", "--device", "cpu", "-q")
    assert collide("run", "scene.xml", *last, "--gap", "0.5", "-o", "gap.h5").code == 0
    assert collide("run", "scene2.xml", *last, "--gap", "1", "-o", "scene.h5").code == 0
    assert collide(*RUN, *last[:4], "--columns", "friction", "-o", "columns.h5").code == 0
    for arguments, said in REFUSED:
        answer = collide("merge", *arguments, "-o", "out.h5")
        assert (answer.code, said in answer.err) == (2, True), answer.err
        assert len(answer.err.splitlines()) <= 2
        assert not list(parts.glob("*out.h5*"))


def edited(change) -> object:
    """A second part of a made-up set, of frames 6 to 11, changed."""
    part = made_up()
    part.step, part.time = part.step + 30, part.time + 0.06
    change(part)
    return part


def test_models_steps_and_times(here, collide):
    """Sets made up alike, but for one thing that is named."""
    made_up().write(here / "a.h5")
    cases = {
        "/model/shape/margin": lambda p: p.margin.__setitem__(1, 0.5),
        "/model/shape/path": lambda p: p.path.__setitem__(1, "other"),
        "format versions 1.1 and 1.0": lambda p: setattr(p, "version", (1, 1)),
        "step 40 follows step 40": lambda p: p.step.__setitem__(3, 40),
        "step 30 is earlier than step 25": lambda p: setattr(p, "time", p.time - 0.05),
        "/rigid_contacts/strange": lambda p: p.optional.__setitem__("strange", np.zeros(len(p.cell))),
    }
    for said, change in cases.items():
        edited(change).write(here / "b.h5")
        answer = collide("merge", "a.h5", "b.h5", "-o", "out.h5")
        assert (answer.code, said in answer.err) == (2, True), answer.err
        assert len(answer.err.splitlines()) == 2
    edited(lambda _: None).write(here / "b.h5")
    assert collide("merge", "a.h5", "b.h5", "-o", "out.h5").code == 0


def test_a_damaged_part_leaves_nothing(parts, collide):
    with h5py.File(parts / "b.h5") as file:
        place = file["rigid_contacts/normal"].id.get_chunk_info(0)
    data = bytearray((parts / "b.h5").read_bytes())
    data[place.byte_offset + place.size // 2] ^= 0xFF
    (parts / "b.h5").write_bytes(data)
    answer = collide("merge", "a.h5", "b.h5", "-o", "out.h5")
    assert (answer.code, "b.h5: /rigid_contacts/normal" in answer.err) == (2, True)
    assert not list(parts.glob("*out.h5*"))


def test_a_timing_that_no_run_wrote(parts, collide):
    with h5py.File(parts / "b.h5", "r+") as file:
        del file["timing/calls"]
        file["timing/calls"] = 3
    answer = collide("merge", "a.h5", "b.h5", "-o", "out.h5")
    assert (answer.code, "/timing is not as a run writes it" in answer.err) == (2, True)
    assert not list(parts.glob("*out.h5*"))
