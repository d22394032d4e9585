"""Measures of user-defined joint types: Warp functions on every device, NumPy functions on the CPU."""

from __future__ import annotations

import functools

import numpy as np
import warp as wp

from abd.backends.device.cuda_support import start_warp
from abd.backends.device.device import Device
from abd.errors import DeviceError
from abd.joints.custom.numpy_rows import by_differences, compare, sample_poses
from abd.joints.measures.custom_rows import CustomRows
from abd.joints.rows.table import MeasureTable
from cuda_kernels.joints import custom_measures as kernels
from cuda_kernels.joints.measures import Measures


@functools.cache
def kernel_of(function: wp.Function) -> wp.Kernel:
    """Build the kernel, with its adjoint, that evaluates ``function(row, M, r, p)`` for every item."""

    @wp.kernel(enable_backward=True, module="unique")
    def user_rows(
        first: wp.int32,
        row: wp.array(dtype=wp.int32),
        M: wp.array(dtype=wp.mat33d),
        r: wp.array(dtype=wp.vec3d),
        p: wp.array2d(dtype=wp.float64),
        values: wp.array(dtype=wp.float64),
    ):
        e = wp.tid() + first
        values[e] = function(row[e], M[e], r[e], p[e])

    return user_rows


class WarpItems:
    """Rows of a Warp function on a device, one item per row and pair of frames.

    Attributes:
        M, r: (e,) arguments; values: (e,); by_M, by_r: (e,) derivatives of the values.
    """

    def __init__(self, function: wp.Function, row: np.ndarray, p: np.ndarray, device: Device):
        count = len(row)
        self.kernel, self.count, self.device = kernel_of(function), count, device
        self.row = device.upload(row, wp.int32)
        self.p = device.upload(p if p.shape[1] else np.zeros((count, 1)), wp.float64)
        self.M, self.by_M = device.zeros(count, wp.mat33d), device.zeros(count, wp.mat33d)
        self.r, self.by_r = device.zeros(count, wp.vec3d), device.zeros(count, wp.vec3d)
        self.values = device.zeros(count, wp.float64)
        self.seed = device.upload(np.ones(count), wp.float64)
        self._adjoint = None

    def evaluate(self) -> None:
        """Compute `values`."""
        self.device.launch(self.kernel, self.count, self.row, self.M, self.r, self.p, self.values, grain=256)

    def differentiate(self) -> None:
        """Compute `by_M` and `by_r` by the adjoint, with a seed of 1 for every item."""
        self.device.fill(self.by_M)
        self.device.fill(self.by_r)
        self.device.fill(self.seed, 1.0)
        with self.device.turn:
            if self._adjoint is None:
                self._adjoint = wp.launch(
                    self.kernel,
                    dim=self.count,
                    inputs=[0, self.row, self.M, self.r, self.p, self.values],
                    adj_inputs=[0, None, self.by_M, self.by_r, None, self.seed],
                    adjoint=True,
                    device=self.device.warp,
                    record_cmd=True,
                )
            self._adjoint.launch()


