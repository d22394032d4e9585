"""The bodies of a scene one by one: disabled ones left out, repeated ones copied."""

from __future__ import annotations

from abd.scene.schema import BodySpec, RepeatSpec, SceneSpec


def expand_bodies(spec: SceneSpec) -> list[BodySpec]:
    """Every enabled body of a scene, copies in the order of their grid index, z fastest.

    A copy is named ``name_i_j_k`` and stands ``(i, j, k) * step`` [m] beyond the body's position; its other fields are
    those of the original. No returned body has `repeat`. The specs of `spec` are not modified.
    """
    return [copy for body in spec.body if body.enabled for copy in _copies(body)]


def copy_names(name: str, repeat: RepeatSpec | None) -> list[str]:
    """Names of the bodies that a body of this name stands for."""
    if repeat is None:
        return [name]
    return [f"{name}_{i}_{j}_{k}" for i, j, k in _grid(repeat)]


def _copies(body: BodySpec) -> list[BodySpec]:
    if body.repeat is None:
        return [body]
    copies = []
    for index, name in zip(_grid(body.repeat), copy_names(body.name, body.repeat)):
        position = tuple(p + n * step for p, n, step in zip(body.position, index, body.repeat.step))
        copies.append(body.model_copy(update={"name": name, "position": position, "repeat": None}))
    return copies


def _grid(repeat: RepeatSpec) -> list[tuple[int, int, int]]:
    nx, ny, nz = repeat.count
    return [(i, j, k) for i in range(nx) for j in range(ny) for k in range(nz)]
