"""Compare mechanisms without contact with MuJoCo and Exudyn: `python tools/bench/peers.py [--scenes chain ladder net]`.

All programs simulate the same mechanism (`mechanism.py`) with steps of 0.01 s. They advance alternately by blocks of steps, so
that other load of the machine affects all of them; each block starts from the initial state. MuJoCo has its default settings:
joint coordinates for a spanning tree, and soft equations for the other hinges. Exudyn has its default settings with the sparse
solver. It simulates the chain in space; ladder and net have redundant equations in space, and planar bodies instead.

The table contains the time per step and, from the poses at the end of a block, two errors. The hinge error is the largest
distance between the two points of a hinge. The position error is that of the last body, relative to a solution of Exudyn with
steps of h / 20. Integrators of first order (those of MuJoCo and of bdf1) have larger errors than those of second order
(those of Exudyn and of generalized alpha).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from mechanism import DT, TOLERANCE, WORLD, Mechanism  # noqa: E402

import abd  # noqa: E402
from abd.commands.bench import table  # noqa: E402
from scenes import MECHANISMS  # noqa: E402

SIZES = {"chain": (10, 20, 100, 1000), "ladder": (3, 10, 30, 100), "net": (2, 4, 8)}
STEPS, BLOCKS = 50, 5
REFERENCE_STEPS = 20
"""Steps of the reference solution per step."""
LARGEST_REFERENCE = 300
"""Largest number of bodies for which the reference solution is computed."""
Poses = tuple[np.ndarray, np.ndarray]
"""Centres (n, 3) and rotations (n, 3, 3)."""


class Abd:
    """abd; each block starts from a checkpoint."""

    def __init__(self, mechanism: Mechanism, enforcement: str, integrator: str):
        scene = mechanism.scene(enforcement)
        scene.solver.integrator = integrator
        self.simulation = abd.Simulation(scene, device="cpu")
        self.start = self.simulation.checkpoint()
        self.reached = 0.0
        self.tolerance = f"vertices {TOLERANCE:g} m/s"

    def block(self, steps: int) -> float:
        """Advance from the initial state; return the wall time [s]."""
        self.simulation.restore(self.start)
        begin = perf_counter()
        reports = [self.simulation.step() for _ in range(steps)]
        seconds = perf_counter() - begin
        self.reached = max(report.tolerance_achieved for report in reports)
        return seconds

    def poses(self) -> Poses:
        """Return the poses at the end of the last block."""
        pose = self.simulation.model.user_transform(self.simulation.stepper.q)
        return pose[:, :3, 3], pose[:, :3, :3]


class MuJoCo:
    """MuJoCo with its default integrator (semi-implicit Euler), solver and stiffness of equations."""

    def __init__(self, mechanism: Mechanism):
        import mujoco

        self.mujoco = mujoco
        spec = mujoco.MjSpec()
        spec.option.timestep, spec.option.gravity = DT, mechanism.gravity
        bodies, closing = {WORLD: spec.worldbody}, []
        place = {WORLD: np.zeros(3)}
        for parent, child, anchor in in_tree_order(mechanism):
            if child in bodies:
                closing.append((parent, child, anchor))
                continue
            place[child] = mechanism.position[child]
            body = bodies[parent].add_body(name=f"body {child}", pos=place[child] - place[parent])
            body.explicitinertial, body.mass = True, mechanism.mass[child]
            body.inertia, body.ipos = mechanism.inertia[child], np.zeros(3)
            body.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, pos=anchor - place[child], axis=mechanism.axis)
            bodies[child] = body
        for parent, child, anchor in closing:
            data = np.zeros(mujoco.mjNEQDATA)
            data[:3] = anchor - place[child]
            spec.add_equality(
                type=mujoco.mjtEq.mjEQ_CONNECT,
                objtype=mujoco.mjtObj.mjOBJ_BODY,
                name1=f"body {child}",
                name2="world" if parent == WORLD else f"body {parent}",
                data=data,
            )
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self.order = [self.model.body(f"body {k}").id for k in range(len(mechanism.mass))]
        self.tolerance = f"solver {self.model.opt.tolerance:g}" if closing else "explicit"

    def block(self, steps: int) -> float:
        """Advance from the initial state; return the wall time [s]."""
        self.mujoco.mj_resetData(self.model, self.data)
        begin = perf_counter()
        for _ in range(steps):
            self.mujoco.mj_step(self.model, self.data)
        seconds = perf_counter() - begin
        self.mujoco.mj_kinematics(self.model, self.data)
        return seconds

    def poses(self) -> Poses:
        """Return the poses at the end of the last block."""
        return self.data.xpos[self.order].copy(), self.data.xmat[self.order].reshape(-1, 3, 3).copy()


class Exudyn:
    """Exudyn's generalized-alpha with the sparse solver; x and y of planar bodies are x and z of the world."""

    def __init__(self, mechanism: Mechanism, planar: bool, substeps: int = 1):
        import exudyn
        from exudyn import utilities as items

        self.exudyn, self.planar, self.substeps, self.count = exudyn, planar, substeps, len(mechanism.mass)
        system = self.system = exudyn.SystemContainer().AddSystem()
        ground = system.AddObject(items.ObjectGround())
        self.nodes, bodies = [], []
        for k in range(self.count):
            body = self._planar_body(items, mechanism, k) if planar else self._body(items, mechanism, k)
            bodies.append(body)
            x, _, z = mechanism.gravity
            weight = [float(mechanism.mass[k]) * g for g in ((x, z, 0.0) if planar else mechanism.gravity)]
            marker = items.MarkerBodyPosition(bodyNumber=body) if planar else items.MarkerBodyRigid(bodyNumber=body)
            system.AddLoad(items.Force(markerNumber=system.AddMarker(marker), loadVector=weight))
        # maps z, the axis of Exudyn's hinge, to -y
        frame = items.RotationMatrixX(0.5 * np.pi)
        for parent, child, anchor in zip(mechanism.parent, mechanism.child, mechanism.anchor):
            markers = []
            for owner in (parent, child):
                local = anchor if owner == WORLD else anchor - mechanism.position[owner]
                local = [local[0], local[2], 0.0] if planar else local.tolist()
                number = ground if owner == WORLD else bodies[owner]
                kind = items.MarkerBodyPosition if planar else items.MarkerBodyRigid
                markers.append(system.AddMarker(kind(bodyNumber=number, localPosition=local)))
            if planar:
                system.AddObject(items.RevoluteJoint2D(markerNumbers=markers))
            else:
                frames = {"rotationMarker0": frame, "rotationMarker1": frame}
                system.AddObject(items.RevoluteJointZ(markerNumbers=markers, **frames))
        system.Assemble()
        settings = self.settings = exudyn.SimulationSettings()
        settings.timeIntegration.verboseMode = 0
        settings.solutionSettings.writeSolutionToFile = False
        settings.linearSolverType = exudyn.LinearSolverType.EigenSparse
        self.tolerance = f"Newton {settings.timeIntegration.newton.relativeTolerance:g}"

    def _body(self, items, mechanism: Mechanism, k: int) -> int:
        start = {"referenceCoordinates": [*mechanism.position[k], *items.eulerParameters0]}
        self.nodes.append(self.system.AddNode(items.NodeRigidBodyEP(**start, initialVelocities=[0] * 7)))
        properties = {"physicsMass": mechanism.mass[k], "physicsInertia": [*mechanism.inertia[k], 0, 0, 0]}
        return self.system.AddObject(items.ObjectRigidBody(nodeNumber=self.nodes[-1], **properties))

    def _planar_body(self, items, mechanism: Mechanism, k: int) -> int:
        x, _, z = mechanism.position[k]
        self.nodes.append(self.system.AddNode(items.NodeRigidBody2D(referenceCoordinates=[x, z, 0.0])))
        properties = {"physicsMass": mechanism.mass[k], "physicsInertia": mechanism.inertia[k, 1]}
        self.y = mechanism.position[:, 1]
        return self.system.AddObject(items.ObjectRigidBody2D(nodeNumber=self.nodes[-1], **properties))

    def block(self, steps: int) -> float:
        """Advance from the initial state; return the wall time [s]."""
        self.settings.timeIntegration.numberOfSteps = steps * self.substeps
        self.settings.timeIntegration.endTime = steps * DT
        begin = perf_counter()
        self.system.SolveDynamic(self.settings)
        return perf_counter() - begin

    def poses(self) -> Poses:
        """Return the poses at the end of the last block."""
        kind = self.exudyn.OutputVariableType
        read = self.system.GetNodeOutput
        centres = np.array([read(node, kind.Position) for node in self.nodes])
        rotations = np.array([read(node, kind.RotationMatrix) for node in self.nodes]).reshape(-1, 3, 3)
        if self.planar:
            centres = np.column_stack([centres[:, 0], self.y, centres[:, 1]])
            rotations = rotations[:, [0, 2, 1]][:, :, [0, 2, 1]]
        return centres, rotations