class WarpRows:
    """`RowFunction` of a joint type by a Warp function; on the host it runs on Warp's CPU device.

    Args:
        name: name of the joint type; names: names of its rows.
        function: ``f(row: int, M: wp.mat33d, r: wp.vec3d, p: wp.array(dtype=wp.float64)) -> wp.float64``.
        p: (np,) parameters at which the adjoint is checked.

    Raises:
        SceneError: the adjoint differs from the finite differences.
    """

    def __init__(self, name: str, names: list[str], function: wp.Function, p: np.ndarray):
        start_warp()
        self.name, self.count, self.parameters, self.warp_function = name, len(names), len(p), function
        self.device = Device("cpu")
        self._items: dict[int, WarpItems] = {}
        M, r = sample_poses()
        numbers = np.tile(p, (len(M), 1))
        found = self.slopes(M, r, numbers, np.ones(len(M)))[1]
        compare(name, names, found, by_differences(self.values, M, r, numbers))

    def values(self, M: np.ndarray, r: np.ndarray, p: np.ndarray) -> np.ndarray:
        """See `RowFunction`."""
        return self._evaluated(M, r, p).values.numpy().reshape(len(M), self.count).copy()

    def slopes(self, M: np.ndarray, r: np.ndarray, p: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `RowFunction`; `length` is not used, because the adjoint needs no difference step."""
        items, k = self._evaluated(M, r, p), len(M)
        items.differentiate()
        by_M = items.by_M.numpy().reshape(k, self.count, 9)
        by_r = items.by_r.numpy().reshape(k, self.count, 3)
        return items.values.numpy().reshape(k, self.count).copy(), np.concatenate([by_M, by_r], axis=2)

    def _evaluated(self, M: np.ndarray, r: np.ndarray, p: np.ndarray) -> WarpItems:
        """Evaluate all rows of every pair; the items are cached by number of pairs."""
        p = np.repeat(p, self.count, axis=0)
        items = self._items.get(len(M))
        if items is None:
            rows = np.tile(np.arange(self.count), len(M))
            items = self._items[len(M)] = WarpItems(self.warp_function, rows, p, self.device)
        items.p.numpy()[:, : self.parameters] = p
        items.M.numpy()[:] = np.repeat(M, self.count, axis=0)
        items.r.numpy()[:] = np.repeat(r, self.count, axis=0)
        items.evaluate()
        return items


class CustomMeasures:
    """Evaluation of user-defined measures into `supplied` of the measures on a device.

    Raises:
        DeviceError: a measure is a NumPy function and the device is not the CPU.
    """

    def __init__(self, table: MeasureTable, measures: Measures, device: Device):
        refuse_host_functions(table.custom, device.name, not device.wide)
        self.measures, self.device = measures, device
        self.groups = [
            _WarpGroup(group, device) if isinstance(group.function, WarpRows) else _HostGroup(group, device)
            for group in table.custom
        ]

    def supply(self, pose, with_slopes: bool) -> None:
        """Compute values, and derivatives if `with_slopes`, at a pose."""
        launch = self.device.launch
        for group in self.groups:
            launch(kernels.frame_features, group.count, group.chosen, self.measures, pose, group.M, group.r)
            group.evaluate(with_slopes)
            results = group.values, group.by_M, group.by_r
            launch(kernels.store_results, group.count, group.chosen, *results, self.measures.supplied)


class _WarpGroup(WarpItems):
    """Measures of one Warp function."""

    def __init__(self, group: CustomRows, device: Device):
        super().__init__(group.function.warp_function, group.row, group.p[group.pair], device)
        self.chosen = device.upload(group.measure, wp.int32)

    def evaluate(self, with_slopes: bool) -> None:
        super().evaluate()
        if with_slopes:
            self.differentiate()


class _HostGroup:
    """Measures of one NumPy function; kernels and host share the arrays in CPU memory."""

    def __init__(self, group: CustomRows, device: Device):
        self.group, self.count = group, len(group.measure)
        self.chosen = device.upload(group.measure, wp.int32)
        self.M, self.by_M = device.zeros(self.count, wp.mat33d), device.zeros(self.count, wp.mat33d)
        self.r, self.by_r = device.zeros(self.count, wp.vec3d), device.zeros(self.count, wp.vec3d)
        self.values = device.zeros(self.count, wp.float64)
        self._first = np.searchsorted(group.measure, group.first)

    def evaluate(self, with_slopes: bool) -> None:
        values, slopes = self.group.evaluate(self.M.numpy()[self._first], self.r.numpy()[self._first], with_slopes)
        self.values.numpy()[:] = values
        if with_slopes:
            self.by_M.numpy()[:], self.by_r.numpy()[:] = slopes[:, :9].reshape(-1, 3, 3), slopes[:, 9:]


def refuse_host_functions(groups: tuple[CustomRows, ...], device: str, reached: bool) -> None:
    """Raise a `DeviceError` for joint types of NumPy functions, unless the device can access the host (`reached`)."""
    names = [repr(group.function.name) for group in groups if not isinstance(group.function, WarpRows)]
    if names and not reached:
        kind = "joint type" if len(names) == 1 else "joint types"
        raise DeviceError(
            f"{kind} {', '.join(names)}: NumPy functions do not run on {device}; "
            "use --device cpu or numpy, or write the rows as a Warp function (@wp.func)"
        )
