"""Importer of URDF and MJCF by means of MuJoCo's compiler.

    xml_tree    XML with limits of size       assets      meshes and packages
    urdf, mjcf  input for the compiler        compiled    compiled robot
    links       rigid bodies and shapes       chains      equivalent joints
    joints      joints with their settings    couplings   equalities and tendons
    drives      actuators                     contacts    materials and filters
    unsupported values without counterpart    scene       the complete scene

Bodies fixed to a link are merged with it, with their mass, inertia and shapes. Massless links between joints are merged with the
joints of the next link. Contacts, limits and equalities become barriers and constraints, to which MuJoCo's solver parameters
(solref, solimp) do not apply.
"""

from __future__ import annotations

from pathlib import Path

from abd.errors import SceneError
from abd.scene.importers.formats import ImportOptions


def read(path: Path, options: ImportOptions) -> tuple[dict[str, object], list[str]]:
    """Return the scene of a URDF or MJCF file, and notes about changed, merged or ignored content.

    Raises:
        SceneError: the problems of the file.
    """
    from abd.scene.importers.robots.scene import read_robot

    try:
        return read_robot(path, options).scene()
    except RecursionError:
        raise SceneError.of("has too many nested elements", file=str(path)) from None
