"""Transfer of the state of a simulation to a changed scene: `Simulation.recompiled`.

Bodies, joints, couplings and materials are matched by name; joints must also connect the same bodies and have the same type and
coordinates, and couplings must couple the same joints. Matched objects keep their state: poses, velocities, histories of
contacts, friction, joints and integrator, changes made while running, loads and switches. The integrator restarts for
articulations with changed bodies, joints or couplings. Time and work continue. New bodies start in their pose of the scene; new
prescribed bodies start in the pose of their motion at the current time.

Scales that depend on all bodies (tolerances, reach of limits, kappa of bodies without joints) keep their values unless the
new scene defines them. Distant bodies therefore do not affect the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from abd.api.simulation_base import SimulationBase
from abd.api.views import ByName
from abd.contact.pair_law import PairParameters
from abd.joint_list import JointList
from abd.joint_model import Coupling
from abd.joints.coordinates.readings import JointReader
from abd.joints.rows.batches import batches
from abd.joints.rows.change import transfer_memory
from abd.joints.rows.sizes import at_joints
from abd.joints.rows.system import JointSystem
from abd.joints.rows.table import MeasureTable
from abd.joints.types import TYPES
from abd.model import WORLD, Kind, Model, affine_matrices, affine_state
from abd.potentials.sticking import Anchors
from abd.state import State
from abd.tables import arrays_of
from cuda_kernels.shared.contact import SLIDE

if TYPE_CHECKING:
    from abd.scene.scene import Scene

DYNAMICS = ("kind", "mass", "moment", "free_translation", "rotation_axis", "free_rotation")
"""Attributes of bodies on which their acceleration depends."""


def start_of(old: SimulationBase, scene: Scene) -> tuple[Model, State]:
    """Return the compiled changed scene, and the state in which its simulation is created before `transfer`."""
    model = with_scales_of(scene.compile(), scene, old.compiled)
    q = Matches(old.model, model).states(old.stepper.q, model.bodies.q)
    return model, without_contacts(q, model.bodies.qd)


def without_contacts(q: np.ndarray, qd: np.ndarray) -> State:
    """Return a state (n, 12) with an empty list of contact pairs, so that contacts are not searched."""
    return State(q=q.copy(), qd=qd.copy(), pairs=PairParameters())


def with_scales_of(model: Model, scene: Scene, before: Model) -> Model:
    """Return the model with the scales of the model `before`, unless the scene defines them."""
    given, old = scene.spec.solver, before.settings
    settings = model.settings
    if given.tolerance is None and given.tolerance_relative is None:
        settings = replace(settings, tolerance=old.tolerance)
        if given.friction_tolerance is None:
            settings = replace(settings, friction_tolerance=old.friction_tolerance)
    bodies = replace(model.bodies, kappa=_kappa(model, scene, before))
    return replace(model, bodies=bodies, settings=replace(settings, diagonal=old.diagonal))


def _kappa(model: Model, scene: Scene, before: Model) -> np.ndarray:
    """Return kappa (n,) [Pa]: the previous value for bodies with automatic kappa, without joints, of equal mass and volume."""
    new, old = _pairs(_places(before.bodies.names, model.bodies.names))
    given = {spec.name for spec in scene.spec.body if spec.kappa != "auto"}
    kept = np.array([model.bodies.names[body] not in given for body in new], dtype=bool)
    for one, chosen in ((model, new), (before, old)):
        kept &= ~at_joints(one)[chosen]
    for values in ("mass", "volume"):
        kept &= getattr(model.bodies, values)[new] == getattr(before.bodies, values)[old]
    out = model.bodies.kappa.copy()
    out[new[kept]] = before.bodies.kappa[old[kept]]
    return out


class Matches:
    """Correspondence of the objects of two models.

    Attributes:
        body, joint, coupling: (k,) index in the old model of every object of the new model, -1 for new objects.
    """

    def __init__(self, old: Model, new: Model):
        self.old, self.new = old, new
        joints, couplings = zip(*map(_keys, (old, new)), strict=True)
        self.body = _places(old.bodies.names, new.bodies.names)
        self.joint, self.coupling = _places(*joints), _places(*couplings)
        new_body, old_body = _pairs(self.body)
        self._place = np.full(len(old.bodies), -1)  # new index of every old body
        self._place[old_body] = new_body

    def joint_names(self) -> set[str]:
        """Return the names of the matched joints."""
        return {self.new.joints.names[k] for k in _pairs(self.joint)[0].tolist()}

    def jumping(self) -> np.ndarray:
        """Return a mask (n,) of the new bodies whose definition has changed (`_definitions`)."""
        before = dict(zip(self.old.bodies.names, _definitions(self.old), strict=True))
        now = zip(self.new.bodies.names, _definitions(self.new), strict=True)
        return np.array([before.get(name) != definition for name, definition in now], dtype=bool)

    def states(self, q: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        """Map states or velocities q of the old bodies to the new ones (n, 12); `fresh` (n, 12) are values of new bodies.

        A body with a changed internal frame keeps its mesh frame.
        """
        out, (new, old) = fresh.copy(), _pairs(self.body)
        frames, before = self.new.bodies.body_frame[new], self.old.bodies.body_frame[old]
        out[new] = q[old]
        k = np.flatnonzero((frames != before).any(axis=(1, 2)))
        out[new[k]] = affine_state(affine_matrices(q[old[k]]) @ before[k] @ np.linalg.inv(frames[k]))
        return out

    def rows(self, values: np.ndarray, fresh: np.ndarray | float = 0) -> np.ndarray:
        """Map rows of the old bodies to the new bodies (n, ...); `fresh` are the values of new bodies."""
        return _mapped(self.body, values, fresh)

    def coordinates(self, old: JointReader, new: JointReader, values: np.ndarray, fresh: np.ndarray | bool) -> np.ndarray:
        """Map values of the first coordinates of the old joints to those of the new joints; `fresh` are those of others."""
        places = [*zip(old.table.joint.tolist(), old.names, strict=True)][: len(values)]
        found = _places(places, [*zip(self.joint[new.table.joint].tolist(), new.names, strict=True)])
        return _mapped(found, values, fresh)

    def keys(self, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Map keys of old pairs to sorted keys ``min n + max`` of the new bodies; also return their indices in `key`."""
        ends = self._place[np.stack(np.divmod(key, len(self.old.bodies)))]
        kept = np.flatnonzero((ends >= 0).all(axis=0))
        fresh = ends[:, kept].min(axis=0) * len(self.body) + ends[:, kept].max(axis=0)
        order = np.argsort(fresh, kind="stable")
        return fresh[order], kept[order]

    def anchors(self, anchors: Anchors, before: np.ndarray, now: np.ndarray) -> Anchors:
        """Map friction anchors from states of the old bodies (m, 12) to states of the new bodies (n, 12).

        The first body of a pair in the new model carries the anchor (`abd.contact.pairs.Pairs`).
        """
        i, j = np.divmod(anchors.key, len(self.old.bodies))
        a, b = self._place[i], self._place[j]
        dynamic = self.new.bodies.kind == Kind.DYNAMIC
        kept = np.flatnonzero((a >= 0) & (b >= 0) & (dynamic[a] | dynamic[b]))
        i, a, b, kind, share = (one[kept] for one in (i, a, b, anchors.kind, anchors.share))
        turned = dynamic[b] & (~dynamic[a] | (b < a))
        # the arms of rolling and spinning friction do not depend on the order of the bodies
        share = np.where((turned & (kind == SLIDE))[:, None], -share, share)
        first, second = np.where(turned, b, a), np.where(turned, a, b)
        point = np.column_stack([anchors.point[kept], np.ones(len(kept))])[..., None]
        point = (np.linalg.inv(affine_matrices(now[first])) @ affine_matrices(before[i]) @ point)[:, :3, 0]
        key = (first * len(self.body) + second).astype(np.int64)
        order = np.argsort(key, kind="stable")
        return Anchors(key[order], kind[order], point[order], share[order])

    def system(self, system: JointSystem) -> JointSystem:
        """Renumber the joints and couplings of the old joint system."""
        joint = _renumbered(system.row_laws.joint, self.joint)
        coupling = _renumbered(system.row_laws.coupling, self.coupling)
        linear = replace(system.linear, joint=_renumbered(system.linear.joint, self.joint))
        row_laws = replace(system.row_laws, joint=joint, coupling=coupling)
        return replace(system, row_laws=row_laws, linear=linear, table=self.table(system.table))

    def table(self, table: MeasureTable) -> MeasureTable:
        """Renumber the joints of a table of measures."""
        return replace(table, joint=_renumbered(table.joint, self.joint))


