"""The loop over time steps of recurrent layers."""

from keras.src import tree
from keras.src.backend.common.symbolic_scope import in_symbolic_scope

from retrograde.core.apply import apply
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.ops import arithmetic as ar
from retrograde.ops import reduction
from retrograde.ops.casting import zeros_like
from retrograde.ops.shaping import broadcast_to, reshape, stack, take_slice, unstack


def rnn(
    step_function,
    inputs,
    initial_states,
    go_backwards=False,
    mask=None,
    constants=None,
    unroll=False,
    input_length=None,
    time_major=False,
    zero_output_for_mask=False,
    return_all_outputs=True,
):
    """Runs `output, states = step_function(input, states)` for each time step.

    Returns the last output, all outputs and the last states. Where `mask` is false, the states
    do not change, and the output is the previous one, or 0 if `zero_output_for_mask`. With
    `go_backwards`, the loop starts at the last time step, and outputs are in the order of their
    computation. `unroll` has no effect: tapes record every step. Shape inference runs one step.
    """
    axis = 0 if time_major else 1
    flat = [convert_to_tensor(x) for x in tree.flatten(inputs)]
    leaves = [_time_steps(x, axis) for x in flat]
    order = -1 if go_backwards else 1
    time_steps = [
        tree.pack_sequence_as(inputs, list(step_inputs))
        for step_inputs in list(zip(*leaves, strict=True))[::order]
    ]
    if not time_steps:
        raise ValueError(
            "An RNN requires at least one time step. Received: inputs without time steps."
        )
    masks = [None] * len(time_steps) if mask is None else _masks(mask, axis)[::order]
    constants = tuple(constants or ())
    states, outputs = initial_states, []
    for step_inputs, step_mask in zip(time_steps, masks, strict=True):
        all_states = (*states, *constants) if constants else states
        output, new_states = step_function(step_inputs, all_states)
        if step_mask is not None:
            previous = zeros_like(output) if zero_output_for_mask or not outputs else outputs[-1]
            output = _select(step_mask, output, previous)
            new_states = tree.map_structure(
                lambda new, old, step_mask=step_mask: _select(step_mask, new, old),
                tree.pack_sequence_as(states, tree.flatten(new_states)),
                states,
            )
        states = new_states
        if not return_all_outputs:
            outputs.clear()
        outputs.append(output)
    all_outputs = stack(*outputs, axis=axis)
    if in_symbolic_scope() and return_all_outputs:
        shape = list(all_outputs._spec.shape)
        shape[axis] = flat[0]._spec.shape[axis]
        all_outputs = broadcast_to(all_outputs, shape=tuple(shape))
    return outputs[-1], all_outputs, states


def _time_steps(x, axis):
    """Returns the slices of `x` along the time axis; only the first during shape inference."""
    if not in_symbolic_scope():
        return unstack(x, axis=axis)
    where = [(0, n, 1) for n in x._spec.shape]
    where[axis] = (0, 1, 1)
    return unstack(take_slice(x, where=tuple(where)), axis=axis)


def _masks(mask, axis):
    """Returns the mask of each time step, of shape `(batch, 1)`."""
    mask = cast(mask, "bool")
    if mask.ndim == 2:
        mask = reshape(mask, shape=(*mask._spec.shape, 1))
    elif mask.shape[-1] != 1:
        mask = apply(reduction.any, (mask,), {"axis": (mask.ndim - 1,), "keepdims": True})
    return _time_steps(mask, axis)


def _select(step_mask, new, old):
    new, old = convert_to_tensor(new), convert_to_tensor(old)
    step_mask = reshape(step_mask, shape=(step_mask.shape[0], *(1,) * (new.ndim - 1)))
    return apply(ar.select, (step_mask, new, old))


def cudnn_ok(*args, **kwargs):
    """Returns `False`: there are no cuDNN kernels."""
    return False


def lstm(*args, **kwargs):
    raise NotImplementedError


def gru(*args, **kwargs):
    raise NotImplementedError


def bidirectional_lstm(*args, **kwargs):
    raise NotImplementedError


def bidirectional_gru(*args, **kwargs):
    raise NotImplementedError
