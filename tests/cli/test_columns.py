"""--columns of run: what is written, checked and shown, and what is refused."""

from __future__ import annotations

import json
import shutil

import h5py
import numpy as np
import pytest

from collidecli.scene.mixing import BROUGHT_BY
from collidecli.scene.tables import OPTIONAL_COLUMNS
from collidecli.storage.contact_sets.reader import ContactSet
from tests.cli.conftest import SCENE

RUN = ("run", "scene.xml", "-t", "motion.h5", "--device", "cpu", "--force", "-q")
USD = """#usda 1.0
(
 metersPerUnit = 1
)
def Material "Ice" (prepend apiSchemas = ["PhysicsMaterialAPI"]) {
 float physics:dynamicFriction = 0.125
 float physics:restitution = 0.5
 uniform token physxMaterial:frictionCombineMode = "min"
}
def Plane "floor" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
 uniform token axis = "Y"
}
def Sphere "ball" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "MaterialBindingAPI"]) {
 rel material:binding:physics = </Ice>
}
"""


def test_columns_are_written_checked_and_shown(here, collide):
    scene = here / "scene.xml"
    text = scene.read_text()
    base = '<geom name="base" type="sphere" size="0.5"'
    assert base in text
    scene.write_text(text.replace(base, f'{base} friction="0.25 0.5 0.75" condim="4" priority="1" margin="0.01"'))
    assert collide(*RUN, "--columns", "friction, condim,margin0,torsional_friction").code == 0
    with ContactSet.open(here / "scene.contacts.h5") as contacts:
        count = contacts.contact_count
        assert count > 0
        assert contacts.config["columns"] == ["friction", "condim", "margin0", "torsional_friction"]
        assert contacts.optional_columns == ("friction", "torsional_friction", "condim", "margin0")
        values = {"friction": 0.25, "condim": 4, "torsional_friction": 0.5, "margin0": np.float32(0.01)}
        for name, value in values.items():
            assert contacts.column(name).tolist() == [value] * count
    assert collide("check", "scene.contacts.h5").code == 0
    result = json.loads(collide("inspect", "scene.contacts.h5", "--json").out)
    assert result["material_rule"] == "mujoco"
    assert result["optional_columns"]["condim"] == {"least": [4], "most": [4]}
    shown = collide("inspect", "scene.contacts.h5").out
    assert "torsional_friction" in shown
    with h5py.File(here / "scene.contacts.h5", "r+") as file:
        column = file["rigid_contacts/friction"]
        column[0] = 0.5
    answer = collide("check", "scene.contacts.h5")
    assert answer.code == 1
    assert "friction does not follow from the pair's two surfaces" in answer.out


def test_without_the_option_nothing_changes(here, collide):
    assert collide(*RUN).code == 0
    with ContactSet.open(here / "scene.contacts.h5") as contacts:
        assert contacts.optional_columns == ()
        assert "columns" not in contacts.config
    assert json.loads(collide("inspect", "scene.contacts.h5", "--json").out)["optional_columns"] == {}


def test_a_usd_scene(here, collide):
    (here / "s.usda").write_text(USD)
    assert collide("run", "s.usda", "--device", "cpu", "-q", "--columns", "friction,restitution").code == 0
    with ContactSet.open(here / "s.contacts.h5") as contacts:
        assert contacts.materials is not None
        assert contacts.materials.friction.tolist() == [0.5, 0.125]
        assert set(contacts.column("friction").tolist()) == {0.125}
        assert set(contacts.column("restitution").tolist()) == {0.25}
    result = json.loads(collide("inspect", "s.usda", "--json").out)
    assert result["shapes"][1]["material"]["friction_combine"] == "min"
    assert "friction" in collide("inspect", "s.usda").out


def test_no_contact_and_every_column(here, collide):
    assert collide(*RUN, "--frames", "0", "--columns", "friction,friction5,solimp").code == 0
    result = json.loads(collide("inspect", "scene.contacts.h5", "--json").out)
    assert result["contacts"] == 0
    assert result["optional_columns"]["solimp"] == {"least": [], "most": []}
    assert collide("check", "scene.contacts.h5").code == 0
    assert collide("inspect", "scene.contacts.h5").code == 0


