"""Jointed scenes without contact, compared with MuJoCo and Exudyn: `python tools/bench/peers.py [--scenes chain ladder net]`.

All programs get the same arrays (`mechanism`): masses, inertias, hinges, gravity, h = 0.01 s, the same start.
They advance by blocks of steps in turn, each block from the start, so that what else the machine does falls on all.
MuJoCo runs as shipped (tree in joint coordinates, loops closed by soft equations), Exudyn as shipped with its sparse
solver; the chain in space, ladder and net, whose loops have redundant equations in space, with its planar bodies.

The table has the time of a step and the opening of the hinges at the end of a block, computed alike for all from the poses
of the bodies, and how far the last body is from where Exudyn brings it with steps twenty times smaller: integrators of
first order (ours by default, MuJoCo's) are off by much more than those of second order (ours with bdf2, Exudyn's).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

from mechanism import DT, TOLERANCE, WORLD, Mechanism  # noqa: E402
from results_file import write_results  # noqa: E402

import abd  # noqa: E402
from abd.commands.bench import table  # noqa: E402
from scenes import MECHANISMS  # noqa: E402

SCENES = MECHANISMS
SIZES = {"chain": (10, 20, 100, 1000), "ladder": (3, 10, 30, 100), "net": (2, 4, 8)}
QUICK = {"chain": (10, 20), "ladder": (10,), "net": (4,)}
STEPS, BLOCKS = 50, 5
FINER = 20
"""Steps of the reference for one of the others'."""
LARGEST_REFERENCE = 300
"""Bodies."""
Poses = tuple[np.ndarray, np.ndarray]
"""Centres (n, 3) and rotations (n, 3, 3)."""


class Ours:
    """This program; every block starts from a checkpoint."""

    def __init__(self, mechanism: Mechanism, enforcement: str, integrator: str):
        scene = mechanism.scene(enforcement)
        scene.solver.integrator = integrator
        self.simulation = abd.Simulation(scene, device="cpu")
        self.start = self.simulation.checkpoint()
        self.reached = 0.0
        self.tolerance = f"vertices {TOLERANCE:g} m/s"

    def block(self, steps: int) -> float:
        """Advance from the start; wall time [s]."""
        self.simulation.restore(self.start)
        begin = perf_counter()
        reports = [self.simulation.step() for _ in range(steps)]
        seconds = perf_counter() - begin
        self.reached = max(report.tolerance_achieved for report in reports)
        return seconds

    def poses(self) -> Poses:
        """At the end of the last block."""
        pose = self.simulation.model.user_transform(self.simulation.stepper.q)
        return pose[:, :3, 3], pose[:, :3, :3]


class MuJoCo:
    """MuJoCo with its default integrator (semi-implicit Euler), solver and softness of equations."""

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
        """Advance from the start; wall time [s]."""
        self.mujoco.mj_resetData(self.model, self.data)
        begin = perf_counter()
        for _ in range(steps):
            self.mujoco.mj_step(self.model, self.data)
        seconds = perf_counter() - begin
        self.mujoco.mj_kinematics(self.model, self.data)
        return seconds

    def poses(self) -> Poses:
        """At the end of the last block."""
        return self.data.xpos[self.order].copy(), self.data.xmat[self.order].reshape(-1, 3, 3).copy()


class Exudyn:
    """Exudyn's generalized-alpha with its sparse solver; planar bodies have x and z of the world as their x and y."""

    def __init__(self, mechanism: Mechanism, planar: bool, finer: int = 1):
        import exudyn
        from exudyn import utilities as items

        self.exudyn, self.planar, self.finer, self.count = exudyn, planar, finer, len(mechanism.mass)
        system = self.system = exudyn.SystemContainer().AddSystem()
        ground = system.AddObject(items.ObjectGround())
        self.nodes, bodies = [], []
        for k in range(self.count):
            body = self._planar_body(items, mechanism, k) if planar else self._body(items, mechanism, k)
            bodies.append(body)
            x, _, z = mechanism.gravity
            pull = [float(mechanism.mass[k]) * g for g in ((x, z, 0.0) if planar else mechanism.gravity)]
            marker = items.MarkerBodyPosition(bodyNumber=body) if planar else items.MarkerBodyRigid(bodyNumber=body)
            system.AddLoad(items.Force(markerNumber=system.AddMarker(marker), loadVector=pull))
        turned = items.RotationMatrixX(0.5 * np.pi)
        """Brings z, about which Exudyn's hinge turns, to -y."""
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
                frames = {"rotationMarker0": turned, "rotationMarker1": turned}
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
        matter = {"physicsMass": mechanism.mass[k], "physicsInertia": [*mechanism.inertia[k], 0, 0, 0]}
        return self.system.AddObject(items.ObjectRigidBody(nodeNumber=self.nodes[-1], **matter))

    def _planar_body(self, items, mechanism: Mechanism, k: int) -> int:
        x, _, z = mechanism.position[k]
        self.nodes.append(self.system.AddNode(items.NodeRigidBody2D(referenceCoordinates=[x, z, 0.0])))
        matter = {"physicsMass": mechanism.mass[k], "physicsInertia": mechanism.inertia[k, 1]}
        self.level = mechanism.position[:, 1]
        return self.system.AddObject(items.ObjectRigidBody2D(nodeNumber=self.nodes[-1], **matter))

    def block(self, steps: int) -> float:
        """Advance from the start; wall time [s]."""
        self.settings.timeIntegration.numberOfSteps = steps * self.finer
        self.settings.timeIntegration.endTime = steps * DT
        begin = perf_counter()
        self.system.SolveDynamic(self.settings)
        return perf_counter() - begin

    def poses(self) -> Poses:
        """At the end of the last block."""
        kind = self.exudyn.OutputVariableType
        read = self.system.GetNodeOutput
        centres = np.array([read(node, kind.Position) for node in self.nodes])
        rotations = np.array([read(node, kind.RotationMatrix) for node in self.nodes]).reshape(-1, 3, 3)
        if self.planar:
            centres = np.column_stack([centres[:, 0], self.level, centres[:, 1]])
            rotations = rotations[:, [0, 2, 1]][:, :, [0, 2, 1]]
        return centres, rotations


