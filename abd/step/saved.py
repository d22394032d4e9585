"""What a state saves of pairs of bodies and of joints (`State.extra`), and back."""

from __future__ import annotations

import numpy as np

from abd.contact.pair_law import OwnLaws
from abd.errors import AbdError
from abd.joints.rows import slots
from abd.joints.rows.forces import Applied
from abd.joints.rows.system import HISTORY, JointMemory, JointSystem
from abd.state import State

_OWN = ("key", "activation", "factor", "home")


def own_laws_of(own: OwnLaws) -> dict[str, np.ndarray]:
    """What is saved of pairs whose law is their own."""
    return {f"law_{name}": getattr(own, name).copy() for name in _OWN}


def saved_own_laws(state: State) -> OwnLaws | None:
    """The pairs of a state that a step led to, None of another one."""
    saved = state.extra
    return OwnLaws(*(saved[f"law_{name}"].copy() for name in _OWN)) if "law_key" in saved else None


def joints_of(memory: JointMemory, applied: Applied) -> dict[str, np.ndarray]:
    """What is saved of joints: what they remember, and the laws of the last substep."""
    return {
        "joint_reference": memory.reference.copy(),
        "joint_history": memory.history.ravel().copy(),
        "joint_multiplier": memory.multiplier.copy(),
        "joint_linear": memory.linear.ravel().copy(),
        "joint_law": applied.law.copy(),
        "joint_parameters": applied.p.ravel().copy(),
        "joint_stiffness": applied.stiffness.ravel().copy(),
        "joint_shift": applied.shift.ravel().copy(),
        "joint_ch2": applied.ch2.copy(),
        "joint_linear_ch2": applied.linear_ch2.copy(),
    }


def saved_memory(state: State, joints: JointSystem) -> JointMemory:
    """What joints remember in a state; a fresh memory where no step led to it."""
    saved = state.extra
    if "joint_reference" not in saved:
        return joints.fresh_memory(state.q, state.qd)
    if len(saved["joint_history"]) != HISTORY * len(joints.rows):
        raise AbdError(
            f"the state remembers {len(saved['joint_history'])} numbers of joint rows where {HISTORY * len(joints.rows)} are "
            "needed: it was written by another release, or of another scene; run the scene from its start"
        )
    return JointMemory(
        reference=saved["joint_reference"].copy(),
        history=saved["joint_history"].reshape(HISTORY, -1).copy(),
        multiplier=saved["joint_multiplier"].copy(),
        linear=saved["joint_linear"].reshape(-1, 3).copy(),
    )


def saved_laws(state: State) -> Applied | None:
    """Laws of the last substep; None before the first one."""
    saved = state.extra
    if "joint_law" not in saved:
        return None
    return Applied(
        law=saved["joint_law"].copy(),
        p=saved["joint_parameters"].reshape(-1, slots.COUNT).copy(),
        stiffness=saved["joint_stiffness"].reshape(-1, 3).copy(),
        shift=saved["joint_shift"].reshape(-1, 3).copy(),
        ch2=saved["joint_ch2"].copy(),
        linear_ch2=saved["joint_linear_ch2"].copy(),
    )
