"""Physics materials of a stage, and the colours of its prims."""

from __future__ import annotations

import numpy as np

from abd.scene.importers.usd.stage import Stage, modules


class Materials:
    """Materials that colliders name."""

    def __init__(self, stage: Stage):
        self.stage = stage
        self._names: dict[str, str] = {}
        self._tables: list[dict] = []
        self._densities: dict[str, float] = {}
        taken = {"default"}
        for one in stage.of("RigidBodyMaterial"):
            path = str(one.primPath)
            name = path.rsplit("/", 1)[-1]
            while name in taken:
                name += "_"
            taken.add(name)
            mu, rest, still = (float(value) for value in (one.dynamicFriction, one.restitution, one.staticFriction))
            if still != mu:
                stage.notes.append(f"material {path}: the dynamic friction {mu:g} counts, not the static one {still:g}")
            if not (np.isfinite(mu) and mu >= 0.0 and 0.0 <= rest <= 1.0):
                stage.problem("friction or restitution is out of range", path, [mu, rest], "mend the stage")
                continue
            self._names[path] = name
            self._tables.append({"name": name, "mu": mu} | ({"restitution": rest} if rest > 0.0 else {}))
            self._densities[path] = float(one.density) * stage.mass / stage.length**3

    def tables(self) -> list[dict]:
        """Tables of a scene."""
        return self._tables

    def name(self, path: str) -> str:
        """Name of a material; "" for none."""
        return self._names.get(path, "")

    def density(self, path: str) -> float:
        """[kg/m^3], 0 where the material has none."""
        return self._densities.get(path, 0.0)


def color_of(stage: Stage, path: str) -> list[float] | None:
    """Colour of a prim in sRGB, with opacity where it is below 1: its displayColor, or the diffuse one of its material."""
    _, UsdGeom, _ = modules()
    from pxr import UsdShade

    from abd.colors import to_srgb

    prim = stage.prim(path)
    if prim.IsA(UsdGeom.Imageable):
        primvars = UsdGeom.PrimvarsAPI(prim)
        shown = primvars.FindPrimvarWithInheritance("displayColor")
        values = shown.Get() if shown and shown.HasAuthoredValue() else None
        if values is not None and len(values):
            color = np.mean(np.array(values, dtype=float), axis=0)
            faded = primvars.FindPrimvarWithInheritance("displayOpacity")
            opacity = faded.Get() if faded and faded.HasAuthoredValue() else None
            alpha = float(np.mean(opacity)) if opacity is not None and len(opacity) else 1.0
            return _told(to_srgb(color), alpha)
    material = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()[0]
    shader = material.ComputeSurfaceSource()[0] if material else None
    given = shader.GetInput("diffuseColor") if shader else None
    value = given.Get() if given and not given.HasConnectedSource() else None
    return None if value is None else _told(to_srgb(np.array(value, dtype=float)), 1.0)


def _told(color: np.ndarray, alpha: float) -> list[float] | None:
    if not (np.isfinite(color).all() and np.isfinite(alpha)):
        return None
    rounded = np.round(np.clip(color, 0.0, 1.0), 6).tolist()
    return rounded if alpha >= 1.0 else [*rounded, round(max(alpha, 0.0), 6)]
