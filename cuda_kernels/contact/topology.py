"""What surrounds edges and vertices of the meshes; mirrors ``abd/contact/topology.py``."""

import warp as wp


@wp.struct
class Topology:
    """Arrays of ``abd.contact.topology.Topology``; `local` is 1 where contact counts local minima, 0 where all pairs."""

    local: wp.int32
    vertex_weight: wp.array(dtype=wp.float64)
    vertex_share: wp.array(dtype=wp.float64)
    edge_weight: wp.array(dtype=wp.float64)
    edge_faced: wp.array(dtype=wp.int32)
    owned: wp.array(dtype=wp.int32)
    sides: wp.array(dtype=wp.vec3i)
    corners: wp.array(dtype=wp.vec3i)
    side_ends: wp.array(dtype=wp.vec2i)
    side_start: wp.array(dtype=wp.int32)
    side_target: wp.array(dtype=wp.int32)
    side_pattern: wp.array(dtype=wp.int32)
    ring_start: wp.array(dtype=wp.int32)
    ring_target: wp.array(dtype=wp.int32)
    ring_pattern: wp.array(dtype=wp.int32)
    spoke_start: wp.array(dtype=wp.int32)
    spoke_end: wp.array(dtype=wp.int32)
    spoke_extra: wp.array(dtype=wp.int32)