@pytest.mark.parametrize("name", ["fricton", "distance", "jacobian0"])
def test_unknown_names_are_refused_with_those_that_are_known(here, collide, name):
    answer = collide(*RUN, "--columns", f"friction,{name}")
    assert answer.code == 2
    assert f"there is no optional column '{name}'" in answer.err
    assert all(column.name in answer.err for column in OPTIONAL_COLUMNS if column.name not in BROUGHT_BY)
    assert not (here / "scene.contacts.h5").exists()


def test_columns_that_the_scene_does_not_give_are_refused(here, collide):
    answer = collide(*RUN, "--columns", "restitution")
    assert answer.code == 2
    assert "does not define a contact's restitution" in answer.err
    assert not (here / "scene.contacts.h5").exists()


def test_several_scenes_and_worlds(here, collide):
    """Templates keep their own surfaces; the joined scene has the rule of its parts."""
    sticky = SCENE.replace('size="0.5"', 'size="0.5" friction="2 0.005 0.0001" margin="2"')
    (here / "sticky.xml").write_text(sticky)
    (here / "plain.xml").write_text(SCENE.replace('size="0.5"', 'size="0.5" margin="2"'))
    common = ("--device", "cpu", "-q", "--force", "-o", "o.h5", "--columns", "friction")
    assert collide("run", "sticky.xml", "plain.xml", *common).code == 0
    with ContactSet.open(here / "o.h5") as contacts:
        assert contacts.material_rule == "mujoco"
        assert [set(contacts.cell(0, world).columns["friction"]) for world in (0, 1)] == [{2.0}, {1.0}]
    assert collide("run", "sticky.xml", "--worlds", "3", *common).code == 0
    with ContactSet.open(here / "o.h5") as contacts:
        assert contacts.column("friction").tolist() == [2.0] * contacts.contact_count
        assert contacts.contact_count == 3
    assert collide("check", "o.h5").code == 0


def test_set_by_variable_and_by_file(here, collide, monkeypatch):
    (here / "collide.toml").write_text('columns = "condim, margin1"\n')
    assert collide(*RUN).code == 0
    with ContactSet.open(here / "scene.contacts.h5") as contacts:
        assert contacts.optional_columns == ("condim", "margin1")
    monkeypatch.setenv("COLLIDE_COLUMNS", "friction")
    assert collide(*RUN).code == 0
    with ContactSet.open(here / "scene.contacts.h5") as contacts:
        assert contacts.optional_columns == ("friction",)


def test_how_to_reduce_needs_a_reduction_and_ids_have_an_option(here, collide):
    answer = collide(*RUN, "--anchor-contact")
    assert answer.code == 2
    assert "anchor_contact applies to the reduction" in answer.err
    assert "--reduce-contacts" in answer.err
    answer = collide(*RUN, "--columns", "contact_id")
    assert answer.code == 2
    assert "--contact-ids" in answer.err
    answer = collide(*RUN, "--betas", "1,x")
    assert answer.code == 2
    assert "no list of numbers" in answer.err


def test_columns_that_options_bring_are_written_and_checked(here, collide):
    options = ["--sticky-contacts", "0.01", "--reduce-contacts", "--moment-matching", "--betas", "10"]
    box = '<body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    (here / "box.xml").write_text(f'<mujoco><worldbody><geom type="plane" size="1 1 1"/>{box}</worldbody></mujoco>')
    assert collide("run", "box.xml", "--device", "cpu", "-q", "--gap", "0.01", *options).code == 0
    with ContactSet.open("box.contacts.h5") as contacts:
        assert contacts.optional_columns == ("friction_scale", "contact_id")
        assert contacts.config["sticky_contacts"] == 0.01
        assert contacts.config["betas"] == [10.0]
        count = contacts.contact_count
        assert count == 4
    assert collide("check", "box.contacts.h5").code == 0
    for name, values, words in (
        ("contact_id", np.zeros(count, np.int64), "not the only one of its cell"),
        ("contact_id", np.full(count, -1), "contact_id is negative"),
        ("friction_scale", np.full(count, np.nan), "friction_scale is negative or not finite"),
    ):
        shutil.copy("box.contacts.h5", "bad.h5")
        with h5py.File("bad.h5", "r+") as file:
            file[f"rigid_contacts/{name}"][:] = values
        assert words in collide("check", "bad.h5").out