def _keys(model: Model) -> tuple[list[tuple], list[tuple]]:
    """Return what identifies the joints (names, bodies, types and coordinates) and the couplings (names and joints)."""
    joints, kinds = JointList.of(model.joints), np.empty(len(model.joints), dtype=object)
    for batch in batches(joints):
        names = (one.name for one in TYPES[batch.first.type].coordinates(batch.first))
        kinds[batch.index] = " ".join((batch.first.type, *names))
    bodies = [*model.bodies.names, WORLD]
    ends = ([bodies[k] for k in pair] for pair in joints.bodies.tolist())
    keys = [(name, *pair, kind) for name, pair, kind in zip(joints.names, ends, kinds.tolist(), strict=True)]
    return keys, [(one.name, *(keys[k] for k in _coupled(one))) for one in model.couplings]


def _definitions(model: Model) -> list[str]:
    """Return texts (n,) of the bodies with all that their accelerations depend on: their inertia and freedoms, their joints and
    couplings, and the inertia and freedoms of the bodies that these connect."""
    columns = (getattr(model.bodies, name).tolist() for name in DYNAMICS)
    own, ends = [*map(repr, zip(model.bodies.names, *columns, strict=True)), "world"], JointList.of(model.joints).bodies
    inner = {"parent": 0, "child": 0, "parent_frame": 0, "child_frame": 0, "stiffness_mass": 0, "length": 0, "drawing": 0}
    frames = ((one.parent_frame.tobytes(), one.child_frame.tobytes()) for one in model.joints)
    links = [(pair, (*both, replace(one, **inner))) for pair, both, one in zip(ends.tolist(), frames, model.joints, strict=True)]
    for one in model.couplings:
        plain = replace(one, joint=0, terms=[replace(term, joint=0) for term in one.terms])
        links.append((ends[list(_coupled(one))].ravel().tolist(), plain))
    of_bodies: list[list[str]] = [[text] for text in own]
    for bodies, definition in links:
        text = repr((definition, [own[k] for k in bodies]))
        for k in set(bodies):
            of_bodies[k].append(text)
    return [" ".join(sorted(texts)) for texts in of_bodies[:-1]]


