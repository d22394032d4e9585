"""A compiled scene of ours as a scene of libuipc (pyuipc 0.0.29): same meshes, densities, h, gravity, friction, d_hat.

Left out by libuipc, and refused here: kinematic bodies, fixed degrees of freedom, forces and torques of bodies, contact
that joints or groups switch off between bodies with surfaces, and more than one coefficient of friction.
"""

from __future__ import annotations

import numpy as np
from mechanism import WORLD, Mechanism

from abd.contact.pair_law import widest_activation
from abd.model import Kind, Model, affine_matrices

STRENGTH = 100.0
"""Of joints, as libuipc ships: stiffness over the sum of the masses; ours by default is the same."""
STATIC_DENSITY = 1000.0
AXIS_LENGTH = 0.5
"""Half the distance between the two points that name a hinge's axis [m]."""


class Peer:
    """A world of libuipc.

    Args:
        model: the scene; mechanism: what its joints were made from, if it has joints.
        resistance: stiffness of contact [Pa]; converged: tight tolerances instead of the shipped ones.
        backend: "cuda", or "none", which builds the scene and moves nothing.

    Raises:
        ValueError: the scene has something that libuipc or this conversion does not know.
    """

    def __init__(
        self,
        model: Model,
        mechanism: Mechanism | None,
        workspace: str,
        resistance: float,
        converged: bool,
        backend: str = "cuda",
    ):
        import uipc

        refuse(model, mechanism)
        uipc.Logger.set_level(uipc.Logger.Level.Warn)
        self.model, self.uipc = model, uipc
        self.scene = uipc.Scene(configuration(uipc, model, converged))
        mu = float(model.materials.mu.max(initial=0.0))
        self.scene.contact_tabular().default_model(mu, resistance)
        self.slots: list = []
        self.place = np.full((len(model.bodies), 2), -1)
        """Slot and instance of every body; half-spaces have none."""
        for group in alike(model):
            self._add_bodies(group)
        self._add_planes()
        if mechanism is not None:
            self._add_hinges(mechanism)
        self.engine = uipc.Engine(backend, workspace)
        self.world = uipc.World(self.engine)
        self.world.init(self.scene)
        if not self.world.is_valid():
            raise ValueError("libuipc does not take the scene: its log says why")

    def step(self) -> None:
        """A frame, and its positions on the host."""
        self.world.advance()
        self.world.retrieve()

    def transforms(self) -> np.ndarray:
        """(n, 4, 4) of the bodies' internal frames."""
        found = affine_matrices(self.model.bodies.q)
        read = [np.asarray(slot.geometry().transforms().view()).reshape(-1, 4, 4) for slot in self.slots]
        for body, (slot, instance) in enumerate(self.place):
            if slot >= 0:
                found[body] = read[slot][instance]
        return found

    def counts(self, frames: int) -> dict[str, float]:
        """Calls per frame of all timers that libuipc has, over further frames; its timers slow it down."""
        self.uipc.Timer.enable_all()
        totals: dict[str, float] = {}

        def add(node: dict) -> None:
            totals[node["name"]] = totals.get(node["name"], 0.0) + node.get("count", 0) / frames
            for child in node.get("children", []):
                add(child)

        for _ in range(frames):
            self.step()
            report = self.uipc.Timer.report_as_json()
            if report:
                add(report)
        self.uipc.Timer.disable_all()
        return totals

    def _add_bodies(self, group: np.ndarray) -> None:
        """Bodies of one mesh, stiffness and density, as instances of one geometry."""
        from uipc import builtin, view
        from uipc.constitution import AffineBodyConstitution
        from uipc.geometry import label_surface, trimesh

        bodies, first = self.model.bodies, group[0]
        kappa, law = float(bodies.kappa[first]), AffineBodyConstitution()
        if bodies.mesh[first] < 0:
            inertia = np.diag(bodies.moment[first].sum() - bodies.moment[first])
            shape = law.create_proxy(
                kappa, float(bodies.mass[first]), np.zeros(3), inertia, float(bodies.volume[first])
            )
        else:
            mesh = self.model.meshes[bodies.mesh[first]]
            shape = trimesh(np.ascontiguousarray(mesh.vertices), np.ascontiguousarray(mesh.triangles, dtype=np.int32))
            label_surface(shape)
            if mesh.closed:
                law.apply_to(shape, kappa, density_of(self.model, first))
            else:
                law.apply_to(shape, kappa, np.eye(12), 1.0)
        shape.instances().resize(len(group))
        view(shape.transforms())[:] = affine_matrices(bodies.q[group])
        rates = affine_matrices(bodies.qd[group])
        rates[:, 3, 3] = 0.0
        view(shape.instances().find(builtin.velocity))[:] = rates
        view(shape.instances().find(builtin.is_fixed))[:] = (bodies.kind[group] == Kind.STATIC).astype(np.int32)
        slot, _ = self.scene.objects().create(f"bodies {len(self.slots)}").geometries().create(shape)
        self.place[group, 0], self.place[group, 1] = len(self.slots), np.arange(len(group))
        self.slots.append(slot)

    def _add_planes(self) -> None:
        from uipc.geometry import halfplane

        for k, (*normal, offset) in enumerate(self.model.bodies.plane.tolist()):
            if np.isfinite(offset):
                plane = halfplane(offset * np.array(normal), np.array(normal))
                self.scene.objects().create(f"plane {k}").geometries().create(plane)

    def _add_hinges(self, mechanism: Mechanism) -> None:
        """All hinges as one geometry; those on the world hold to a fixed body without surface."""
        from uipc import builtin, view
        from uipc.constitution import AffineBodyConstitution, AffineBodyRevoluteJoint

        fixed = AffineBodyConstitution().create_proxy(1e9, 1.0, np.zeros(3), np.eye(3), 1e-3)
        view(fixed.instances().find(builtin.is_fixed))[:] = 1
        world, _ = self.scene.objects().create("world").geometries().create(fixed)

        def ends(owners: np.ndarray) -> tuple[list, np.ndarray]:
            slots = [world if k == WORLD else self.slots[self.place[k, 0]] for k in owners.tolist()]
            return slots, np.where(owners == WORLD, 0, self.place[owners, 1]).astype(np.int32)

        along = AXIS_LENGTH * np.array(mechanism.axis)
        points = (mechanism.anchor - along, mechanism.anchor + along)
        strength = np.full(len(mechanism.parent), STRENGTH)
        joints = AffineBodyRevoluteJoint().create_geometry(
            *points, *ends(mechanism.parent), *ends(mechanism.child), strength
        )
        self.scene.objects().create("hinges").geometries().create(joints)


