"""Joints: one file per type, each a function from a `Joint` to its linear rows. `TYPES` lists them."""

from __future__ import annotations

from abd.joints import fixed, hinge, pin, spherical

TYPES = {"spherical": spherical, "fixed": fixed, "hinge": hinge, "pin": pin}
"""Joint type -> module; a new joint is one file and one line here."""

ALIASES: dict[str, str] = {}
"""Other name of a type -> its own."""