def in_tree_order(mechanism: Mechanism) -> list[tuple[int, int, np.ndarray]]:
    """Return the hinges of a spanning tree, breadth first, then those that close loops; each parent precedes its child."""
    hinges = list(zip(mechanism.parent.tolist(), mechanism.child.tolist(), mechanism.anchor))
    hinges_of: dict[int, list[int]] = {}
    for k, (parent, child, _) in enumerate(hinges):
        hinges_of.setdefault(parent, []).append(k)
        hinges_of.setdefault(child, []).append(k)
    reached, used, ordered, queue = {WORLD}, set(), [], [WORLD]
    for body in queue:
        for k in hinges_of.get(body, []):
            if k in used:
                continue
            used.add(k)
            parent, child, anchor = hinges[k]
            other = child if parent == body else parent
            ordered.append((body, other, anchor))
            if other not in reached:
                reached.add(other)
                queue.append(other)
    tree, closing, seen = [], [], {WORLD}
    for hinge in ordered:
        (closing if hinge[1] in seen else tree).append(hinge)
        seen.add(hinge[1])
    return tree + closing


def hinge_error(mechanism: Mechanism, poses: Poses) -> float:
    """Return the largest distance between the two points of a hinge [m]."""

    def points(owner: np.ndarray) -> np.ndarray:
        local = mechanism.anchor - mechanism.position[owner]
        moved = poses[0][owner] + np.einsum("kij,kj->ki", poses[1][owner], local)
        return np.where((owner == WORLD)[:, None], mechanism.anchor, moved)

    return float(np.linalg.norm(points(mechanism.parent) - points(mechanism.child), axis=1).max())


