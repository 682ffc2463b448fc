"""Convolutions with XLA.

On CPUs, XLA has fast kernels for convolutions of one group whose filter is not larger than the
image. Its fallback for the others takes up to 300 times as long as a sum of products over the taps
of the filter, which XLA fuses into one loop, or as one matrix product.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from retrograde.ops._windows import Windows


class _Convolution(NamedTuple):
    """The static arguments of a convolution of `x`, which can be dilated first."""

    windows: Windows
    groups: int
    dilations: tuple[int, ...]  # of `x`

    def space(self, x: Any) -> tuple[int, ...]:
        return tuple(map(_dilated_size, x.shape[1:-1], self.dilations))

    def views(self, x: Any) -> Any:
        """Yields each tap of the filter, with the elements of `x` that it is multiplied by."""
        from jax import lax

        padding = [(*p, d - 1) for p, d in zip(self.windows.padding, self.dilations, strict=True)]
        padded = lax.pad(x, x.dtype.type(0), [(0, 0, 0), *padding, (0, 0, 0)])
        strides, positions = self.windows.strides, self.windows.positions(self.space(x))
        for tap in self.windows.taps():
            starts = [j * d for j, d in zip(tap, self.windows.dilations, strict=True)]
            ends = [
                start + (count - 1) * stride + 1
                for start, count, stride in zip(starts, positions, strides, strict=True)
            ]
            first, last = (0, *starts, 0), (len(x), *ends, x.shape[-1])
            yield tap, lax.slice(padded, first, last, (1, *strides, 1))

    def general(self, x: Any, w: Any) -> Any:
        """Computes the convolution by XLA's own operation."""
        from jax import lax

        axes = _axes(self.windows)
        return lax.conv_general_dilated(
            x,
            w,
            self.windows.strides,
            self.windows.padding,
            lhs_dilation=self.dilations,
            rhs_dilation=self.windows.dilations,
            dimension_numbers=(f"N{axes}C", f"{axes}IO", f"N{axes}C"),
            feature_group_count=self.groups,
        )

    def by_taps(self, x: Any, w: Any) -> Any:
        """Sums products of channels, for groups with one channel or one result."""
        import jax.numpy as jnp

        dtype, x, w = x.dtype, _widen(x), _widen(w)
        channels = w.shape[-2]  # in a group
        if channels == 1:
            x = _repeat_channels(x, w.shape[-1])
        y: Any = 0
        for tap, view in self.views(x):
            for channel in range(channels):
                y = y + view[..., channel::channels] * w[(*tap, channel)]
        return jnp.asarray(y, dtype)

    def by_product(self, x: Any, w: Any) -> Any:
        """Multiplies the matrix of all windows by the matrix of the filter."""
        import jax.numpy as jnp

        patches = jnp.concatenate([view for _, view in self.views(x)], axis=-1)
        y = patches.reshape(-1, patches.shape[-1]) @ w.reshape(-1, w.shape[-1])
        return y.reshape(*patches.shape[:-1], w.shape[-1])

    def on_cpu(self, x: Any, w: Any) -> Any:
        """Returns the method to use on CPUs."""
        space = self.space(x)
        if not _has_elements(x, self.windows.positions(space)):
            return self.general
        if self.groups > 1 and self.groups in (x.shape[-1], w.shape[-1]):
            return self.by_taps
        is_larger = any(k > n for k, n in zip(self.windows.size, space, strict=True))
        return self.by_product if self.groups == 1 and is_larger else self.general

    def __call__(self, x: Any, w: Any) -> Any:
        on_cpu = self.on_cpu(x, w)
        if on_cpu == self.general:
            return self.general(x, w)
        return _platform_dependent(x, w, cpu=on_cpu, default=self.general)


def _platform_dependent(*args, **functions):
    from jax import lax

    return lax.platform_dependent(*args, **functions)


def _axes(windows):
    return "DHW"[-windows.ndim :]


def _has_elements(x, positions):
    return x.dtype.kind in "fcV" and x.size > 0 and prod(positions) > 0


def _widen(x):
    """Returns 16-bit numbers as float32. Their sums would be rounded after each tap."""
    return x.astype("float32") if x.dtype.itemsize == 2 else x


def _repeat_channels(x, results):
    import jax.numpy as jnp

    times = results // x.shape[-1]
    return x if times == 1 else jnp.repeat(x, times, axis=-1)


def convolve(x, w, windows, groups):
    """Convolves x, `(batch, *space, channels)`, with w, `(*taps, channels per group, results)`."""
    return _Convolution(windows, groups, (1,) * windows.ndim)(x, w)


def convolve_transposed(xp, g, w, windows, groups, space):
    """Computes the transpose of `convolve` with respect to x."""
    taps, channels, results = w.shape[:-2], w.shape[-2], w.shape[-1]
    w = xp.flip(w, tuple(range(windows.ndim)))
    w = w.reshape(*taps, channels, groups, results // groups)
    w = xp.swapaxes(w, -1, -3).reshape(*taps, results // groups, groups * channels)
    padding = []
    for n, o, k, s, (low, _), d in zip(space, g.shape[1:-1], *windows, strict=True):
        before = (k - 1) * d - low
        padding.append((before, n - _dilated_size(o, s) - before + (k - 1) * d))
    ones = (1,) * windows.ndim
    reverse = Windows(windows.size, ones, tuple(padding), windows.dilations)
    return _Convolution(reverse, groups, windows.strides)(g, w)


def convolve_filter(x, g, windows, groups):
    """Computes the transpose of `convolve` with respect to w: a convolution over the batch."""
    axes = _axes(windows)
    padding = []
    for n, o, k, s, (low, _), d in zip(x.shape[1:-1], g.shape[1:-1], *windows, strict=True):
        padding.append((low, (k - 1) * d + _dilated_size(o, s) - n - low))

    def general(x, g):
        from jax import lax

        return lax.conv_general_dilated(
            x,
            g,
            windows.dilations,
            padding,
            rhs_dilation=windows.strides,
            dimension_numbers=(f"C{axes}N", f"I{axes}O", f"{axes}NC"),
            batch_group_count=groups,
        )

    def by_taps(x, g):
        return _filter_by_taps(x, g, _Convolution(windows, groups, (1,) * windows.ndim))

    if groups == 1 or x.shape[-1] != groups or not _has_elements(x, g.shape):
        return general(x, g)
    return _platform_dependent(x, g, cpu=by_taps, default=general)


def _filter_by_taps(x, g, convolution):
    """Sums over the batch by products with a row of ones, the fastest sum over leading axes."""
    import jax.numpy as jnp

    dtype, x, g = x.dtype, _widen(x), _widen(g)
    x = _repeat_channels(x, g.shape[-1])
    ones = jnp.ones((1, prod(g.shape[:-1])), g.dtype)
    rows = [ones @ (view * g).reshape(-1, g.shape[-1]) for _, view in convolution.views(x)]
    return jnp.concatenate(rows).reshape(*convolution.windows.size, 1, -1).astype(dtype)


def _dilated_size(count, stride):
    """Returns the length of `count` elements with `stride - 1` zeros between them."""
    return (count - 1) * stride + 1 if count else 0
