"""Valid code of a user: checked by mypy (test_scene_schema.py), never run."""

from typing import assert_type

import numpy as np

import abd
from abd.api.body_view import BodyView
from abd.api.contact_patches import ContactPatch, Patches
from abd.api.contact_view import Contacts
from abd.api.joints.joint_view import JointView
from abd.api.step_report import StepReport

scene = abd.Scene("x", gravity=(0, 0, -9.81), solver={"dt": 0.01})
bar = scene.add_body("bar", box=(1, 0.1, 0.1), density=1000, position=np.array([0.5, 0, 0]))
scene.add_body("ball", sphere={"radius": 0.1}, repeat={"count": (2, 1, 1), "step": (1, 0, 0)}, fix=["x"])
scene.add_hinge("pivot", abd.WORLD, bar, anchor=(0, 0, 0), axis=(0, 1, 0), drive={"mode": "pd", "target": "t"})
scene.add_coupling("c", "pivot", [{"coordinate": "other", "factor": 2}])
sim = abd.Simulation(scene, device="cpu")
report = sim.step()
assert_type(report, StepReport)
assert_type(report.time, float)
assert_type(sim.bodies["bar"], BodyView)
assert_type(sim.joints["pivot"], JointView)
assert_type(sim.contacts(), Contacts)
assert_type(sim.contacts().patches(), Patches)
assert_type(sim.contacts().patches()[0], ContactPatch)
for patch in sim.contacts("bar").patches():
    print(patch.bodies, patch.center, patch.force, patch.sticks)
for name, body in sim.bodies.items():
    print(name, body.position, body.quaternion, body.linear_velocity)
body = sim.bodies["bar"]
body.position = (0, 0, 1)
body.apply_force(lambda t, b: b.position, at=(0, 0, 0))
force, torque = sim.joints["pivot"].wrench()
sim.gravity = (0, 0, -1)
sim.materials["default"].mu = 0.3
sim.run(duration=0.5, record="runs/bar", progress=True, on_step=lambda r: r.time < 0.6)
sim.restore(sim.checkpoint())
sensor = sim.add_sensor("z", "position", "bar")
print(sensor.values, sensor.time)
saved: abd.BodyKeys = {"box": (1, 1, 1), "density": 300}
scene.add_body("other", **saved)
