"""Upload of a compiled `Model` to the structs of the kernels."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import arrays_of
from abd.contact import surfaces as contact_surfaces
from abd.contact import topology as contact_topology
from abd.contact.pair_law import PairLaw
from abd.contact.pair_rows import distinct
from abd.contact.surfaces import least_dimension
from abd.joint_list import excluded_pairs
from abd.joints.rows.table import MeasureTable
from abd.model import Model
from cuda_kernels.contact.broad_phase import Filters
from cuda_kernels.contact.pair_law import PairLaw as DeviceLaw
from cuda_kernels.contact.pair_law import PairParameters
from cuda_kernels.contact.surfaces import Surfaces, Topology
from cuda_kernels.joints.measures import Measures

EMPTY = 3e37
"""Coordinate of the lower corner of an empty box within float32; the upper corner is its negative."""


def allocate_struct(kind: wp.Struct, count: int, device: Device):
    """Create a struct of arrays with `count` zeros."""
    out = kind()
    for name, array in arrays_of(kind).items():
        setattr(out, name, device.zeros(count, array.dtype))
    return out


def upload_struct(kind: wp.Struct, source, device: Device, **given):
    """Create a struct from the attributes of the same names of `source`; `given` values replace them, without a copy."""
    out, arrays = kind(), arrays_of(kind)
    for name in kind.vars:
        value = given[name] if name in given else getattr(source, name)
        is_copied = name in arrays and name not in given
        setattr(out, name, device.upload(value, arrays[name].dtype) if is_copied else value)
    return out


def upload_measures(table: MeasureTable, device: Device) -> Measures:
    """Upload measures of joints, with reference 0."""
    return upload_struct(
        Measures, table, device,
        numbers=device.upload(table.numbers.reshape(-1, 48), wp.float64),
        reference=device.zeros(len(table), wp.float64), supplied=device.zeros((len(table), 16), wp.float64),
    )  # fmt: skip


def upload_law(law: PairLaw, device: Device) -> DeviceLaw:
    """Upload the contact law, without per-pair parameters."""
    return upload_struct(DeviceLaw, law, device, bodies=law.n, own=allocate_struct(PairParameters, 1, device))


def upload_surfaces(model: Model, device: Device, law: PairLaw) -> tuple[Surfaces, list[wp.Bvh]]:
    """Upload meshes with their trees in rest space, one per distinct mesh; the surfaces are valid as long as the trees live."""
    trees: list[wp.Bvh] = []

    def tree(boxes: tuple[np.ndarray, np.ndarray]) -> int:
        lower, upper = boxes
        if len(lower) == 0:
            lower, upper = np.full((1, 3), 1e30), np.full((1, 3), 1e30)
        slack = 2e-7 * np.maximum(np.abs(lower), np.abs(upper)) + 1e-30
        with device.turn:
            trees.append(wp.Bvh(device.upload(lower - slack, wp.vec3), device.upload(upper + slack, wp.vec3)))
        return trees[-1].id

    def boxes(mesh, indices):
        corners = mesh.vertices[indices]
        return corners.min(axis=1), corners.max(axis=1)

    meshes = model.meshes
    targets, least, target_ids, edge_ids, vertex_ids = [], [], [], [], []
    for mesh in meshes:
        wire, points = mesh.codim_edges, mesh.points
        targets.append(np.concatenate([mesh.triangles, wire[:, [0, 1, 1]], np.repeat(points[:, None], 3, 1)]))
        least.append(least_dimension(mesh))
        target_ids.append(tree(boxes(mesh, targets[-1])))
        lower, upper = boxes(mesh, mesh.edges)
        # edges without contact have empty boxes that do not extend others: CUDA sorts boxes within the bounds of all
        unused = ~contact_surfaces.edges_that_meet(model, mesh)
        lower[unused], upper[unused] = EMPTY, -EMPTY
        edge_ids.append(tree((lower, upper)))
        vertex_ids.append(tree((mesh.vertices, mesh.vertices)))

    def stacked(parts, width, dtype):
        return np.concatenate(parts) if parts else np.zeros((0, width) if width else 0, dtype=dtype)

    def starts(parts):
        return np.concatenate([[0], np.cumsum([len(p) for p in parts])])

    bodies = model.bodies
    values = SimpleNamespace(
        mesh=bodies.mesh, plane=np.nan_to_num(bodies.plane), radius=bodies.radius, material=bodies.material,
        vertex_start=starts([m.vertices for m in meshes]), vertices=stacked([m.vertices for m in meshes], 3, float),
        target_start=starts(targets), targets=stacked(targets, 3, np.int32), least=stacked(least, 0, np.int32),
        edge_start=starts([m.edges for m in meshes]), edges=stacked([m.edges for m in meshes], 2, np.int32),
        lower=np.array([m.vertices.min(axis=0) for m in meshes]).reshape(-1, 3),
        upper=np.array([m.vertices.max(axis=0) for m in meshes]).reshape(-1, 3),
        target_bvh=np.array(target_ids, dtype=np.uint64), edge_bvh=np.array(edge_ids, dtype=np.uint64),
        vertex_bvh=np.array(vertex_ids, dtype=np.uint64),
    )  # fmt: skip
    data = upload_struct(Surfaces, values, device, topology=upload_topology(model, device), between=upload_law(law, device))
    return data, trees


def upload_topology(model: Model, device: Device) -> Topology:
    """Upload the neighbourhoods of edges and vertices; empty if all pairs of primitives count."""
    data = Topology()
    data.local = int(model.settings.contact_set != "ipc")
    if data.local:
        topology = contact_topology.Topology.of(model, contact_surfaces.Surfaces.of(model))
        for name, array in arrays_of(data).items():
            setattr(data, name, device.upload(getattr(topology, name), array.dtype))
    return data


def upload_filters(model: Model, device: Device) -> Filters:
    """Upload the contact filters."""
    bodies = model.bodies
    n = len(bodies)
    world = np.unique(bodies.world, return_inverse=True)[1]
    planes = np.flatnonzero(np.isfinite(bodies.plane).all(axis=1))
    planes = planes[np.argsort(world[planes], kind="stable")]
    ends = [np.searchsorted(world[planes], world, side) for side in ("left", "right")]
    values = SimpleNamespace(
        kind=bodies.kind, group=bodies.group, world=world, material=bodies.material,
        enabled=model.materials.enabled.astype(np.int32), excluded=np.zeros(max(n, 1)),
        planes=planes if len(planes) else np.zeros(1), near_planes=np.stack(ends, axis=1) if n else np.zeros((1, 2)),
    )  # fmt: skip
    filters = upload_struct(Filters, values, device, bodies=n, filtered=device.zeros(1, wp.int64), filtered_count=0)
    exclude(filters, excluded_pairs(model), n, device)
    return filters


def exclude(filters: Filters, pairs: np.ndarray, n: int, device: Device) -> None:
    """Set the excluded pairs (k, 2) of n bodies, which do not collide."""
    pairs = pairs.astype(np.int64)
    keys = distinct(pairs.min(axis=1, initial=n) * n + pairs.max(axis=1, initial=0))
    filters.filtered = device.upload(keys if len(keys) else np.zeros(1, np.int64), wp.int64)
    filters.filtered_count = len(keys)
