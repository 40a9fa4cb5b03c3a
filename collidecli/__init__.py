"""Batch collision detection: every contact of a recorded motion of a scene, in memory or in a file.

>>> import numpy as np
>>> import collidecli
>>> builder = collidecli.ModelBuilder()
>>> ground = builder.add_ground_plane(cfg=collidecli.ShapeConfig(gap=0.05))
>>> cfg = collidecli.ShapeConfig(gap=0.05)
>>> ball = builder.add_shape_sphere(builder.add_body(), radius=0.5, cfg=cfg)
>>> body_q = np.zeros((3, 1, 1, 7))  # frames, worlds, bodies; x y z, qx qy qz qw
>>> body_q[..., 2] = np.array([0.6, 0.52, 0.4]).reshape(3, 1, 1)
>>> body_q[..., 6] = 1.0
>>> contacts = collidecli.collide(builder.finalize(), body_q, device="cpu")
>>> contacts.rigid_contact_count, contacts.cell_start.tolist()
(2, [0, 0, 1, 2])
>>> print(contacts.distance)
[ 0.02 -0.1 ]
>>> contacts.cell(frame=2).normal.tolist()
[[0.0, 0.0, 1.0]]

`run` finds the contacts of scene files as the command `collide run` does, and `open_contacts` reads
a contact set that either wrote. Importing this package imports no other module: each public name is
imported at its first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collidecli.adapters.problem import Problem
    from collidecli.errors import CollideError, InputError, OutputError
    from collidecli.importers.mesh_files import read_mesh
    from collidecli.python.bounds import bounding_boxes
    from collidecli.python.builder import ModelBuilder
    from collidecli.python.contact_set import Contacts, ContactSet
    from collidecli.python.contacts import collide, open_contacts
    from collidecli.python.device_contacts import DeviceContacts
    from collidecli.python.distances import Distances, Shape, distance, signed_distance
    from collidecli.python.recordings import RecordingFile, open_recording
    from collidecli.python.sensors import Sensors, label_sensors
    from collidecli.python.sweeps import ParticleSweep, SelfSweep, Sweep, sweep
    from collidecli.scene.materials import Material, PairMaterial
    from collidecli.scene.model import Model
    from collidecli.scene.motion import Motion
    from collidecli.scene.shape_config import ShapeConfig
    from collidecli.scene.shape_types import ShapeType
    from collidecli.scene.triangle_materials import TriangleMaterials
    from collidecli.verbs.audit.audit import Audit
    from collidecli.verbs.audit.python import audit
    from collidecli.verbs.check.python import check
    from collidecli.verbs.clearance.python import Clearances, clearance
    from collidecli.verbs.diff.python import diff
    from collidecli.verbs.engine.python import problem
    from collidecli.verbs.fidelity.python import fidelity
    from collidecli.verbs.import_.python import import_contacts
    from collidecli.verbs.label.python import Labels, label
    from collidecli.verbs.matrix.python import matrix
    from collidecli.verbs.merge.python import merge
    from collidecli.verbs.probe.arrays import ProbeArrays
    from collidecli.verbs.probe.python import probe
    from collidecli.verbs.profile.python import profile
    from collidecli.verbs.record.python import record
    from collidecli.verbs.run.python import run

_HOME = {
    name: f"collidecli.{module}"
    for module, names in {
        "adapters.problem": "Problem",
        "python.bounds": "bounding_boxes",
        "python.builder": "ModelBuilder",
        "python.contact_set": "Contacts ContactSet",
        "python.contacts": "collide open_contacts",
        "python.device_contacts": "DeviceContacts",
        "python.distances": "Distances Shape distance signed_distance",
        "python.recordings": "RecordingFile open_recording",
        "python.sensors": "Sensors label_sensors",
        "python.sweeps": "ParticleSweep SelfSweep Sweep sweep",
        "verbs.audit.audit": "Audit",
        "verbs.audit.python": "audit",
        "verbs.check.python": "check",
        "verbs.clearance.python": "Clearances clearance",
        "verbs.diff.python": "diff",
        "verbs.engine.python": "problem",
        "verbs.fidelity.python": "fidelity",
        "verbs.import_.python": "import_contacts",
        "verbs.label.python": "Labels label",
        "verbs.matrix.python": "matrix",
        "verbs.merge.python": "merge",
        "verbs.probe.arrays": "ProbeArrays",
        "verbs.probe.python": "probe",
        "verbs.profile.python": "profile",
        "verbs.record.python": "record",
        "verbs.run.python": "run",
        "errors": "CollideError InputError OutputError",
        "importers.mesh_files": "read_mesh",
        "scene.model": "Model",
        "scene.motion": "Motion",
        "scene.materials": "Material PairMaterial",
        "scene.shape_config": "ShapeConfig",
        "scene.shape_types": "ShapeType",
        "scene.triangle_materials": "TriangleMaterials",
    }.items()
    for name in names.split()
}

__all__ = [
    "Material",
    "Model",
    "ModelBuilder",
    "Motion",
    "PairMaterial",
    "Shape",
    "ShapeConfig",
    "ShapeType",
    "TriangleMaterials",
    "read_mesh",
]
__all__ += [
    "Audit",
    "Clearances",
    "ContactSet",
    "Contacts",
    "DeviceContacts",
    "Distances",
    "Labels",
    "ProbeArrays",
    "Problem",
    "RecordingFile",
]
__all__ += [
    "CollideError",
    "InputError",
    "OutputError",
    "ParticleSweep",
    "SelfSweep",
    "Sensors",
    "Sweep",
    "signed_distance",
]
__all__ += [
    "audit",
    "bounding_boxes",
    "check",
    "clearance",
    "collide",
    "diff",
    "distance",
    "fidelity",
    "import_contacts",
    "label",
    "label_sensors",
    "matrix",
]
__all__ += [
    "merge",
    "open_contacts",
    "open_recording",
    "probe",
    "problem",
    "profile",
    "record",
    "run",
    "sweep",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from collidecli.installed_versions import installed_version

        return installed_version("collidecli")
    if name not in _HOME:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
