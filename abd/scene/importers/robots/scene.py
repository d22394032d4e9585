"""A robot put together: from a file to the keys of a scene."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np

from abd.errors import SceneError
from abd.scene.importers import compound
from abd.scene.importers.formats import ImportOptions, free_name, unique_names
from abd.scene.importers.robots.assets import Assets
from abd.scene.importers.robots.compiled import Compiled, compile_robot, disables, mujoco
from abd.scene.importers.robots.contacts import Contacts
from abd.scene.importers.robots.couplings import Ties
from abd.scene.importers.robots.drives import add_drives
from abd.scene.importers.robots.joints import Joints
from abd.scene.importers.robots.links import STATIC, Link, collider, find_links, start_of
from abd.scene.importers.robots.mjcf import Mjcf
from abd.scene.importers.robots.unsupported import note_unsupported
from abd.scene.importers.robots.urdf import Urdf
from abd.scene.importers.robots.xml_tree import expanded, read_tree
from abd.scene.schema.joint_schema import WORLD_NAME

DURATION = 2.0
"""Simulated time [s] of an imported scene."""
GREY = (0.5, 0.5, 0.5, 1.0)
"""MuJoCo's color of geoms that give none."""


def read(path: Path, options: ImportOptions) -> tuple[dict[str, object], list[str]]:
    """Return the scene of a URDF or MJCF file, and notes about changed, merged or ignored content.

    Raises:
        SceneError: the problems of the file.
    """
    try:
        return read_robot(path, options).scene()
    except RecursionError:
        raise SceneError.of("has too many nested elements", file=str(path)) from None


def read_robot(path: Path, options: ImportOptions) -> Robot:
    """Read the file of a robot, and compile it by MuJoCo."""
    tree = read_tree(path, expanded(path, options.allow_code) if path.suffix.lower() == ".xacro" else None)
    assets = Assets(path, options.assets)
    if tree.root.tag == "robot":
        source = Urdf(tree, assets)
        compiled = compile_robot(source.prepared(), path, assets, options, floating=source.floating)
    elif tree.root.tag == "mujoco":
        source = Mjcf(tree, assets)
        compiled = compile_robot(source.prepared(), path, assets, options, source.hfields, removed=source.removed)
    else:
        message = f"is neither URDF nor MJCF: its root element is <{tree.root.tag}>"
        raise SceneError.of(message, file=str(path), line=1, remedy="use <robot> or <mujoco>")
    return Robot(path, options, source, compiled)


