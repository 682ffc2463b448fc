"""Convolutions with XLA, by `lax.conv_general_dilated`."""

from __future__ import annotations


def _layout(windows):
    return "DHW"[-windows.ndim :]


def _general(*args, **options):
    from jax import lax

    return lax.conv_general_dilated(*args, **options)


def convolve(x, w, windows, groups):
    """Convolves x, `(batch, *space, channels)`, with w, `(*taps, channels per group, results)`."""
    axes = _layout(windows)
    return _general(
        x,
        w,
        windows.strides,
        windows.padding,
        rhs_dilation=windows.dilations,
        dimension_numbers=(f"N{axes}C", f"{axes}IO", f"N{axes}C"),
        feature_group_count=groups,
    )


def convolve_transposed(xp, g, w, windows, groups, space):
    """Computes the transpose of `convolve` with respect to x."""
    axes = _layout(windows)
    taps, channels, results = w.shape[:-2], w.shape[-2], w.shape[-1]
    w = xp.flip(w, tuple(range(windows.ndim)))
    w = w.reshape(*taps, channels, groups, results // groups)
    w = xp.swapaxes(w, -1, -3).reshape(*taps, results // groups, groups * channels)
    padding = []
    for n, o, k, s, (low, _), d in zip(space, g.shape[1:-1], *windows, strict=True):
        before = (k - 1) * d - low
        padding.append((before, n - _dilated_size(o, s) - before + (k - 1) * d))
    return _general(
        g,
        w,
        (1,) * windows.ndim,
        padding,
        lhs_dilation=windows.strides,
        rhs_dilation=windows.dilations,
        dimension_numbers=(f"N{axes}C", f"{axes}IO", f"N{axes}C"),
        feature_group_count=groups,
    )


def convolve_filter(x, g, windows, groups):
    """Computes the transpose of `convolve` with respect to w: a convolution over the batch."""
    axes = _layout(windows)
    padding = []
    for n, o, k, s, (low, _), d in zip(x.shape[1:-1], g.shape[1:-1], *windows, strict=True):
        padding.append((low, (k - 1) * d + _dilated_size(o, s) - n - low))
    return _general(
        x,
        g,
        windows.dilations,
        padding,
        rhs_dilation=windows.strides,
        dimension_numbers=(f"C{axes}N", f"I{axes}O", f"{axes}NC"),
        batch_group_count=groups,
    )


def _dilated_size(count, stride):
    """Returns the length of `count` elements with `stride - 1` zeros between them."""
    return (count - 1) * stride + 1 if count else 0
