"""Preparation of URDF for MuJoCo's compiler: content that it ignores is stored or reported."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element, SubElement

from abd.scene.importers.robots.assets import Assets
from abd.scene.importers.robots.compiled import FAR, ignored_range
from abd.scene.importers.robots.xml_tree import SCALE_REMEDY, Tree, is_scale, number
from abd.scene.schema.findings import did_you_mean

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
KNOWN = {
    "robot": ("link", "joint", "material", "mujoco"),
    "link": ("inertial", "visual", "collision"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
}
"""Supported elements; others are reported."""
SIZES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}
"""Shapes, and the attributes that must be above 0."""


@dataclass
class Urdf:
    """Content of a URDF file that MuJoCo does not store.

    Attributes:
        velocity_limits: [m/s or rad/s] by joint; floating: joints of type floating by child link.
    """

    tree: Tree
    assets: Assets
    velocity_limits: dict[str, float] = field(default_factory=dict)
    floating: dict[str, str] = field(default_factory=dict)

    def prepared(self) -> str:
        """Return the XML for MuJoCo.

        Raises:
            SceneError: the tree of links, shapes or paths have problems.
        """
        self._drop_unknown()
        self._check_tree()
        self._note_missing_bounds()
        folder = self.assets.read_compilers(self.tree.root.iterfind("mujoco/compiler"))
        for link in self.tree.root.findall("link"):
            self._link(link, folder)
        for joint in self.tree.root.findall("joint"):
            self._joint(joint)
        self._settings()
        return self.tree.text()

    def _drop_unknown(self) -> None:
        dropped: Counter[str] = Counter()
        root = self.tree.root
        for parent in (root, *root.findall("link"), *root.findall("joint")):
            for child in list(parent):
                if child.tag.startswith("xacro:"):
                    remedy = "run xacro first, or rename the file to .xacro"
                    self.tree.wrong(child, f"<{child.tag}> is a macro, not URDF", None, remedy)
                if child.tag not in KNOWN[parent.tag]:
                    dropped[f"<{child.tag}>"] += 1
                    parent.remove(child)
        if dropped:
            listed = ", ".join(f"{count} {name}" for name, count in sorted(dropped.items()))
            self.tree.notes.append(f"not supported: {listed}")

    def _check_tree(self) -> None:
        """Links and joints form one tree."""
        root = self.tree.root
        links = {}
        for link in root.findall("link"):
            name = link.get("name", "")
            if name in links or not name:
                self.tree.wrong(link, f"two links have the name '{name}'" if name else "a link has no name", name)
            links[name] = link
        above: dict[str, tuple[str, Element]] = {}
        taken: set[str] = set()
        for joint in root.findall("joint"):
            kind, name = joint.get("type", ""), joint.get("name", "")
            if name in taken or not name:
                self.tree.wrong(joint, f"two joints have the name '{name}'" if name else "a joint has no name", name)
            taken.add(name)
            if kind not in JOINT_TYPES:
                remedy = did_you_mean(kind, JOINT_TYPES) or f"known are {', '.join(JOINT_TYPES)}"
                self.tree.wrong(joint, f"joint '{name}': there is no joint type '{kind}'", kind, remedy)
            ends = [end.get("link", "") if (end := joint.find(tag)) is not None else "" for tag in ("parent", "child")]
            for tag, end in zip(("parent", "child"), ends):
                if end not in links:
                    remedy = did_you_mean(end, links)
                    self.tree.wrong(joint, f"joint '{name}': its {tag} '{end}' is not a link", end, remedy)
            parent, child = ends
            if child in above:
                message = f"joint '{name}': link '{child}' is already the child of joint '{above[child][1].get('name')}'"
                self.tree.wrong(joint, message, child, "a link must have one parent; close loops in the scene file")
            above.setdefault(child, (parent, joint))
        if not links:
            self.tree.wrong(root, "the robot has no links")
        self._check_cycles(links, above)
        roots = [name for name in links if name not in above]
        if len(roots) > 1:
            message = f"{len(roots)} links are not the child of a joint: {', '.join(roots[:5])}"
            self.tree.wrong(links[roots[1]], message, roots, "a robot must have one root link: add joints, or remove links")
        self.tree.raise_problems()

    def _check_cycles(self, links: dict[str, Element], above: dict[str, tuple[str, Element]]) -> None:
        sound: set[str] = set()
        for name in links:
            path: list[str] = []
            while name in above and name not in sound:
                if name in path:
                    circle = path[path.index(name) :]
                    message = f"the joints form a cycle: {' <- '.join([*circle, circle[0]])}"
                    self.tree.wrong(above[name][1], message, circle, "remove one of the joints; close loops in the scene file")
                    break
                path.append(name)
                name = above[name][0]
            sound.update(path)

    def _note_missing_bounds(self) -> None:
        """Add a note about joints without the bounds that their types need."""
        bare = []
        for joint in self.tree.root.findall("joint"):
            limit = joint.find("limit")
            if joint.get("type") in ("revolute", "prismatic") and (limit is None or not limit.attrib.keys() & {"lower", "upper"}):
                bare.append(f"'{joint.get('name', '')}'")
        if bare:
            message = "revolute and prismatic joints without lower and upper in <limit>, which URDF requires, are not limited"
            self.tree.notes.append(f"{message}: {', '.join(bare)}")

    def _link(self, link: Element, folder: str) -> None:
        """Shapes, colors and mass of one link; `folder`: of meshes with relative paths."""
        name = link.get("name")
        mass = link.find("inertial/mass")
        if mass is not None and number(mass.get("value"), 0.0) == 0.0:
            link.remove(link.find("inertial"))
        elif mass is not None and number(mass.get("value")) < 0.0:
            self.tree.wrong(mass, f"link '{name}': its mass {mass.get('value')} is negative", mass.get("value"))
        for shape in [*link.findall("collision"), *link.findall("visual")]:
            if not self._shape(name, shape):
                link.remove(shape)
        if link.find("collision") is not None:
            visual = next((one for one in link.findall("visual") if one.find("material") is not None), None)
            for collision in link.findall("collision"):
                if visual is not None and collision.find("material") is None:
                    collision.append(visual.find("material"))
            for one in link.findall("visual"):
                link.remove(one)
        for shape in [*link.findall("collision"), *link.findall("visual")]:
            for mesh in shape.iter("mesh"):
                mesh.set("filename", self.assets.key(mesh.get("filename", ""), folder))

    def _shape(self, link: str, shape: Element) -> bool:
        """Whether a collision or visual element is one that can be taken."""
        geometry = shape.find("geometry")
        one = next(iter(geometry), None) if geometry is not None else None
        if one is None or one.tag not in (*SIZES, "mesh"):
            kind = "no geometry" if one is None else f"a geometry <{one.tag}>"
            self.tree.notes.append(f"link '{link}': a {shape.tag} with {kind} is ignored")
            return False
        if one.tag == "mesh":
            if not is_scale(one):
                message = f"link '{link}': the mesh cannot have the scale {one.get('scale')!r}"
                self.tree.wrong(one, message, one.get("scale"), SCALE_REMEDY)
            return is_scale(one)
        sizes = [number(word) for key in SIZES[one.tag] for word in one.get(key, "nan").split()]
        if not min(sizes) >= 0.0:
            self.tree.wrong(one, f"link '{link}': the sizes of its {one.tag} must be positive", sizes)
            return False
        if min(sizes) == 0.0:
            self.tree.notes.append(f"link '{link}': a {shape.tag} <{one.tag}> of size 0 is ignored")
            return False
        return True

    def _joint(self, joint: Element) -> None:
        """Limits that MuJoCo would lose, and bounds without end."""
        if joint.get("type") == "floating":
            # MuJoCo has free bodies below the world only; `compile_robot` adds the joint to any
            self.floating[joint.find("child").get("link")] = joint.get("name", "")
            joint.set("type", "fixed")
        name, limit, mimic = joint.get("name", ""), joint.find("limit"), joint.find("mimic")
        if limit is not None:
            bounds = {key: number(limit.get(key), 0.0) for key in ("effort", "velocity")}
            for key, bound in bounds.items():
                if not bound >= 0.0:
                    text = f"its {key} '{limit.get(key)}' is ignored: it must be a positive number"
                    self.tree.notes.append(f"joint '{name}': {text}")
                if not 0.0 <= bound < math.inf:
                    del limit.attrib[key]
            if 0.0 < bounds["velocity"] < math.inf:
                self.velocity_limits[name] = bounds["velocity"]
            ends = [number(limit.get(key), 0.0) for key in ("lower", "upper")]
            if any(map(math.isnan, ends)):
                given = [limit.get("lower"), limit.get("upper")]
                self.tree.wrong(limit, f"joint '{name}': the bounds of its range must be numbers", given)
            elif ends[0] > ends[1] and joint.get("type") != "continuous":
                self.tree.notes.append(f"joint '{name}': {ignored_range('range', *ends)}")
            if any(ends):  # an end that is not given is 0
                limit.attrib |= {key: repr(max(-FAR, min(end, FAR))) for key, end in zip(("lower", "upper"), ends)}
            if joint.get("type") == "continuous" and any(limit.get(key) for key in ("lower", "upper")):
                self.tree.notes.append(
                    f"joint '{name}' is continuous: its lower and upper limits are ignored, as URDF specifies"
                )
        leader = name if mimic is None else mimic.get("joint")
        if leader not in {one.get("name") for one in self.tree.root.findall("joint")}:
            self.tree.wrong(mimic, f"joint '{name}': it mimics '{leader}', which is not a joint", leader)
        elif mimic is not None and leader == name:
            self.tree.wrong(mimic, f"joint '{name}' mimics itself", leader, "give the joint that it follows")

    def _settings(self) -> None:
        """MuJoCo neither drops nor merges anything itself."""
        own = self.tree.root.find("mujoco")
        own = SubElement(self.tree.root, "mujoco") if own is None else own
        compiler = own.find("compiler")
        compiler = SubElement(own, "compiler") if compiler is None else compiler
        compiler.attrib |= {"discardvisual": "false", "fusestatic": "false", "strippath": "false"}
