"""Importer of USD stages with UsdPhysics, opened and parsed by `usd-core`; the scene is in metres and kilograms.

The axes do not change; the direction of gravity is that of the stage. The parser of UsdPhysics resolves scales, instances and
inherited values; attributes of Newton's schemas (`newton:...`) are read too. Notes list unsupported content.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from abd.errors import SceneError
from abd.scene.importers.formats import ImportOptions
from abd.scene.importers.usd.bodies import Bodies
from abd.scene.importers.usd.filters import contact_filters
from abd.scene.importers.usd.instancers import place_instances
from abd.scene.importers.usd.joints import joints_and_couplings
from abd.scene.importers.usd.stage import Stage, note_ignored, open_stage


def read(path: Path, options: ImportOptions) -> tuple[dict[str, object], list[str]]:
    """Return the tables of the scene, and notes about changed or ignored content.

    Raises:
        SceneError: the file cannot be read, references are missing or lead out of the folder, or values are not finite.
    """
    stage = open_stage(Path(path), options)
    try:
        tables = {"name": Path(path).stem, **_tables(stage)}
    except np.linalg.LinAlgError:  # of values that are not finite
        if not stage.problems:
            raise
    if stage.problems:
        raise SceneError(stage.problems)
    return tables, list(dict.fromkeys(stage.notes))


def _tables(stage: Stage) -> dict[str, object]:
    bodies = Bodies(stage)
    place_instances(stage, bodies)
    body_tables = bodies.tables()
    joints, couplings = joints_and_couplings(stage, bodies)
    tables = {
        "gravity": stage.gravity(),
        "solver": stage.solver(),
        "output": stage.output(),
        "material": bodies.materials.tables,
        "body": body_tables,
        "contact_filter": contact_filters(stage, bodies),
        "joint": joints,
        "coupling": couplings,
    }
    note_ignored(stage)
    return tables
