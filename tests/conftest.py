"""`pytest --device cuda`: the tests of device code on that device, and no others. `pytest --bounds`: kernels that check indices.

The tests of device code are marked `device`: by their module (`pytestmark`), or because they use the fixture `device`. `pytest
-m quick`: what needs no kernels, CI's first lane.
"""

import os
from collections.abc import Iterator

import pytest
import warp as wp

QUICK = (
    *("contact/test_barrier", "contact/test_distance", "contact/test_mollifier"),
    *("joints/test_assembly_types", "joints/test_joint_types", "joints/test_redundancy"),
    *("scene/test_check", "scene/test_compile", "scene/test_intersections", "scene/test_mass", "scene/test_meshes"),
    *("scene/test_motion", "scene/test_scene_errors", "scene/test_scene_joints", "scene/test_scene_joint_types"),
    *("scene/test_scene_schema", "scene/test_typed_keys", "importers/test_import_malformed", "importers/test_rigid_ipc"),
    *("io/test_checkpoint", "io/test_report", "io/test_trajectory"),
)
"""Modules of tests that take seconds: those of them that are not slow and need no kernels, which would be compiled first, are
marked `quick`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--device NAME`, `--bounds`."""
    parser.addoption(
        "--device", default="cpu", metavar="NAME",
        help="cpu, cuda, cuda:N, or emulated[:SEED] (CUDA's branches on the processor); but for cpu, tests of device code alone",
    )
    parser.addoption(
        "--bounds", action="store_true", help="kernels abort at an index beyond its array; compiled once more for that"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a device that is not there before anything is collected, and tell `on_device` which one it is."""
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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is quick, and what uses the fixture `device`; away from the processor, leave out what is not marked so."""
    for item in items:
        if "device" in getattr(item, "fixturenames", ()) and _asked_device(item) != "numpy":
            item.add_marker("device")
        waits = item.get_closest_marker("slow") or (item.get_closest_marker("device") and _asked_device(item) != "numpy")
        if item.nodeid.removeprefix("tests/").partition(".py::")[0] in QUICK and not waits:
            item.add_marker("quick")
    if config.getoption("--device") == "cpu":
        return

    def counts(item: pytest.Item) -> bool:
        return item.get_closest_marker("device") is not None and _asked_device(item) != "numpy"

    config.hook.pytest_deselected(items=[item for item in items if not counts(item)])
    items[:] = filter(counts, items)


def _asked_device(item: pytest.Item) -> str | None:
    """The device that a test is parametrised with."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("device") if callspec else None


@pytest.fixture(autouse=True)
def _types_are_forgotten() -> Iterator[None]:
    """Joint types that a test makes known, by itself or by an example it runs, are gone after it."""
    from abd.joints.types import TYPES

    known = set(TYPES)
    yield
    for name in set(TYPES) - known:
        del TYPES[name]


@pytest.fixture
def define():
    """`abd.joint_type`; its types are forgotten after the test."""
    import abd

    return abd.joint_type


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> str:
    """Name of the device under test."""
    return request.config.getoption("--device")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory):
    """Directory of a run with one of everything that is drawn."""
    from exported_run import make

    return make(tmp_path_factory.mktemp("exported"))
