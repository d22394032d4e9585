"""`Scene`: plain data that a user builds in code or reads by `load`, and saves, checks and compiles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, Unpack

from abd.errors import Problem, SceneError
from abd.model import Model, Settings
from abd.scene.checks.body_checks import check_body
from abd.scene.checks.checks import check_scene
from abd.scene.compile.compile import compile_scene
from abd.scene.files.overrides import apply_overrides
from abd.scene.files.reader import (
    is_json,
    key_lines,
    parse,
    read_scene,
    read_text,
)
from abd.scene.files.toml_text import scene_toml
from abd.scene.importers.formats import ImportOptions, check_options, find_scene, is_imported, read_imported
from abd.scene.joint_methods import JointMethods
from abd.scene.overlaps.starts import filter_overlaps, free_start
from abd.scene.replicated import replicated
from abd.scene.scaled import scaled
from abd.scene.schema.attributes import KnownAttributes, unknown_attribute
from abd.scene.schema.findings import as_problem, did_you_mean, key_name
from abd.scene.schema.joint_schema import CouplingSpec, JointSpec
from abd.scene.schema.schema import (
    BodySpec,
    CameraSpec,
    ContactFilterSpec,
    MaterialPairSpec,
    MaterialSpec,
    OutputSpec,
    SceneSpec,
    SolverSpec,
    absolute_in,
    body_with_paths,
)
from abd.scene.schema.tables import plain, scene_keys, table
from abd.scene.transformed import transformed

if TYPE_CHECKING:
    from abd.scene.schema.keys import (
        BodyKeys,
        MaterialKeys,
        MaterialPairKeys,
        Numbers,
        OutputKeys,
        SolverKeys,
        Table,
    )

RIGID_IPC_KEYS = ("rigid_body_problem", "scene_type", "args")
"""Top-level keys of which one at least makes a JSON file a scene of rigid-ipc."""


class Scene(KnownAttributes, JointMethods):
    """Bodies, joints, materials and settings, all of them by name.

    The keyword arguments of `add_body` and its kin are the keys of the scene file (`abd schema` lists them). An
    invalid value raises `SceneError` at once; `check` and `compile` report problems between several tables.

    Args:
        gravity: [m/s^2], by default (0, 0, -9.81); solver, output: settings of these tables.

    Attributes:
        spec: the data, `abd.scene.schema.schema.SceneSpec`.
        notes: messages about an imported scene.
        path: file that the scene was read from, None for one built in code.
    """

    __slots__ = ("_taken", "notes", "path", "spec")
    RELATED = (
        ("scene.solver", SolverSpec),
        ("scene.output", OutputSpec),
        ("scene.body(name)", BodySpec),
        ("scene.joint(name)", JointSpec),
        ("scene.camera", CameraSpec),
        ("scene.spec.material[k]", MaterialSpec),
    )

    def __init__(
        self,
        name: str = "scene",
        gravity: Numbers | None = None,
        solver: SolverKeys | Table | None = None,
        output: OutputKeys | Table | None = None,
        **unknown: Never,
    ):
        self.spec = SceneSpec()
        if unknown:
            raise TypeError(str(unknown_attribute(self, next(iter(unknown)), self.RELATED, "argument")))
        self._taken = {}
        self.notes: list[str] = []
        self.path: Path | None = None
        self.name = name
        if gravity is not None:
            self.gravity = gravity
        self.spec.solver = table(SolverSpec, "solver", solver or {})
        self.spec.output = table(OutputSpec, "output", output or {})

    @classmethod
    def from_spec(cls, spec: SceneSpec, notes: Iterable[str] = (), path: Path | None = None) -> Scene:
        """A scene around existing data."""
        scene = cls()
        scene.spec, scene.notes, scene.path = spec, list(notes), path
        return scene

    def __repr__(self) -> str:
        return f"Scene('{self.name}': {len(self.spec.body)} bodies, {len(self.spec.joint)} joints)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scene) and self.spec == other.spec

    __hash__ = None

    @property
    def name(self) -> str:
        """Name of the scene."""
        return self.spec.name

    @name.setter
    def name(self, name: str) -> None:
        self.spec.name = name

    @property
    def gravity(self) -> tuple[float, float, float]:
        """[m/s^2]."""
        return self.spec.gravity

    @gravity.setter
    def gravity(self, gravity: Numbers) -> None:
        self.spec.gravity = plain(gravity)

    @property
    def solver(self) -> SolverSpec:
        """Solver settings; ``scene.solver.dt = 0.005`` sets one."""
        return self.spec.solver

    @property
    def output(self) -> OutputSpec:
        """Length of the run."""
        return self.spec.output

    @property
    def camera(self) -> CameraSpec:
        """Camera of pictures; ``scene.camera.follow = "ball"`` follows a body."""
        return self.spec.camera

    def body(self, name: str) -> BodySpec:
        """The table of a body; ``scene.body("crank").density = 500`` changes it."""
        return _named(self.spec.body, name, "body")

    def joint(self, name: str) -> JointSpec:
        """The table of a joint."""
        return _named(self.spec.joint, name, "joint")

    def coupling(self, name: str) -> CouplingSpec:
        """The table of a coupling."""
        return _named(self.spec.coupling, name, "coupling")

    def add_body(self, name: str, **keys: Unpack[BodyKeys]) -> str:
        """Add a body and return its name, by which joints refer to it.

        Paths of meshes and pose files are relative to the working directory. Besides the keys of the scene file, `mesh`
        takes a mesh in memory, a `trimesh.Trimesh` or a tuple (vertices, faces), and `transform` a (4, 4) pose
        (`abd.scene.schema.tables`).
        """
        body = table(BodySpec, f"body.{name}", {"name": name, **scene_keys(f"body.{name}", keys)})
        body = body_with_paths(body, absolute_in(Path.cwd()))
        self._add("body", body, check_body(body))
        return name

    def add_material(self, name: str, **keys: Unpack[MaterialKeys]) -> str:
        """Add a material and return its name."""
        material = table(MaterialSpec, f"material.{name}", {"name": name, **keys})
        self._add("material", material)
        return name

    def add_material_pair(self, first: str, second: str, **keys: Unpack[MaterialPairKeys]) -> None:
        """Set the contact parameters of two materials, instead of the rule mu = sqrt(mu_a mu_b)."""
        pair = table(MaterialPairSpec, "material_pair", {"between": (first, second), **keys})
        self.spec.material_pair.append(pair)

    def add_contact_filter(self, *names: str) -> None:
        """Exclude contact between bodies."""
        self.spec.contact_filter.append(table(ContactFilterSpec, "contact_filter", {"bodies": list(names)}))

    def check(self) -> list[Problem]:
        """Return all problems of the scene that do not depend on its geometry."""
        return self.located([as_problem(finding, self.spec) for finding in check_scene(self.spec)])

    def compile(self) -> Model:
        """Return the arrays of a simulation.

        Raises:
            SceneError: all problems, with file and line of a native file.
        """
        try:
            model = compile_scene(self.spec)
        except SceneError as error:
            raise SceneError(self.located(error.problems)) from None
        return replace(model, notes=list(dict.fromkeys([*self.notes, *model.notes])))

    def started(self) -> Model:
        """Return the compiled scene with a start that is free of intersections; see `set_free`."""
        return self.set_free(self.compile())

    def set_free(self, model: Model) -> Model:
        """Return the compiled scene with a separation of bodies that touch at the start (`abd.scene.overlaps.starts`).

        Raises:
            SceneError: bodies overlap, with the file and the lines of their tables.
        """
        try:
            return free_start(model)
        except SceneError as error:
            raise SceneError(self.located(error.problems)) from None

    def override(self, overrides: Iterable[str]) -> Scene:
        """Return a new scene with single values replaced by texts such as ``solver.dt=0.005``; paths are relative to its file."""
        directory = Path.cwd() if self.path is None else self.path.parent
        return Scene.from_spec(apply_overrides(self.spec, overrides, directory), self.notes, self.path)

    def scaled(self, factor: float) -> Scene:
        """Return a new scene with all lengths multiplied, by 1e-3 from millimetres to metres. Masses and times do not change;
        gravity if it is set, forces, torques, stiffnesses and tolerances scale with their units (`abd.scene.scaled`).

        Raises:
            SceneError: the scene has unknown lengths, such as poses in a file.
        """
        return Scene.from_spec(scaled(self.spec, factor), self.notes, self.path)

    def replicate(self, count: int, dt: Sequence[float] | None = None) -> Scene:
        """Return a new scene of `count` copies of this one at the same place, each in its own world without contact to others.

        An item `name` becomes ``w0_name``, ``w1_name`` and so on. `Simulation.reset` resets single worlds.

        Args:
            dt: time steps of the copies [s], as many as there are (`solver.world_dt`); those of the scene by default.

        Raises:
            ValueError: count is not positive, or there are more or fewer time steps.
            SceneError: a time step is not a positive number.
        """
        return Scene.from_spec(replicated(self.spec, count, dt), self.notes, self.path)

    def transformed(self, pose) -> Scene:
        """Return a new scene after a motion of the world, a (4, 4) pose [m]: bodies, joints, planes, motions and gravity.

        Raises:
            SceneError: a body is fixed along rotated axes of the world, or has its poses in a file.
            ValueError: `pose` is not a rotation and a translation.
        """
        return Scene.from_spec(transformed(self.spec, pose), self.notes, self.path)

    def resolved(self, settings: Settings) -> Scene:
        """Return a new scene with explicit values of settings that follow from its whole geometry (tolerances, frames)."""
        spec = self.spec.model_copy(deep=True)
        spec.solver.tolerance, spec.solver.tolerance_relative = settings.tolerance, None
        spec.solver.friction_tolerance = settings.friction_tolerance
        spec.output.frames, spec.output.duration = settings.frames, None
        return Scene.from_spec(spec, self.notes, self.path)

    def to_toml(self, directory: str | Path | None = None, explicit: bool = False) -> str:
        """The text of a scene file; see `abd.scene.files.toml_text.scene_toml`."""
        return scene_toml(self.spec, directory, explicit)

    def save(self, path: str | Path, explicit: bool = False) -> None:
        """Write a TOML file, which `abd.load` reads back to an equal scene; `explicit` writes the defaults too."""
        path = Path(path)
        path.write_text(self.to_toml(path.parent, explicit), encoding="utf-8")

    def located(self, problems: list[Problem]) -> list[Problem]:
        """Return the problems with the file of the scene, if it still exists, and the lines of their keys in a native file."""
        if self.path is None or not self.path.is_file() or all(problem.file for problem in problems):
            return problems
        lines: dict[str, int] = {}
        if is_native(self.path):
            text = read_text(self.path)
            data = parse(text, self.path)
            lines = {key_name(path, data): line for path, line in key_lines(text, self.path).items()}
        return [
            problem if problem.file else replace(problem, file=str(self.path), line=_line_of_key(lines, problem.key))
            for problem in problems
        ]


def _line_of_key(lines: dict[str, int], key: str) -> int | None:
    """Return the line of a key such as body.crank.sphere.radius, or of the nearest table around it.

    Copies of a body have numbers at the end of their name: body.link_0_0_7.
    """
    while key and key not in lines:
        numbered = re.fullmatch(r"(body\.[^.]*)_\d+", key)
        key = numbered[1] if numbered else key[: max(key.rfind("."), key.rfind("["), 0)]
    return lines.get(key)


def _named(items: Sequence[Any], name: str, kind: str) -> Any:
    for item in items:
        if item.name == name:
            return item
    remedy = did_you_mean(name, [item.name for item in items])
    raise SceneError.of(f"there is no {kind} '{name}'", key=kind, value=name, remedy=remedy)


def load(
    source: str | Path,
    overrides: Iterable[str] = (),
    allow_overlaps: bool = False,
    allow_code: bool = False,
    **import_options: Any,
) -> Scene:
    """Read a scene.

    Args:
        source: path of a TOML or JSON file, native or of rigid-ipc, or of a format of `abd.scene.importers`; or the name
            of a shipped scene.
        overrides: values that replace the file's, such as ``solver.dt=0.005``.
        allow_overlaps: exclude contact of pairs that overlap at the start, by contact filters.
        allow_code: run the Python files that the scene names for its joint types.
        import_options: those of `abd.scene.importers.formats.ImportOptions`.

    Raises:
        SceneError: the scene does not exist, or has problems.
    """
    path = find_scene(source)
    overrides = list(overrides)
    options = ImportOptions(**import_options, allow_code=allow_code)
    check_options(path, options)
    spec, notes = (read_scene(path, allow_code), []) if is_native(path) else read_imported(path, options)
    scene = Scene.from_spec(spec, notes, path)
    if overrides:
        scene = scene.override(overrides)
    if allow_overlaps:
        scene.notes += filter_overlaps(scene)
    return scene


def is_native(path: Path) -> bool:
    """Whether a file is a scene of ours, which the schema describes."""
    return not is_imported(path) and not _is_rigid_ipc(path)


def _is_rigid_ipc(path: Path) -> bool:
    """Whether a file is a JSON scene of rigid-ipc."""
    return is_json(path) and any(key in parse(read_text(path), path) for key in RIGID_IPC_KEYS)
