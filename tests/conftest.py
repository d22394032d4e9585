"""`pytest --device cuda`: the tests of device code on that device, and no others. `pytest --bounds`: kernels that check indices.

The tests of device code are marked `device`: by their module (`pytestmark`), or because they use the fixture `device`. `pytest
-m quick`: what needs no kernels, CI's first lane.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _types_are_forgotten() -> Iterator[None]:
    """Joint types that a test makes known, by itself or by an example it runs, are gone after it."""
    from abd.joints.types import TYPES

    known = set(TYPES)
    yield
    for name in set(TYPES) - known:
        del TYPES[name]


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> str:
    """Name of the device under test."""
    return request.config.getoption("--device")
