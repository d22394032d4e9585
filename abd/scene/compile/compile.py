"""Compilation of a scene into the frozen arrays of a `Model`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from abd.errors import Problem, SceneError
from abd.joint_list import JointCopies, JointList
from abd.joint_model import Coupling, Joint
from abd.joints.closure.redundancy import CLOSED, check_closure, open_by
from abd.joints.closure.start_rates import fitting_velocities
from abd.joints.types import TYPES
from abd.model import WORLD, Bodies, Elasticity, Kind, Materials, Mesh, Model, affine_matrices
from abd.scene.checks.checks import check_scene
from abd.scene.compile.bodies import BodyRecord, Records, compile_bodies, notes_of
from abd.scene.compile.joint_settings import compile_coupling, start_notes
from abd.scene.compile.joints import compile_joint, compile_joint_copies, joint_ends
from abd.scene.compile.plausibility import plausibility_notes
from abd.scene.compile.scales import default_kappa
from abd.scene.compile.settings import filtered_pairs, materials_of, settings_of, solver_notes, with_tolerances
from abd.scene.schema.findings import as_problem, did_you_mean, located
from abd.scene.schema.schema import SceneSpec


def compile_scene(spec: SceneSpec) -> Model:
    """Resolve a scene completely; bodies with equal surfaces, scales and internal frames share one `Mesh`.

    Raises:
        SceneError: all problems: those of `check_scene`, of surfaces and of motions.
    """
    findings = check_scene(spec)
    problems = [as_problem(finding, spec) for finding in findings]
    wrong = {finding.path[1] for finding in findings if finding.path[0] == "body" and len(finding.path) > 1}
    records = compile_bodies(spec, wrong, problems)
    joints = JointList() if problems else _joints(spec, records, problems)
    filtered = np.zeros((0, 2), dtype=np.int64) if problems else filtered_pairs(spec, records.names, problems)
    followed = spec.camera.follow
    if followed is not None and not problems and followed not in records.names:
        remedy = did_you_mean(followed, records.names)
        problems.append(Problem(f"there is no body '{followed}'", key="camera.follow", value=followed, remedy=remedy))
    if problems:
        raise SceneError(problems)

    materials = materials_of(spec)
    meshes, mesh_index = _shared_meshes(records)
    motion_of = [record.motion for record in records.firsts]
    notes = solver_notes(spec.solver)
    notes += [note for record, count in zip(records.firsts, records.counts, strict=True) for note in notes_of(record, count)]
    notes += [
        f"surface '{r.surface.name}': {n}" for r in records.firsts if r.surface for n in r.surface.notes
    ]
    model = Model(
        name=spec.name,
        bodies=_bodies(records, mesh_index, materials, spec),
        meshes=meshes,
        joints=joints,
        couplings=_couplings(spec, joints),
        filtered=filtered,
        camera=spec.camera.model_dump(exclude_defaults=True),
        materials=materials,
        settings=settings_of(spec, records),
        motions={k: motion_of[records.first[k]] for k in records.chosen(one is not None for one in motion_of).tolist()},
    )
    model, moved = _closed(_rigid(with_tolerances(model, spec.solver)))
    model, fitted = fitting_velocities(model)
    notes += [*moved, *fitted, *start_notes(model), *plausibility_notes(spec, records, model)]
    return replace(model, notes=list(dict.fromkeys(notes)))


def _closed(model: Model) -> tuple[Model, list[str]]:
    """Return the model with its exact joints closed by rigid motions, and a note about moved bodies.

    Raises:
        SceneError: no rigid motion closes them.
    """
    joints, start = JointList.of(model.joints), model.bodies.q
    exact = np.flatnonzero((joints.column("enforcement") == "exact") & joints.column("active").astype(bool)).tolist()
    # copies of a joint have the residual of the first one: their bodies are copies too
    first = [joints[k] for k in np.intersect1d(exact, joints.starts)]
    if not first or open_by(replace(model, joints=first, couplings=[]), start).max() <= CLOSED:
        return model, []
    opened = open_by(model, start)
    worst = max(exact, key=lambda k: opened[k].max())
    world, children = model.bodies.world, joints.column("child")[[k for k in exact if opened[k].max() > CLOSED]]
    q = np.where(np.isin(world, world[children])[:, None], check_closure(model, start, exact).q, start)
    moved = int(np.argmax(np.abs(q - start).max(axis=1)))
    distance = np.linalg.norm(q[moved, :3] - start[moved, :3])
    note = (
        f"exact joint '{model.joints[worst].name}' has an initial residual of {opened[worst, 0]:.3g} m, "
        f"{opened[worst, 1]:.3g} rad: bodies were moved to close it, '{model.bodies.names[moved]}' by {distance:.3g} m"
    )
    return replace(model, bodies=replace(model.bodies, q=q)), [note]


def _shared_meshes(records: Records) -> tuple[list[Mesh], np.ndarray]:
    """Meshes in internal coordinates, one per distinct surface, frame and contact radius, which is part of how a body
    looks, and the index (n,) of every body's."""
    meshes: list[Mesh] = []
    known: dict[Hashable, int] = {}
    index = np.full(len(records.firsts), -1, dtype=np.int32)
    for k, record in enumerate(records.firsts):
        if record.surface is None:
            continue
        key = (record.surface, record.body_frame.tobytes(), record.radius)
        if key not in known:
            known[key] = len(meshes)
            meshes.append(_mesh(record))
        index[k] = known[key]
    return meshes, index[records.first]


