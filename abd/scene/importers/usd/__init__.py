"""USD stages with UsdPhysics: opened and parsed by `usd-core`, turned into a scene of metres and kilograms.

The axes stay as they are; gravity says what is down. What UsdPhysics says is read by its own parser, which resolves scales,
instances and inherited values; attributes of Newton's schemas (`newton:...`) are read too where they are given. All
that a stage says and a scene cannot is in the notes.
"""

from __future__ import annotations

from pathlib import Path

from abd.scene.importers.formats import ImportOptions
from abd.scene.importers.usd.bodies import Bodies
from abd.scene.importers.usd.filters import contact_filters
from abd.scene.importers.usd.instancers import place_instances
from abd.scene.importers.usd.joints import joints_and_couplings
from abd.scene.importers.usd.stage import note_ignored, open_stage


def read(path: Path, options: ImportOptions) -> tuple[dict[str, object], list[str]]:
    """The tables of the scene in a stage, and notes on what was changed or ignored.

    Raises:
        SceneError: a file that cannot be read, references that are missing or lead elsewhere, values that are not finite.
    """
    stage = open_stage(Path(path), options)
    bodies = Bodies(stage)
    place_instances(stage, bodies)
    bodies.complete()
    joints, couplings = joints_and_couplings(stage, bodies)
    tables = {
        "name": Path(path).stem,
        "gravity": stage.gravity(),
        "solver": stage.solver(),
        "output": stage.output(),
        "material": bodies.materials.tables(),
        "body": bodies.tables(),
        "contact_filter": contact_filters(stage, bodies),
        "joint": joints,
        "coupling": couplings,
    }
    note_ignored(stage)
    stage.raise_problems()
    return tables, list(dict.fromkeys(stage.notes))