def programs(mechanism: Mechanism, planar: bool) -> dict:
    """Create the simulations of all installed programs."""
    found = {
        "abd exact": Abd(mechanism, "exact", "bdf1"),
        "abd penalty": Abd(mechanism, "penalty", "bdf1"),
        "abd exact, generalized alpha": Abd(mechanism, "exact", "generalized_alpha"),
    }
    for name, make in (("mujoco", MuJoCo), ("exudyn", lambda m: Exudyn(m, planar))):
        try:
            found[name] = make(mechanism)
        except ModuleNotFoundError as missing:
            print(f"skipped: {missing}", file=sys.stderr)
    return found


def measure(scene: str, size: int, steps: int, blocks: int) -> list[dict]:
    """Measure a mechanism and return one row per program."""
    mechanism = MECHANISMS[scene](size).without_surfaces()
    planar = scene != "chain"
    running = programs(mechanism, planar)
    seconds: dict[str, list[float]] = {name: [] for name in running}
    for k in range(blocks + 1):
        for name, program in running.items():
            taken = program.block(steps)
            if k:
                seconds[name].append(1e3 * taken / steps)
    reference = None
    if "exudyn" in running and len(mechanism.mass) <= LARGEST_REFERENCE:
        fine = Exudyn(mechanism, planar, REFERENCE_STEPS)
        fine.block(steps)
        reference = fine.poses()[0][-1]
    rows = []
    for name, program in running.items():
        poses = program.poses()
        rows.append(
            {
                "scene": f"{scene} {size}",
                "program": name,
                "bodies": len(mechanism.mass),
                "joints": len(mechanism.parent),
                "ms": round(median(seconds[name]), 4),
                "ratio": round(median(a / b for a, b in zip(seconds[name], seconds["abd exact"])), 4),
                "hinge_error": hinge_error(mechanism, poses),
                "position_error": None if reference is None else float(np.linalg.norm(poses[0][-1] - reference)),
                "tolerance": program.tolerance,
                "reached": getattr(program, "reached", None),
            }
        )
    return rows


COLUMNS = (
    ("scene", "{scene}"),
    ("program", "{program}"),
    ("bodies", "{bodies}"),
    ("joints", "{joints}"),
    ("ms/step", "{ms:.3g}"),
    ("of abd exact", "{ratio:.3g}"),
    ("hinge error m", "{hinge_error:.1e}"),
    ("position error m", "{position_error:.1e}"),
    ("tolerance", "{tolerance}"),
    ("reached m/s", "{reached:.1e}"),
)


def main() -> int:
    """Print the table; return 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenes", nargs="+", choices=MECHANISMS, default=list(MECHANISMS))
    parser.add_argument("--sizes", nargs="+", type=int, help="numbers of links, rungs or windows per side [SIZES]")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"steps per block [{STEPS}]")
    parser.add_argument("--blocks", type=int, default=BLOCKS, help=f"timed blocks [{BLOCKS}]")
    options = parser.parse_args()
    rows = []
    for scene in options.scenes:
        for size in options.sizes or SIZES[scene]:
            rows += measure(scene, size, options.steps, options.blocks)
            print(f"{scene} {size} done", file=sys.stderr)
    print(table(rows, COLUMNS))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
