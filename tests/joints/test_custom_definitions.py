"""User-defined joint types: rejected definitions, and types of scene files."""

import numpy as np
import pytest
import warp as wp
from custom_types import LENGTH, THREE, by_hand, cubes, define_slotted, joint_of, slotted_row

import abd
from abd import RowFlags
from abd.backends.warp.terms.custom_measures import kernel_of, refuse_host_functions
from abd.errors import DeviceError, SceneError
from abd.joints.measures.custom_rows import group_custom_rows
from abd.joints.types import TYPES

pytestmark = pytest.mark.device


def assert_refused(define, message, *arguments, name="mine", **keys):
    with pytest.raises(SceneError, match=message):
        define(name, *arguments, **({"rows": THREE} | keys))


def test_errors_in_definitions_are_reported(define):
    assert_refused(define, "already exists", cubes, name="hinge")
    assert_refused(define, "already exists", cubes, name="revolute")
    assert_refused(define, "row 'a': is neither LINEAR nor ROTARY", cubes, rows={"a": RowFlags.BILATERAL})
    assert_refused(define, "LIMIT and LOCKED say nothing here", cubes, rows={"a": LENGTH | RowFlags.LIMIT})
    assert_refused(define, "neither rows nor coordinates", cubes, rows={})
    assert_refused(define, "needs a function or wrenches")
    assert_refused(define, "wrenches need a projection", wrenches=np.eye(6)[:3])
    assert_refused(define, r"returned an array of shape \(23, 4\), not \(k, 3\)", lambda M, r, p: np.ones((len(M), 4)))
    assert_refused(define, "not finite at any pose", lambda M, r, p: np.full((len(M), 3), np.nan))
    assert_refused(define, "cannot have a Jacobian", slotted_row, jacobian=by_hand)
    assert_refused(define, "default of size should be a finite number", cubes, parameters={"size": np.inf})


def test_unknown_parameters_are_named(define):
    define("cubes", cubes, rows=THREE, parameters={"size": 1.0})
    scene = abd.Scene()
    scene.add_body("box", box=(1, 1, 1), mass=1.0)
    with pytest.raises(SceneError, match=r"has no parameter width.*it has 'size'"):
        scene.add_joint("cubes", "joint", abd.WORLD, "box", anchor=(0, 0, 0), parameters={"width": 1.0})
    with pytest.raises(SceneError, match="has no parameter size"):
        scene.add_joint("hinge", "joint", abd.WORLD, "box", anchor=(0, 0, 0), axis=(0, 0, 1), parameters={"size": 1.0})


def test_numpy_functions_are_refused_on_cuda_by_name_and_warp_functions_are_not(define):
    kinds = [define_slotted(define, form) for form in ("numpy", "warp", "wrenches")]
    measures = [one for kind in kinds for one in kind.constraints(joint_of(kind.function.name))]
    groups = group_custom_rows(measures, list(np.repeat(range(3), 4)))
    refuse_host_functions(groups, "cpu", reached=True)
    refuse_host_functions(groups[1:2], "cuda:0", reached=False)
    with pytest.raises(DeviceError, match=r"'slotted_numpy', 'slotted_wrenches'.* cuda:0.*use --device cpu"):
        refuse_host_functions(groups, "cuda:0", reached=False)


def test_the_kernel_of_a_warp_function_and_its_adjoint_compile_for_cuda(tmp_path):
    module = kernel_of(slotted_row).module
    wp.compile_aot_module(module, arch=90, module_dir=str(tmp_path), use_ptx=True)
    (code,) = tmp_path.glob("*.ptx")
    entries = [line for line in code.read_text().splitlines() if ".entry" in line]
    assert [any(way in entry for entry in entries) for way in ("forward", "backward")] == [True, True]


CODE = """
import numpy as np
import abd
from abd import RowFlags


def bowl(name):
    def rows(M, r, p):
        return np.stack([r[:, 2] - (r[:, 0] ** 2 + r[:, 1] ** 2) / (2 * p[:, 0]), r[:, 0]], axis=1)

    abd.joint_type(
        name, rows, rows={"height": RowFlags.LINEAR}, coordinates={"x": RowFlags.LINEAR}, parameters={"radius": 0.5}
    )


def nothing(name):
    pass


def broken(name):
    raise ValueError("no good")
"""

SCENE = """
[solver]
dt = 0.01
[output]
frames = 2
[[joint_type]]
name = "my_bowl"
file = "kinds.py"
function = "bowl"
[[body]]
name = "bead"
sphere = { radius = 0.03 }
mass = 0.1
position = [0.3, 0, 0.2]
[[joint]]
name = "j"
type = "my_bowl"
child = "bead"
parent_anchor = [0, 0, 0]
child_anchor = [0, 0, 0]
"""


def test_a_scene_file_names_code_for_its_joint_types_which_runs_only_if_allowed(define, tmp_path):
    (tmp_path / "kinds.py").write_text(CODE)
    path = tmp_path / "bead.toml"
    path.write_text(SCENE)
    with pytest.raises(SceneError, match=r"bead\.toml:8.*Python code runs only with permission.*--allow-code"):
        abd.load(path)
    assert "my_bowl" not in TYPES
    scene = abd.load(path, allow_code=True)
    assert scene.compile().joints[0].type == "my_bowl"
    scene.save(tmp_path / "again.toml")
    assert abd.load(tmp_path / "again.toml", allow_code=True) == scene
    for function, words in (
        ("nothing", "nothing defines no joint type of this name"),
        ("broken", "raises ValueError: no good"),
        ("missing", "'kinds.py' has no such function"),
    ):
        path.write_text(SCENE.replace('"bowl"', f'"{function}"'))
        with pytest.raises(SceneError, match=words):
            abd.load(path, allow_code=True)
    path.write_text(SCENE.replace('"kinds.py"', '"other.py"'))
    with pytest.raises(SceneError, match="there is no such file"):
        abd.load(path, allow_code=True)