def in_tree_order(mechanism: Mechanism) -> list[tuple[int, int, np.ndarray]]:
    """Hinges such that every parent was a child before, breadth first; those that close loops follow their bodies."""
    hinges = list(zip(mechanism.parent.tolist(), mechanism.child.tolist(), mechanism.anchor))
    touching: dict[int, list[int]] = {}
    for k, (parent, child, _) in enumerate(hinges):
        touching.setdefault(parent, []).append(k)
        touching.setdefault(child, []).append(k)
    reached, used, ordered, queue = {WORLD}, set(), [], [WORLD]
    for body in queue:
        for k in touching.get(body, []):
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


def opening(mechanism: Mechanism, poses: Poses) -> float:
    """Largest distance between the two points of a hinge [m]."""

    def points(owner: np.ndarray) -> np.ndarray:
        local = mechanism.anchor - mechanism.position[owner]
        moved = poses[0][owner] + np.einsum("kij,kj->ki", poses[1][owner], local)
        return np.where((owner == WORLD)[:, None], mechanism.anchor, moved)

    return float(np.linalg.norm(points(mechanism.parent) - points(mechanism.child), axis=1).max())


def programs(mechanism: Mechanism, planar: bool) -> dict:
    """All that are installed."""
    found = {
        "abd exact": Ours(mechanism, "exact", "bdf1"),
        "abd penalty": Ours(mechanism, "penalty", "bdf1"),
        "abd exact bdf2": Ours(mechanism, "exact", "bdf2"),
    }
    for name, make in (("mujoco", MuJoCo), ("exudyn", lambda m: Exudyn(m, planar))):
        try:
            found[name] = make(mechanism)
        except ModuleNotFoundError as missing:
            print(f"{missing}: left out", file=sys.stderr)
    return found


def measure(scene: str, size: int, steps: int, blocks: int) -> list[dict]:
    """One row per program."""
    mechanism = SCENES[scene](size).bare()
    planar = scene != "chain"
    running = programs(mechanism, planar)
    seconds: dict[str, list[float]] = {name: [] for name in running}
    for k in range(blocks + 1):
        for name, program in running.items():
            taken = program.block(steps)
            if k:
                seconds[name].append(1e3 * taken / steps)
    goal = None
    if "exudyn" in running and len(mechanism.mass) <= LARGEST_REFERENCE:
        fine = Exudyn(mechanism, planar, FINER)
        fine.block(steps)
        goal = fine.poses()[0][-1]
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
                "ms_of_blocks": [round(one, 4) for one in seconds[name]],
                "over_abd": round(median(a / b for a, b in zip(seconds[name], seconds["abd exact"])), 4),
                "opening": opening(mechanism, poses),
                "last_body_off": None if goal is None else float(np.linalg.norm(poses[0][-1] - goal)),
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
    ("of abd exact", "{over_abd:.3g}"),
    ("hinges open m", "{opening:.1e}"),
    ("last body off m", "{last_body_off:.1e}"),
    ("tolerance", "{tolerance}"),
    ("reached m/s", "{reached:.1e}"),
)


def main() -> int:
    """Print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenes", nargs="+", choices=SCENES, default=list(SCENES))
    parser.add_argument("--sizes", nargs="+", type=int, help="the same for all scenes [each scene's own]")
    parser.add_argument("--steps", type=int, default=STEPS, help="of a block")
    parser.add_argument("--blocks", type=int, default=BLOCKS)
    parser.add_argument("--quick", action="store_true", help="small sizes, two blocks")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    options = parser.parse_args()
    blocks = 2 if options.quick else options.blocks
    rows = []
    for scene in options.scenes:
        for size in options.sizes or (QUICK if options.quick else SIZES)[scene]:
            rows += measure(scene, size, options.steps, blocks)
            print(f"{scene} {size} done", file=sys.stderr)
    print(table(rows, COLUMNS))
    if options.out:
        import importlib.metadata

        peers = {name: importlib.metadata.version(name) for name in ("mujoco", "exudyn")}
        write_results(options.out, "cpu", rows, steps=options.steps, blocks=blocks, dt_s=DT, peers=peers)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
