"""Families of benchmark scenes, one file per kin."""

from families import boxes, chains, corner, loops, others, tumbling
from families.family import QUICK_STEPS, STEPS, Family

FAMILIES: dict[str, Family] = {
    family.name: family for kin in (chains, loops, boxes, tumbling, others, corner) for family in kin.FAMILIES
}

__all__ = ["FAMILIES", "QUICK_STEPS", "STEPS", "Family"]
