"""Families of benchmark scenes, one file per kin."""

import argparse

from families import boxes, chains, corner, loops, others, tumbling
from families.family import QUICK_STEPS, STEPS, Family

FAMILIES: dict[str, Family] = {
    family.name: family for kin in (chains, loops, boxes, tumbling, others, corner) for family in kin.FAMILIES
}


def requested(text: str) -> tuple[str, tuple[float, ...]]:
    """A family and its sizes, none for its own, from a text such as "chain" or "chain:100,1000".

    Raises:
        argparse.ArgumentTypeError: no such family; ValueError: a size that is no number.
    """
    name, _, sizes = text.partition(":")
    if name not in FAMILIES:
        raise argparse.ArgumentTypeError(f"no family '{name}': {', '.join(FAMILIES)}")
    return name, tuple(float(size) for size in sizes.split(",")) if sizes else ()


__all__ = ["FAMILIES", "QUICK_STEPS", "STEPS", "Family", "requested"]
