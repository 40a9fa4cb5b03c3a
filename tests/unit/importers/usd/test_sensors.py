"""Contact sensors of USD stages."""

import numpy as np
import pytest

from collidecli.motions.requests import EngineRequest
from collidecli.verbs.label.sensors import SensorRequest, evaluated
from tests.support.usd_scenes import CENTIMETRES, load, write_usda

STAGE = """
def Xform "World" {{
  def Cube "Ground" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{
    double size = 100
    double3 xformOp:translate = (0, 0, -50)
    uniform token[] xformOpOrder = ["xformOp:translate"]
  }}
  def Xform "Robot" (prepend apiSchemas = ["PhysicsRigidBodyAPI"{report}]) {{
    {attributes}
    double3 xformOp:translate = (0, 0, 9)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    def Sphere "foot" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{
      double radius = 10
    }}
    def Sphere "toe" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{
      double radius = 10
      double3 xformOp:translate = (30, 0, 0)
      uniform token[] xformOpOrder = ["xformOp:translate"]
    }}
    def IsaacContactSensor "sensor" {{
      {sensor}
      double3 xformOp:translate = (30, 0, -7)
      uniform token[] xformOpOrder = ["xformOp:translate"]
    }}
  }}
  def Cube "Box" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {{}}
}}
"""
PAIRS = "rel physxContactReport:reportPairs = [</World/Ground>]"


def stage(report: str = "", attributes: str = "", sensor: str = "") -> str:
    return STAGE.format(report=report, attributes=attributes, sensor=sensor)


REPORT = ', "PhysxContactReportAPI"'


@pytest.mark.parametrize(("attributes", "second"), [("", None), (PAIRS, ("/World/Ground",))])
def test_contact_reports_of_physx(tmp_path, attributes, second):
    threshold = "float physxContactReport:threshold = 0.1"
    imported, _ = load(tmp_path, stage(REPORT, f"{attributes}\n{threshold}"), CENTIMETRES)
    declared = imported.sensors()
    one = declared.sensors[0]
    assert one.name == "/World/Robot"
    assert one.first.shapes == ("/World/Robot/foot", "/World/Robot/toe")
    assert one.second.shapes == second
    assert "</World/Robot>: thresholds of force have no effect" in declared.notes[0]
    assert imported.sensors(lambda name: name != one.name).notes == ()


def test_a_contact_sensor_of_isaac_sim_is_a_sphere_on_its_body(tmp_path):
    imported, _ = load(tmp_path, stage(sensor="float radius = 8"), CENTIMETRES)
    (one,) = imported.sensors().sensors
    assert one.region is not None
    assert one.region.volume.size == (0.08,)
    assert one.region.placement is not None
    assert one.region.placement.body == "/World/Robot"
    assert np.allclose(one.region.placement.pose[:3], [0.3, 0.0, -0.07])


def test_without_a_radius_it_is_the_whole_body(tmp_path):
    imported, _ = load(tmp_path, stage(sensor="float radius = -1"), CENTIMETRES)
    assert imported.sensors().sensors[0].region is None


def test_a_disabled_sensor_is_left_out(tmp_path):
    imported, _ = load(tmp_path, stage(sensor="bool enabled = 0"), CENTIMETRES)
    declared = imported.sensors()
    assert declared.sensors == ()
    assert "disabled sensors are left out" in declared.notes[0]
    assert imported.sensors(lambda name: False).notes == ()


def test_values_of_a_stage(tmp_path):
    path = write_usda(tmp_path, stage(REPORT, PAIRS, "float radius = 8"), CENTIMETRES)
    request = SensorRequest(scenes=[str(path)])
    assert isinstance(request, EngineRequest)
    names, (block,) = evaluated(request, lambda labels: (labels.sensors, list(labels.blocks())))
    assert names == ("/World/Robot", "/World/Robot/sensor")
    assert block.count[0, 0].tolist() == [2, 1]
    assert np.allclose(block.distance[0, 0], -0.01)
    assert np.allclose(block.position[0, 0, 1], [0.3, 0.0, -0.005])


def test_a_report_of_a_prim_without_colliders_is_refused(tmp_path):
    text = stage().replace(
        'def Cube "Box" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])',
        'def Xform "Box" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysxContactReportAPI"])',
    )
    imported, _ = load(tmp_path, text, CENTIMETRES)
    assert imported.sensors().refused == {"/World/Box": "the body </World/Box> has no collider"}


ENVIRONMENT = """
    def Xform "env_{k}" {{
      double3 xformOp:translate = ({x}, 0, 0)
      uniform token[] xformOpOrder = ["xformOp:translate"]
      def Cube "table" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{
        double size = 2
        def IsaacContactSensor "left" {{
          float radius = 0.3
          double3 xformOp:translate = (-0.5, 0, 1)
          uniform token[] xformOpOrder = ["xformOp:translate"]
        }}
        def IsaacContactSensor "right" {{
          float radius = 0.3
          double3 xformOp:translate = (0.5, 0, 1)
          uniform token[] xformOpOrder = ["xformOp:translate"]
        }}
      }}
      def Sphere "ball" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {{
        double radius = 0.5
        double3 xformOp:translate = (0.5, 0, 1.49)
        uniform token[] xformOpOrder = ["xformOp:translate"]
      }}
    }}
"""


def test_a_sensor_that_is_fixed_in_an_environment_stands_in_each(tmp_path):
    inside = "".join(ENVIRONMENT.format(k=k, x=10 * k) for k in range(3))
    text = f'def Xform "World" {{\n def Xform "envs" {{\n{inside}\n }}\n}}'
    path = write_usda(tmp_path, text)
    names, (block,) = evaluated(
        SensorRequest(scenes=[str(path)]), lambda labels: (labels.sensors, list(labels.blocks()))
    )
    assert [name.rpartition("/")[2] for name in names] == ["left", "right"]
    assert block.touch[0].tolist() == [[False, True]] * 3
    assert np.allclose(block.position[0, :, 1, 0], [0.5, 10.5, 20.5])
