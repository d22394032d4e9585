"""Upload of a compiled `Model` to the structs of the kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from abd.backends.body_data import BodyData
from abd.backends.device.device import Device
from abd.contact import surfaces as contact_surfaces
from abd.contact import topology as contact_topology
from abd.contact.pair_law import PairLaw
from abd.contact.pair_rows import distinct
from abd.contact.surfaces import least_dimension
from abd.joint_list import excluded_pairs
from abd.joints.rows.table import MeasureTable
from abd.model import Model
from cuda_kernels.bodies import bodies as body_kernels
from cuda_kernels.bodies.affine import Path, Pose
from cuda_kernels.bodies.integrators import Lead
from cuda_kernels.contact.broad_phase import Filters
from cuda_kernels.contact.pair_law import PairLaw as DeviceLaw
from cuda_kernels.contact.surfaces import Surfaces, Topology
from cuda_kernels.joints.measures import Measures

EMPTY = 3e37
"""Coordinate of the lower corner of an empty box within float32; the upper corner is its negative."""


def new_pose(device: Device, n: int) -> Pose:
    """Allocate a pose of n bodies."""
    pose = Pose()
    pose.p = device.zeros(n, wp.vec3d)
    pose.A = device.zeros(n, wp.mat33d)
    return pose


def new_lead(device: Device, n: int) -> Lead:
    """Allocate the predicted motion of n bodies."""
    lead = Lead()
    lead.dp, lead.w, lead.push, lead.twist = (device.zeros(n, wp.vec3d) for _ in range(4))
    lead.load = device.zeros(n, wp.float64)
    return lead


def new_path(device: Device, n: int) -> Path:
    """Allocate the paths of n bodies."""
    path = Path()
    path.p = device.zeros(n, wp.vec3d)
    path.A = device.zeros(n, wp.mat33d)
    path.dp = device.zeros(n, wp.vec3d)
    path.w = device.zeros(n, wp.vec3d)
    path.S = device.zeros(n, wp.mat33d)
    path.rate = device.zeros(n, wp.mat33d)
    path.bend = device.zeros(n, wp.float64)
    path.affine_speed = device.zeros(n, wp.float64)
    path.strain = device.zeros(n, wp.float64)
    return path


def upload_bodies(constants: BodyData, device: Device) -> body_kernels.BodyData:
    """Upload masses, stiffnesses, forces and fixed degrees of freedom."""
    data = body_kernels.BodyData()
    for name, values in vars(constants).items():
        scalar = wp.int32 if values.dtype == np.int32 else wp.float64
        setattr(data, name, device.upload(values, scalar if values.ndim == 1 else wp.vec3d))
    return data


def upload_measures(table: MeasureTable, device: Device) -> Measures:
    """Upload measures of joints, with reference 0."""
    data = Measures()
    data.kind = device.upload(table.kind, wp.int32)
    data.numbers = device.upload(table.numbers.reshape(-1, 48), wp.float64)
    data.scale, data.offset = device.upload(table.scale, wp.float64), device.upload(table.offset, wp.float64)
    data.parent, data.child = device.upload(table.parent, wp.int32), device.upload(table.child, wp.int32)
    data.parent_point = device.upload(table.parent_point, wp.vec3d)
    data.child_point = device.upload(table.child_point, wp.vec3d)
    data.parent_axes = device.upload(table.parent_axes, wp.mat33d)
    data.child_axes = device.upload(table.child_axes, wp.mat33d)
    data.reference = device.zeros(len(table), wp.float64)
    data.supplied = device.zeros((len(table), 16), wp.float64)
    return data


@dataclass
class UploadedSurfaces:
    """Surfaces and their trees; the trees live as long as this object."""

    data: Surfaces
    trees: list[wp.Bvh]


def upload_law(law: PairLaw, device: Device) -> DeviceLaw:
    """Upload the contact law, without per-pair parameters."""
    data = DeviceLaw()
    data.bodies = law.n
    for name in ("d_hat", "lightness", "acceleration"):
        setattr(data, name, device.upload(getattr(law, name), wp.float64))
    data.force_fraction, data.given, data.largest = law.force_fraction, law.given, law.largest
    own = data.own
    own.count, own.key = device.zeros(1, wp.int32), device.zeros(1, wp.int64)
    own.activation, own.factor = device.zeros(1, wp.float64), device.zeros(1, wp.float64)
    return data


def upload_surfaces(model: Model, device: Device, law: PairLaw) -> UploadedSurfaces:
    """Upload meshes with their trees in rest space, one per distinct mesh."""
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

    data = Surfaces()
    data.mesh = device.upload(model.bodies.mesh, wp.int32)
    data.vertex_start = device.upload(starts([m.vertices for m in meshes]), wp.int32)
    data.target_start = device.upload(starts(targets), wp.int32)
    data.edge_start = device.upload(starts([m.edges for m in meshes]), wp.int32)
    data.vertices = device.upload(stacked([m.vertices for m in meshes], 3, float), wp.vec3d)
    data.least = device.upload(stacked(least, 0, np.int32), wp.int32)
    data.targets = device.upload(stacked(targets, 3, np.int32), wp.vec3i)
    data.edges = device.upload(stacked([m.edges for m in meshes], 2, np.int32), wp.vec2i)
    data.target_bvh = device.upload(np.array(target_ids, dtype=np.uint64), wp.uint64)
    data.edge_bvh = device.upload(np.array(edge_ids, dtype=np.uint64), wp.uint64)
    data.vertex_bvh = device.upload(np.array(vertex_ids, dtype=np.uint64), wp.uint64)
    data.lower = device.upload(np.array([m.vertices.min(axis=0) for m in meshes]).reshape(-1, 3), wp.vec3d)
    data.upper = device.upload(np.array([m.vertices.max(axis=0) for m in meshes]).reshape(-1, 3), wp.vec3d)
    data.plane = device.upload(np.nan_to_num(model.bodies.plane), wp.vec4d)
    data.radius = device.upload(model.bodies.radius, wp.float64)
    data.material = device.upload(model.bodies.material, wp.int32)
    data.topology = upload_topology(model, device)
    data.between = upload_law(law, device)
    return UploadedSurfaces(data, trees)


def upload_topology(model: Model, device: Device) -> Topology:
    """Upload the neighbourhoods of edges and vertices; empty if all pairs of primitives count."""
    data = Topology()
    data.local = int(model.settings.contact_set != "ipc")
    if data.local:
        for name, values in vars(contact_topology.Topology.of(model, contact_surfaces.Surfaces.of(model))).items():
            kinds = {"f": wp.float64, "b": wp.int32, "i": wp.int32}
            kind = kinds[values.dtype.kind] if values.ndim == 1 else (wp.vec2i if values.shape[1] == 2 else wp.vec3i)
            setattr(data, name, device.upload(values, kind))
    return data


def upload_filters(model: Model, device: Device) -> Filters:
    """Upload the contact filters."""
    bodies = model.bodies
    n = len(bodies)
    world = np.unique(bodies.world, return_inverse=True)[1]
    planes = np.flatnonzero(np.isfinite(bodies.plane).all(axis=1))
    planes = planes[np.argsort(world[planes], kind="stable")]
    ends = [np.searchsorted(world[planes], world, side) for side in ("left", "right")]
    filters = Filters()
    filters.kind = device.upload(bodies.kind, wp.int32)
    filters.group = device.upload(bodies.group, wp.int32)
    filters.world = device.upload(world, wp.int32)
    filters.excluded = device.zeros(max(n, 1), wp.int32)
    filters.material = device.upload(bodies.material, wp.int32)
    filters.enabled = device.upload(model.materials.enabled.astype(np.int32), wp.int32)
    exclude(filters, excluded_pairs(model), n, device)
    filters.planes = device.upload(planes if len(planes) else np.zeros(1), wp.int32)
    filters.near_planes = device.upload(np.stack(ends, axis=1) if n else np.zeros((1, 2)), wp.vec2i)
    filters.bodies = n
    return filters


def exclude(filters: Filters, pairs: np.ndarray, n: int, device: Device) -> None:
    """Set the excluded pairs (k, 2) of n bodies, which do not collide."""
    pairs = pairs.astype(np.int64)
    keys = distinct(pairs.min(axis=1, initial=n) * n + pairs.max(axis=1, initial=0))
    filters.filtered = device.upload(keys if len(keys) else np.zeros(1, np.int64), wp.int64)
    filters.filtered_count = len(keys)
