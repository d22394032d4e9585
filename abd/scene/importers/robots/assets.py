"""Files of a robot: search, access rules and missing files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from abd.errors import SceneError
from abd.scene.geometry.mesh_files import READERS, RawMesh, read_mesh_file
from abd.scene.importers.formats import check_size

MOST_BYTES = 64 << 20
"""Size of one mesh file [bytes]."""
MOST_TRIANGLES = 1_000_000
"""Triangles of one mesh."""
PACKAGE_VARIABLES = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH")
"""Environment variables with folders of packages."""
SCHEMES = ("package", "model")
"""URI schemes that begin with the name of a package."""


@dataclass
class Assets:
    """The mesh files of a robot, by their keys in the XML for MuJoCo.

    Attributes:
        path: file of the robot; folder: base of its relative paths; searched: folders of the user.
        strip: whether only the last part of a path counts.
        files: path of every key; missing: descriptions of missing and unusable files by key.
    """

    path: Path
    searched: tuple[Path, ...] = ()
    folder: Path = field(init=False)
    strip: bool = False
    files: dict[str, Path] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    _keys: dict[str, str] = field(default_factory=dict)
    _meshes: dict[str, RawMesh] = field(default_factory=dict)

    def __post_init__(self):
        self.folder = self.path.resolve().parent
        self.searched = tuple(folder.resolve() for folder in self.searched)
        for folder in self.searched:
            if not folder.is_dir():
                raise SceneError.of(f"--assets: {folder} is not a folder", value=str(folder))

    @property
    def roots(self) -> tuple[Path, ...]:
        """Return the folders of allowed files: those of the robot, of its package, and of the user."""
        package = next((folder for folder in self.folder.parents if (folder / "package.xml").is_file()), None)
        return (self.folder, *([package] if package else []), *self.searched)

    def read_compilers(self, compilers: Iterable[Element]) -> str:
        """Return the folder of meshes in MuJoCo's `<compiler>` elements; remove their attributes for files, and set `strip`."""
        folder = ""
        for one in compilers:
            folder = one.get("meshdir", one.get("assetdir", folder))
            self.strip = one.get("strippath", str(self.strip).lower()) == "true"
            for key in ("meshdir", "assetdir", "texturedir", "strippath"):
                one.attrib.pop(key, None)
        return folder

    def key(self, reference: str, base: str = "") -> str:
        """Return the key of a mesh file; a missing file is added to `missing`.

        Args:
            reference: as written: a path, or a URI of scheme file, package or model.
            base: base of relative paths, itself relative to the folder of the robot.

        Raises:
            SceneError: the path leads out of the allowed folders.
        """
        if reference not in self._keys:
            key = self._keys[reference] = f"mesh_{len(self._keys)}.stl"
            found, tried = self.find(reference, base)
            if found is None:
                self.missing[key] = f"{reference} (tried {', '.join(map(str, tried))})"
            else:
                self.files[key] = found
                self._load(key, reference, found)
        return self._keys[reference]

    def mesh(self, key: str) -> RawMesh | None:
        """Return the mesh of a key; None for a file in MuJoCo's format."""
        return self._meshes.get(key)

    def find(self, reference: str, base: str = "") -> tuple[Path | None, list[Path]]:
        """Return the file of a path or URI, None if it is missing, and the tried paths."""
        if self.strip:
            reference = reference.replace("\\", "/").rpartition("/")[2]
        scheme, separator, rest = reference.partition("://")
        if not separator:
            scheme, rest = "", reference.replace("\\", "/")
        rest = unquote(rest) if separator else rest
        if scheme in SCHEMES:
            candidates = self._in_packages(PurePosixPath(rest))
        elif scheme in ("", "file"):
            folders = (self.folder / base, self.folder, *self.searched)
            candidates = [(folder / rest, None) for folder in dict.fromkeys(folders)]
        else:
            remedy = "give a path, or package://NAME/PATH"
            raise SceneError.of(f"scheme '{scheme}' is not supported", "", reference, file=str(self.path), remedy=remedy)
        tried, outside = [], True
        for path, root in dict.fromkeys((Path(os.path.normpath(path)), root) for path, root in candidates):
            allowed = self.roots if root is None else (root,)
            if not any(path.is_relative_to(one) for one in allowed):
                continue
            outside = False
            tried.append(path)
            if path.is_file():
                if not any(path.resolve().is_relative_to(one.resolve()) for one in (*allowed, *self.roots)):
                    outside = True
                    break
                return path, tried
        if outside and candidates:
            message = f"'{reference}' is outside of the robot's folder {self.folder}"
            remedy = "allow its folder with --assets DIR"
            raise SceneError.of(message, value=reference, file=str(self.path), remedy=remedy)
        return None, tried

    def _in_packages(self, rest: PurePosixPath) -> list[tuple[Path, Path]]:
        """Paths of a file of a package, each with the package's folder, in the order in which they are tried."""
        package, *inside = rest.parts or ("",)
        inside = Path(*inside)
        own = [folder for folder in (self.folder, *self.folder.parents) if folder.name == package]
        nearby = [folder / package for folder in (self.folder, *self.folder.parents) if (folder / package).is_dir()]
        given = [folder for folder in self.searched if folder.name == package]
        given += [folder / package for folder in self.searched] + list(self.searched)
        listed = []
        for variable in PACKAGE_VARIABLES:
            for entry in filter(None, os.environ.get(variable, "").split(os.pathsep)):
                listed += [Path(entry) / package, Path(entry) / "share" / package]
        folders = [*given, *own, *nearby, *(folder for folder in listed if folder.is_dir())]
        folders = folders or [self.folder / package, self.folder]
        return [(folder / inside, folder) for folder in folders]

    def _load(self, key: str, reference: str, path: Path) -> None:
        """Read a mesh file; an unusable one counts as missing."""
        check_size(path, MOST_BYTES, "simplify the mesh")
        if path.suffix.lower() == ".msh":
            return
        if path.suffix.lower() not in READERS:
            known = ", ".join(READERS)
            self.missing[key] = f"{reference}: format '{path.suffix}' is not supported (use one of {known})"
            return
        mesh = read_mesh_file(path)
        if len(mesh.triangles) > MOST_TRIANGLES:
            message = f"has {len(mesh.triangles)} triangles; at most {MOST_TRIANGLES} are allowed"
            raise SceneError.of(message, file=str(path), value=len(mesh.triangles), remedy="simplify the mesh")
        if not len(mesh.triangles):
            self.missing[key] = f"{reference}: has no triangles"
            return
        self._meshes[key] = mesh