def _mesh(record: BodyRecord) -> Mesh:
    surface, frame = record.surface, record.body_frame
    vertices = surface.vertices
    if not (frame == np.eye(4)).all():
        vertices = vertices @ frame[:3, :3].T + frame[:3, 3]
    return Mesh(
        name=surface.name,
        vertices=np.ascontiguousarray(vertices),
        triangles=np.ascontiguousarray(surface.triangles, dtype=np.int32),
        edges=np.ascontiguousarray(surface.edges, dtype=np.int32),
        codim_edges=np.ascontiguousarray(surface.codim_edges, dtype=np.int32),
        points=np.ascontiguousarray(surface.points, dtype=np.int32),
        closed=surface.closed,
    )


def _bodies(records: Records, mesh: np.ndarray, materials: Materials, spec: SceneSpec) -> Bodies:
    firsts = records.firsts

    def of_all(values: list, dtype: type = float) -> np.ndarray:
        return np.array(values, dtype=dtype)[records.first]

    def rows(name: str, *shape: int, dtype: type = float) -> np.ndarray:
        return of_all([getattr(record, name) for record in firsts], dtype).reshape(len(records), *shape)

    return Bodies(
        names=records.names,
        kind=rows("kind", dtype=np.int32),
        mesh=mesh,
        plane=rows("plane", 4),
        mass=rows("mass"),
        moment=rows("moment", 3),
        volume=rows("volume"),
        kappa=of_all([np.nan if one.spec.kappa == "auto" else one.spec.kappa for one in firsts]),
        elasticity=of_all([Elasticity[one.spec.elasticity.upper()] for one in firsts], np.int32),
        body_frame=rows("body_frame", 4, 4),
        q=records.q,
        qd=rows("qd", 12),
        force=rows("force", 3),
        torque=rows("torque", 3),
        free_translation=rows("free_translation", 3, dtype=bool),
        rotation_axis=rows("rotation_axis", 3),
        free_rotation=rows("free_rotation", dtype=np.int32),
        material=of_all([materials.names.index(one.spec.material) for one in firsts], np.int32),
        group=of_all([one.spec.group for one in firsts], np.int32),
        world=records.world,
        radius=rows("radius"),
        surface_velocity=np.einsum(
            "nij,nj->ni", rows("body_frame", 4, 4)[:, :3, :3], of_all([one.spec.surface_velocity for one in firsts])
        ),
        color=_colors(firsts, spec)[records.first],
    )


def _colors(records: list[BodyRecord], spec: SceneSpec) -> np.ndarray:
    """Return the colours (n, 4) of the bodies or of their materials; NaN without both."""
    of_material = {material.name: material.color for material in spec.material}
    colors = np.full((len(records), 4), np.nan)
    for row, record in zip(colors, records):
        color = record.spec.color or of_material.get(record.spec.material)
        if color is not None:
            row[:] = (*color, 1.0)[:4]
    return colors


def _rigid(model: Model) -> Model:
    """Return the model with the automatic stiffness of bodies without their own."""
    bodies = model.bodies
    open_ones = np.isnan(bodies.kappa)
    if not open_ones.any():
        return model
    return replace(model, bodies=replace(bodies, kappa=np.where(open_ones, default_kappa(model), bodies.kappa)))


def _joints(spec: SceneSpec, records: Records, problems: list[Problem]) -> JointList:
    """Compile all joints; joints that differ only in names and bodies, between equal bodies in one place, are compiled once."""
    parts: list[Joint | JointCopies] = []
    known: dict[Hashable, Joint] = {}
    for joint in spec.joint:
        try:
            if joint.repeat is not None:
                parts += compile_joint_copies(joint, spec.body, records)
                continue
            parent, child = joint_ends(joint, records.names)
            key = (joint.content("name", "parent", "child"), records.identity(parent), records.identity(child))
            if key not in known:
                known[key] = compile_joint(joint, records)
            parts.append(replace(known[key], name=joint.name, parent=parent, child=child))
        except SceneError as error:
            for problem in error.problems:
                at = located(problem, f"joint.{joint.name}")
                problems.append(replace(at, message=f"joint '{joint.name}': {problem.message}"))
    return JointList(parts + _body_dampers(records))


def _body_dampers(records: Records) -> list[Joint]:
    """Return dampers between the world and the centres of mass of bodies with damping."""
    found = []
    damped = [
        one.kind is Kind.DYNAMIC and bool(one.spec.linear_damping or one.spec.rotary_damping or one.spec.inertial_damping)
        for one in records.firsts
    ]
    for k in records.chosen(damped).tolist():
        record = records[k]
        spec = record.spec
        pose = affine_matrices(record.q[None])[0]
        parameters = {
            "linear_damping": spec.linear_damping + spec.inertial_damping * record.mass,
            "rotary_damping": spec.rotary_damping,
            "direction_damping": tuple((spec.inertial_damping * record.moment).tolist()),
        }
        found.append(
            Joint(
                name=f"damping of {record.name}", type="damper", uid=TYPES["damper"].UID, parent=WORLD, child=k,
                parent_frame=pose, child_frame=np.eye(4), stiffness_mass=record.mass, parameters=parameters, collide=True,
            )
        )  # fmt: skip
    return found


def _couplings(spec: SceneSpec, joints: JointList) -> list[Coupling]:
    if not spec.coupling:
        return []
    names = {joint.name: [measure.name for measure in TYPES[joint.type].coordinates(joint)] for joint in joints}
    index = {name: k for k, name in enumerate(names)}
    return [compile_coupling(coupling, names, index) for coupling in spec.coupling]