@dataclass
class Robot:
    """A compiled robot and the parts of its scene.

    Attributes:
        source: data of the file that MuJoCo does not store.
        links, joints, geoms: filled by `scene`; geoms: shapes of bodies by name; joints.coordinates maps MuJoCo's joints;
            data: MuJoCo's state at the start; driving: the actuators that became drives.
    """

    path: Path
    options: ImportOptions
    source: Urdf | Mjcf
    compiled: Compiled
    links: list[Link] = field(default_factory=list)
    joints: Joints | None = None
    geoms: dict[str, list[int]] = field(default_factory=dict)
    data: object = None
    driving: set[int] = field(default_factory=set)
    contacts: Contacts | None = None
    notes: list[str] = field(default_factory=list)

    def scene(self, state: tuple[np.ndarray, np.ndarray] | None = None) -> tuple[dict[str, object], list[str]]:
        """Return the scene and its notes.

        Args:
            state: MuJoCo's qpos (nq,) and qvel (nv,) at the start, instead of the reference pose or the keyframe.
        """
        model = self.compiled.model
        self.notes = notes = [*self.source.tree.notes, *self.compiled.notes]
        is_urdf = isinstance(self.source, Urdf)
        kinds = mujoco.mjtObj
        names = _names(model, kinds.mjOBJ_BODY, model.nbody, "body", set(), notes)
        joint_names = _names(model, kinds.mjOBJ_JOINT, model.njnt, "joint", set(), notes)
        self.data, keyframes = start_of(model, self.options.keyframe, joint_names, self.path, notes, state)
        self.links, of_body = find_links(model, self.data, names, notes)
        if is_urdf:
            self._note_masses(names)
        self.contacts = contacts = Contacts(model, notes)
        bodies, statics = self._bodies(names)
        self.joints = joints = Joints(
            model,
            self.data,
            joint_names,
            self.links,
            self._velocity_limits(joint_names) if is_urdf else {},
            not is_urdf,
            notes,
        )
        massless = {names[mujoco.mj_name2id(model, kinds.mjOBJ_BODY, name)] for name in self.compiled.massless}
        colliding = {k for k, link in enumerate(self.links) if any(map(contacts.touches, self.geoms.get(link.name, ())))}
        joints.absorb(massless, self._tied(of_body) | colliding)
        joints.note_massless(massless)
        bodies = [body for body in bodies if body["name"] not in {self.links[k].name for k in joints.absorbed}]
        collide = disables(model, "FILTERPARENT")
        paired = contacts.paired(of_body)
        for index in range(1, len(self.links)):
            joints.add(index, collide, paired)
            if is_urdf and self.links[index].parent == STATIC and model.body_jntnum[self.links[index].root]:
                joints.filters += [(static, self.links[index].name) for static in statics]
        ties = Ties(
            model,
            self.links,
            of_body,
            joints.coordinates,
            _names(model, kinds.mjOBJ_EQUALITY, model.neq, "equality", set(joint_names), notes),
            _names(model, kinds.mjOBJ_TENDON, model.ntendon, "tendon", set(), notes),
            notes,
        )
        actuators = _names(model, kinds.mjOBJ_ACTUATOR, model.nactuator, "actuator", set(), notes)
        self.driving = add_drives(model, self.data, actuators, joints.coordinates, notes)
        ties.add_all()
        for coordinate in joints.coordinates.values():
            if coordinate.settings:
                keys = next(one for one in joints.joints if one["name"] == coordinate.joint)
                keys.setdefault("coordinate", {})[coordinate.name] = coordinate.settings
        filtered = {pair for pair in joints.filters if WORLD_NAME not in pair} | self._excluded(statics)
        filtered -= {(self.links[a].name, self.links[b].name)[::order] for a, b in paired for order in (1, -1)}
        if disables(model, "CONTACT", "CONSTRAINT"):
            for body in bodies:
                body["group"] = 0
        note_unsupported(model, notes)
        if keyframes:
            notes.append(f"other initial poses for --keyframe: {', '.join(keyframes)}")
        materials, material_pairs = contacts.tables()
        model_name = model.names[: model.names.index(b"\0")].decode(errors="replace")
        tables = {
            "name": self.path.stem if model_name in ("", "MuJoCo Model") else model_name,
            "gravity": self._gravity(),
            "solver": {"dt": float(model.opt.timestep)} if not is_urdf and self.source.timestep else {},
            "output": {"duration": DURATION},
            "material": materials,
            "material_pair": material_pairs,
            "body": bodies + joints.carriers,
            "contact_filter": [{"bodies": list(pair)} for pair in sorted(filtered)],
            "joint": joints.joints + ties.joints,
            "coupling": ties.couplings,
        }
        return tables, list(dict.fromkeys(notes))

    def _velocity_limits(self, names: list[str]) -> dict[str, float]:
        """Return the velocity limits of URDF by the names of joints here."""
        model, limits = self.compiled.model, self.source.velocity_limits
        given = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, k) for k in range(model.njnt)]
        return {name: limits[old] for name, old in zip(names, given) if old in limits}

    def _bodies(self, names: list[str]) -> tuple[list[dict[str, object]], list[str]]:
        """Keys of all bodies, and the names of static ones with a surface."""
        model, data = self.compiled.model, self.data
        taken = set(names)
        planes = np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE).tolist()
        out = [self._plane(geom, taken) for geom in planes]
        for body in self.links[STATIC].members:
            geoms = [geom for geom in np.flatnonzero(model.geom_bodyid == body).tolist() if geom not in planes]
            groups = [[geom] for geom in geoms] if body == 0 else [geoms]
            for group in filter(None, groups):
                kept = self._seen(group)
                name = names[body] if body else self._free_name(group[0], taken)
                pose = np.eye(4)
                pose[:3, :3], pose[:3, 3] = data.xmat[body].reshape(3, 3), data.xpos[body]
                surface = compound.keys([collider(self.compiled, geom, None) for geom in kept])
                keys = {"name": name, "kind": "static", **surface, **compound.frame_keys(pose)}
                out.append(self._covered(keys, kept))
        statics = [str(body["name"]) for body in out]
        for link in self.links[1:]:
            out.append(self._moving(link))
        return out, statics

    def _moving(self, link: Link) -> dict[str, object]:
        """Return keys of a moving link."""
        model = self.compiled.model
        no_planes = np.isin(model.geom_bodyid, link.members) & (model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE)
        kept = self._seen(np.flatnonzero(no_planes).tolist())
        keys: dict[str, object] = {"name": link.name}
        if model.body_mocapid[link.root] >= 0:
            self.notes.append(f"mocap body '{link.name}' does not move until sim.bodies[{link.name!r}].move_to(...)")
            keys |= {"kind": "kinematic", "motion": {"velocity": (0.0, 0.0, 0.0)}}
        keys |= compound.keys([collider(self.compiled, geom, link) for geom in kept]) | compound.frame_keys(link.pose)
        if "kind" in keys:
            return self._covered(keys, kept)
        keys |= {"mass": link.mass, "inertia": _rows(link.inertia), "center_of_mass": tuple(link.center.tolist())}
        keys |= {"velocity": tuple(link.velocity.tolist()), "angular_velocity": tuple(link.spin.tolist())}
        gravcomp, masses = model.body_gravcomp[link.members], model.body_mass[link.members]
        passive = not (disables(model, "SPRING") and disables(model, "DAMPER"))
        lifted = float(gravcomp @ masses) if passive else 0.0
        if lifted:
            if len(set(gravcomp[masses > 0.0])) > 1:
                self.notes.append(f"'{link.name}': gravcomp of its parts acts at their common centre of mass, without torque")
            keys["force"] = tuple((-lifted * np.array(self._gravity())).tolist())
        return self._covered(keys, kept)

    def _seen(self, geoms: list[int]) -> list[int]:
        """Return the colliding geoms; without any, all, which are then visual."""
        return [geom for geom in geoms if self.contacts.touches(geom)] or geoms

    def _plane(self, geom: int, taken: set[str]) -> dict[str, object]:
        data = self.data
        normal = data.geom_xmat[geom].reshape(3, 3)[:, 2]
        offset = float(normal @ data.geom_xpos[geom]) + 0.0
        name = self._free_name(geom, taken)
        if self.compiled.model.body_weldid[self.compiled.model.geom_bodyid[geom]]:
            self.notes.append(f"plane '{name}' of a mocap body is static, because half-spaces cannot move; use a box")
        half_space = {"normal": tuple((normal + 0.0).tolist()), "offset": offset}
        return self._covered({"name": name, "kind": "static", "half_space": half_space}, [geom])

    def _free_name(self, geom: int, taken: set[str]) -> str:
        """Return a unique name for a geom of the world."""
        model = self.compiled.model
        name = _plain(mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_GEOM, geom) or "") or f"world_{geom}"
        free = free_name(name, taken)
        if free != name:
            self.notes.append(f"geom '{name}' of the world has the name '{free}' here")
        return free

    def _covered(self, keys: dict[str, object], geoms: list[int]) -> dict[str, object]:
        """Return the keys of a body with the material of its geoms, and the color of the first geom that has one."""
        model = self.compiled.model
        self.geoms[str(keys["name"])] = geoms
        keys = keys | ({"material": self.contacts.material(str(keys["name"]), geoms)} if geoms else {})
        for geom in geoms:
            own, material = model.geom_rgba[geom].tolist(), int(model.geom_matid[geom])
            if tuple(own) == GREY and material < 0:
                continue
            color = model.mat_rgba[material].tolist() if tuple(own) == GREY else own
            return keys | {"color": compound.color_key(np.array(color))}
        return keys

    def _excluded(self, statics: list[str]) -> set[tuple[str, str]]:
        """Names of bodies of whose shapes none collide because of exclusions; a note lists exclusions of some shapes."""
        model, contacts = self.compiled.model, self.contacts
        excluded = {frozenset((one >> 16, one & 0xFFFF)) for one in model.exclude_signature.tolist()}
        named = frozenset().union(*excluded)
        bodies = {name: set(model.geom_bodyid[geoms].tolist()) & named for name, geoms in self.geoms.items()}
        apart = {(one["parent"], one["child"]) for one in self.joints.joints if not one["collide"]} | {*self.joints.filters}
        out, partly = set(), []
        for a, b in combinations([name for name in bodies if bodies[name]], 2):
            if b in statics or excluded.isdisjoint(frozenset((x, y)) for x in bodies[a] for y in bodies[b]):
                continue
            pairs = [(g, h) for g in self.geoms[a] for h in self.geoms[b] if contacts.collide(g, h) or contacts.in_pair(g, h)]
            ends = [frozenset((int(model.geom_bodyid[g]), int(model.geom_bodyid[h]))) for g, h in pairs]
            hidden = [pair for pair, both in zip(pairs, ends) if both in excluded and not contacts.in_pair(*pair)]
            if len(hidden) == len(pairs):
                out.add((a, b))
            elif hidden and (a, b) not in apart:
                partly.append(f"'{a}' and '{b}'")
        if partly:
            text = f"exclusions of some shapes of {', '.join(partly)} are ignored: filters apply to whole bodies"
            self.notes.append(f"{text}, and others of their shapes collide; for no contact add a [[contact_filter]]")
        return out

    def _tied(self, of_body: np.ndarray) -> set[int]:
        """Return the links of equalities, tendons or exclusions."""
        model = self.compiled.model
        bodies: list[int] = [body for one in model.exclude_signature.tolist() for body in (one >> 16, one & 0xFFFF)]
        for k in range(model.neq):
            for number in (int(model.eq_obj1id[k]), int(model.eq_obj2id[k])):
                if model.eq_objtype[k] == mujoco.mjtObj.mjOBJ_BODY:
                    bodies.append(number)
                elif model.eq_objtype[k] == mujoco.mjtObj.mjOBJ_SITE:
                    bodies.append(int(model.site_bodyid[number]))
        sites = model.wrap_objid[model.wrap_type == int(mujoco.mjtWrap.mjWRAP_SITE)]
        bodies += model.site_bodyid[sites].tolist()
        return {int(of_body[body]) for body in bodies if body >= 0}

    def _note_masses(self, names: list[str]) -> None:
        """Add a note about moving links of URDF with the mass of their shapes."""
        model = self.compiled.model
        bodies = [body.id for body in self.compiled.spec.bodies if model.body_weldid[body.id] and not body.explicitinertial]
        listed = [f"'{names[k]}' ({model.body_mass[k]:.3g} kg)" for k in bodies if model.body_mass[k]]
        if listed:
            self.notes.append(f"links without mass have that of their shapes at 1000 kg/m^3: {', '.join(listed)}")

    def _gravity(self) -> tuple[float, float, float]:
        off = disables(self.compiled.model, "GRAVITY")
        return (0.0, 0.0, 0.0) if off else tuple(float(x) for x in self.compiled.model.opt.gravity)


def _names(model, kind, count: int, default: str, taken: set[str], notes: list[str]) -> list[str]:
    """Return unique names of all objects of a kind, those of the file if a scene allows them; `taken` names are not used."""
    given = [mujoco.mj_id2name(model, kind, k) or "" for k in range(count)]
    names = unique_names([_plain(name) or f"{default}_{k}" for k, name in enumerate(given)], taken)
    notes += [f"{default} {old!r} has the name '{new}' here" for old, new in zip(given, names) if old and old != new]
    return names


def _plain(name: str) -> str:
    """Return a name without leading and trailing spaces and control characters."""
    return "".join(letter if letter.isprintable() else "_" for letter in name.strip())


def _rows(matrix: np.ndarray) -> tuple:
    """Principal values of a diagonal matrix, else its rows."""
    if not (matrix - np.diag(np.diag(matrix))).any():
        return tuple(np.diag(matrix).tolist())
    return tuple(tuple(row) for row in matrix.tolist())
