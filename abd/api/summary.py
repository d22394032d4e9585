"""What a notebook shows of a simulation."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from abd.model import Kind

if TYPE_CHECKING:
    from abd.api.simulation import Simulation


def summary_table(sim: Simulation) -> str:
    """A table in HTML."""
    bodies, joints = sim.model.bodies, sim.model.joints
    rows = {
        "device": sim.device,
        "time": f"{sim.time:.6g} s, frame {sim.frame}, step {sim.worlds.dt.max():.6g} s",
        "bodies": f"{len(bodies)}, of which {int((bodies.kind == Kind.DYNAMIC).sum())} dynamic",
        "joints": f"{len(joints)}, couplings {len(sim.model.couplings)}",
        "sensors": ", ".join(sim.sensors) or "none",
    }
    cells = "".join(f"<tr><th>{escape(key)}</th><td>{escape(text)}</td></tr>" for key, text in rows.items())
    return f"<table><caption>Simulation of {escape(sim.model.name)}</caption>{cells}</table>"