def _coupled(coupling: Coupling) -> tuple[int, ...]:
    """Return the joints of a coupling."""
    return coupling.joint, *(term.joint for term in coupling.terms)


def _renumbered(index: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Map old numbers to new ones; `found` (k,) has the old number of every new object, -1 for none.

    Removed objects get unused numbers; -1 stays.
    """
    place = len(found) + np.arange(max(int(index.max(initial=-1)), int(found.max(initial=-1))) + 2)
    new, old = _pairs(found)
    place[old] = new
    return np.where(index >= 0, place[np.maximum(index, 0)], -1).astype(index.dtype)


def _pairs(found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return new and old numbers of the matched objects."""
    new = np.flatnonzero(found >= 0)
    return new, found[new]


def _mapped(found: np.ndarray, values: np.ndarray, fresh: np.ndarray | float) -> np.ndarray:
    """Return values (k, ...) of the new objects: those of the matched objects, else `fresh`."""
    out = np.empty((len(found), *values.shape[1:]), dtype=values.dtype)
    out[:] = fresh
    new, old = _pairs(found)
    out[new] = values[old]
    return out


def _places(old: Sequence, new: Sequence) -> np.ndarray:
    """Return the index in `old` of every item of `new`, -1 for none."""
    place = {key: k for k, key in enumerate(old)}
    return np.array([place.get(key, -1) for key in new], dtype=np.int64)


def transfer(old: SimulationBase, new: SimulationBase) -> None:
    """Transfer the state of a simulation to a simulation of a changed scene; see `Simulation.recompiled`."""
    saved = old.checkpoint()
    joints, switches, match = saved["joints"], saved["switches"], Matches(old.model, new.model)
    same = match.joint_names()
    for key in ("changes", "broken", "fast"):
        joints[key] = {name: value for name, value in joints[key].items() if name.split("\n")[0] in same}
    coupled = {new.model.couplings[k].name for k in _pairs(match.coupling)[0].tolist()}
    joints["couplings"] = {name: value for name, value in joints["couplings"].items() if name in coupled}
    joints["springs"] = _rows_with(new.bodies, joints["springs"])
    joints["efforts"] = _efforts(match, old, new, joints["efforts"], same)
    saved["loads"] = {key: one for key, one in saved["loads"].items() if one["body"] in new.bodies}
    for keys in (("pairs", "collide"), ("off",), ("parting",)):
        switches |= _rows_with(new.bodies, {key: switches[key] for key in keys})
    new._restore_joints(joints)
    match = Matches(old.model, new.model)  # with springs
    switches["suspended"] = np.intersect1d(switches["suspended"], np.array([*match.joint_names()], dtype=str))
    q, qd = new.stepper.q, new.stepper.qd
    for body, motion in new.model.motions.items():
        if match.body[body] < 0:
            q[body] = affine_state(motion(old.stepper.worlds.clock))
    moves = (new.model.bodies.kind != Kind.STATIC)[:, None]
    before = saved["q"]
    for name, fresh in (("q", q), ("qd", qd), ("previous_q", q), ("previous_qd", qd)):
        found = match.states(saved[name], fresh)
        saved[name] = found if name.endswith("_q") or name == "q" else np.where(moves, found, fresh)
    anchors = match.anchors(Anchors(**saved["tables"]["anchors"]), before, saved["q"])
    saved["tables"] = _tables(match, old, new, saved) | {"anchors": arrays_of(anchors)}
    saved["coordinates"] = match.coordinates(old.reader, new.reader, old.coordinates, new.coordinates)
    saved["gravity"] = new.gravity if np.array_equal(old.gravity, old.compiled.settings.gravity) else old.gravity
    saved["friction"] = _friction(old, new)
    for key in ("force", "torque"):
        saved[key] = match.rows(saved[key], getattr(new.model.bodies, key))
    saved["energy"] = None  # belongs to the old bodies
    new.restore(saved)
    new._switches.switch_joints(np.flatnonzero(new._switches.off).tolist())
    new.loads.take_functions(old.loads)
    fresh = np.flatnonzero(match.body < 0).tolist()
    if fresh:
        new.stepper.start_contacts(fresh)
    new.stepper.modes.jump(match.jumping() | (saved["gravity"] != old.gravity).any(), constraints=True)
    new.stepper.sleep.disturb()


def _tables(match: Matches, old: SimulationBase, new: SimulationBase, saved: dict) -> dict[str, dict[str, np.ndarray]]:
    """Return the tables of the state (`abd.state.saved_tables`)."""
    tables, stepper, system = saved["tables"], old.stepper, new.backend.system
    bodies = {name: match.rows(value) for name, value in tables["bodies"].items()}
    bodies["stopped"] = np.zeros(len(match.body), dtype=bool)
    states = saved["q"], saved["qd"], saved["previous_q"], saved["previous_qd"]
    coordinates = (match.table(old.reader.table), old.coordinates)
    memory, applied = transfer_memory(
        match.system(old.backend.system), stepper.memory, stepper.applied, system, coordinates, states
    )
    key, places = match.keys(tables["pairs"]["key"])
    pairs = {name: value[places] for name, value in tables["pairs"].items()} | {"key": key}
    joints = {"joints": arrays_of(memory), "laws": arrays_of(applied)}
    return {"bodies": bodies, "pairs": pairs, **joints}


def _efforts(match: Matches, old: SimulationBase, new: SimulationBase, efforts: dict, same: set[str]) -> dict:
    """Return efforts (`Efforts.saved`): those that were set while running on the joints `same`, else those of the scene."""
    before, fresh = old.control.efforts.start, new.control.efforts.start
    remains = np.array([key.split("\n")[0] in same for key in efforts["coordinate"].tolist()], dtype=bool)
    out = {key: efforts[key][remains] for key in ("coordinate", "force", "left")}
    is_set = match.coordinates(old.reader, new.reader, efforts["constant"] != before, False)
    out["constant"] = np.where(is_set, match.coordinates(old.reader, new.reader, efforts["constant"], fresh), fresh)
    return out | {"last": match.coordinates(old.reader, new.reader, efforts["last"], out["constant"])}


def _friction(old: SimulationBase, new: SimulationBase) -> np.ndarray:
    """Return the coefficients of the new scene, except for coefficients that were changed while running."""
    mu = new.model.materials.mu.copy()
    mine, theirs = _pairs(_places(old.model.materials.names, new.model.materials.names))
    now, given = (table[np.ix_(theirs, theirs)] for table in (old.model.materials.mu, old.compiled.materials.mu))
    mu[np.ix_(mine, mine)] = np.where(now != given, now, mu[np.ix_(mine, mine)])
    return mu


def _rows_with(views: ByName, table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Select the rows of a table whose names in the first column, (k,) or (k, 2), are all in `views`."""
    kept = [all(name in views for name in np.atleast_1d(row).tolist()) for row in next(iter(table.values()))]
    return {key: values[np.array(kept, dtype=bool)] for key, values in table.items()}