def configuration(uipc, model: Model, converged: bool) -> dict:
    """Settings of libuipc: those of the scene, and tolerances as shipped or tight."""
    settings = model.settings
    config = uipc.Scene.default_config()
    config["dt"] = settings.dt
    config["gravity"] = [[float(g)] for g in settings.gravity]
    config["integrator"]["type"] = settings.integrator
    config["contact"]["enable"] = int((model.bodies.mesh >= 0).any())
    config["contact"]["d_hat"] = widest_activation(model)
    config["contact"]["friction"]["enable"] = int((model.materials.mu > 0.0).any())
    config["contact"]["eps_velocity"] = settings.eps_v
    if converged:
        config["newton"]["semi_implicit"]["enable"] = 0
        config["newton"]["velocity_tol"] = 1e-3
        config["newton"]["transrate_tol"] = 1e-2
        config["linear_system"]["tol_rate"] = 1e-6
    return config


def alike(model: Model) -> list[np.ndarray]:
    """Bodies with a place in space, in groups of one mesh, mass, stiffness and kind of matter."""
    bodies = model.bodies
    kept = np.flatnonzero(~np.isfinite(bodies.plane[:, 3]))
    keys = [(bodies.mesh[k], bodies.mass[k], *bodies.moment[k], bodies.kappa[k]) for k in kept]
    found: dict[tuple, list[int]] = {}
    for body, key in zip(kept.tolist(), keys):
        found.setdefault(key, []).append(body)
    return [np.array(group) for group in found.values()]


def density_of(model: Model, body: int) -> float:
    """[kg/m^3]; of static bodies one that does not matter."""
    mass, volume = model.bodies.mass[body], model.bodies.volume[body]
    return float(mass / volume) if mass > 0.0 and volume > 0.0 else STATIC_DENSITY


def refuse(model: Model, mechanism: Mechanism | None) -> None:
    """Raise ValueError for a scene that would be another one in libuipc."""
    bodies, found = model.bodies, []
    dynamic = bodies.kind == Kind.DYNAMIC
    if (bodies.kind == Kind.KINEMATIC).any():
        found.append("kinematic bodies")
    if ((bodies.free_rotation != 3) | ~bodies.free_translation.all(axis=1))[dynamic].any():
        found.append("fixed degrees of freedom")
    if bodies.force.any() or bodies.torque.any():
        found.append("forces on bodies")
    if any(not model.meshes[k].closed for k in bodies.mesh[dynamic & (bodies.mesh >= 0)]):
        found.append("open surfaces that move")
    if len(model.joints) and mechanism is None:
        found.append("joints that are no hinges of a mechanism")
    if len(model.joints) and (bodies.mesh >= 0).any():
        found.append("joints between bodies with surfaces")
    if len(np.unique(model.materials.mu)) > 1:
        found.append("several coefficients of friction")
    if (bodies.group[dynamic] >= 0).any():
        found.append("groups without contact")
    if found:
        raise ValueError(f"libuipc cannot run this scene as it is: {', '.join(found)}")
