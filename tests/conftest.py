"""Options and marks: `pytest --device cuda` runs the tests of device code on a GPU, `--bounds` kernels that check indices.

Tests of device code have the mark `device`, by their module (`pytestmark`) or by the fixture `device`. Tests that need no
kernels have the mark `quick`.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import warp as wp

QUICK = (
    "contact/test_distance",
    *("joints/test_assembly_types", "joints/test_joint_types"),
    *("scene/test_check", "scene/test_compile", "scene/test_intersections", "scene/test_mass", "scene/test_meshes"),
    *("scene/test_motion", "scene/test_scene_errors", "scene/test_scene_joints", "scene/test_scene_joint_types"),
    *("scene/test_scene_schema", "importers/test_import_malformed", "importers/test_rigid_ipc"),
    *("io/test_report", "io/test_trajectory"),
)
"""Modules whose tests have the mark `quick`, except those that are slow or need kernels."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options `--device` and `--bounds`."""
    parser.addoption(
        "--device", default="cpu", metavar="NAME",
        help="cpu, cuda, cuda:N, or emulated[:SEED] (branches of CUDA on the processor); not cpu: tests of device code only",
    )
    parser.addoption(
        "--bounds", action="store_true", help="compile kernels that abort at an index outside of its array"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Check that the device is available, and set it for `on_device`."""
    if config.getoption("--bounds"):
        wp.config.mode = "debug"
        os.environ["ABD_THREADS"] = "1"  # kernels of this mode share memory between threads
    name = config.getoption("--device")
    if name != "cpu":
        from abd.backends.device.device import Device
        from abd.errors import DeviceError

        try:
            Device(name)
        except DeviceError as error:
            raise pytest.UsageError(f"--device {name}: {error}") from error
    os.environ["ABD_TEST_DEVICE"] = name


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import modules without quick tests for `-m quick`."""
    if config.getoption("markexpr") != "quick" or collection_path.suffix != ".py":
        return None
    return collection_path.relative_to(Path(__file__).parent).with_suffix("").as_posix() not in QUICK or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Set the marks `quick` and `device`; on devices other than cpu, deselect tests without the mark `device`."""
    for item in items:
        if "device" in getattr(item, "fixturenames", ()) and _parametrised_device(item) != "numpy":
            item.add_marker("device")
        waits = item.get_closest_marker("slow") or (item.get_closest_marker("device") and _parametrised_device(item) != "numpy")
        if item.nodeid.removeprefix("tests/").partition(".py::")[0] in QUICK and not waits:
            item.add_marker("quick")
    if config.getoption("--device") == "cpu":
        return

    def is_selected(item: pytest.Item) -> bool:
        return item.get_closest_marker("device") is not None and _parametrised_device(item) != "numpy"

    config.hook.pytest_deselected(items=[item for item in items if not is_selected(item)])
    items[:] = filter(is_selected, items)


def _parametrised_device(item: pytest.Item) -> str | None:
    """Return the device by which a test is parametrised."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("device") if callspec else None


@pytest.fixture(autouse=True)
def _remove_definitions() -> Iterator[None]:
    """Remove the joint types and functions that a test has defined."""
    from abd.joints.rows.measured_rows import FUNCTIONS
    from abd.joints.types import TYPES

    known = [(table, set(table)) for table in (TYPES, FUNCTIONS)]
    yield
    for table, names in known:
        for name in set(table) - names:
            del table[name]


@pytest.fixture
def define():
    """Return `abd.joint_type`; its types are removed after the test."""
    import abd

    return abd.joint_type


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> str:
    """Return the name of the device under test."""
    return request.config.getoption("--device")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory):
    """Return the directory of a run with all objects that exports draw."""
    from exported_run import make

    return make(tmp_path_factory.mktemp("exported"))


@pytest.fixture
def without_core(monkeypatch):
    """The definitions of barriers without their cores, as ipctk has them."""
    monkeypatch.setattr("abd.potentials.barrier.CORE", 0.0)
