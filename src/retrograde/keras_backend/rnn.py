"""What recurrent layers ask of a backend: a loop over time."""

from keras.src import tree

from retrograde.core.apply import apply
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.ops import arithmetic as ar
from retrograde.ops import reduction
from retrograde.ops.casting import zeros_like
from retrograde.ops.shaping import reshape, stack, unstack


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
    """The last output, all outputs and the last states of `output, states = step(input, states)`.

    Where `mask` is false the states stay as they are, and the output is the one before, or 0 if
    `zero_output_for_mask`. With `go_backwards`, time runs from its end, and outputs are in the
    order in which they were made. Tapes follow every step, whether or not to `unroll` the loop.
    """
    axis = 0 if time_major else 1
    leaves = [unstack(convert_to_tensor(x), axis=axis) for x in tree.flatten(inputs)]
    order = -1 if go_backwards else 1
    moments = [
        tree.pack_sequence_as(inputs, list(at)) for at in list(zip(*leaves, strict=True))[::order]
    ]
    if not moments:
        raise ValueError("A loop over time requires at least one time step. Received: none.")
    seen = [None] * len(moments) if mask is None else _masks(mask, axis)[::order]
    constants = tuple(constants or ())
    states, outputs = initial_states, []
    for at, present in zip(moments, seen, strict=True):
        given = (*states, *constants) if constants else states
        output, new_states = step_function(at, given)
        if present is not None:
            before = zeros_like(output) if zero_output_for_mask or not outputs else outputs[-1]
            output = _where(present, output, before)
            new_states = tree.map_structure(
                lambda new, old, present=present: _where(present, new, old),
                tree.pack_sequence_as(states, tree.flatten(new_states)),
                states,
            )
        states = new_states
        if not return_all_outputs:
            outputs.clear()
        outputs.append(output)
    return outputs[-1], stack(*outputs, axis=axis), states


def _masks(mask, axis):
    """For each time whether it counts, `(batch, 1)`."""
    mask = cast(mask, "bool")
    if mask.ndim == 2:
        mask = reshape(mask, shape=(*mask._spec.shape, 1))
    elif mask.shape[-1] != 1:
        mask = apply(reduction.any, (mask,), {"axis": (mask.ndim - 1,), "keepdims": True})
    return unstack(mask, axis=axis)


def _where(present, new, old):
    new, old = convert_to_tensor(new), convert_to_tensor(old)
    present = reshape(present, shape=(present.shape[0], *(1,) * (new.ndim - 1)))
    return apply(ar.select, (present, new, old))


def cudnn_ok(*args, **kwargs):
    """Whether there are kernels of cuDNN: there are none."""
    return False


def lstm(*args, **kwargs):
    raise NotImplementedError


def gru(*args, **kwargs):
    raise NotImplementedError


def bidirectional_lstm(*args, **kwargs):
    raise NotImplementedError


def bidirectional_gru(*args, **kwargs):
    raise NotImplementedError
