"""Bounds on what files may ask for; a variable of the environment, such as ABD_MOST_COPIES=2000000, raises one."""

from __future__ import annotations

import os

DEFAULTS = {
    # copies that `repeat` makes of a body
    "COPIES": 1_000_000,
    # elements of copies that <replicate> and <composite> make
    "REPLICAS": 20_000,
    # parts of a dotted key of TOML
    "KEY_PARTS": 100,
    # memory of the arrays of an NPZ file [bytes]
    "NPZ_BYTES": 256 << 20,
}


def most(name: str) -> int:
    """The largest number of a kind."""
    try:
        return int(os.environ[f"ABD_MOST_{name}"])
    except (KeyError, ValueError):
        return DEFAULTS[name]


def remedy(name: str) -> str:
    """How it is raised."""
    return f"ask for less, or raise the bound: ABD_MOST_{name}=N in the environment"
