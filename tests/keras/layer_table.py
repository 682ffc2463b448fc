"""Layers for gradient tests, and their results from Keras on JAX.

`layer_results.json` holds the loss and directional derivatives of each deterministic layer in
float32. After changing the table, run this file with Keras and JAX installed:

    KERAS_BACKEND=jax python tests/keras/layer_table.py
"""

from __future__ import annotations

import json
import pathlib
from typing import Any, NamedTuple

import numpy as np

EXPECTED_PATH = pathlib.Path(__file__).parents[1] / "data" / "layer_results.json"


class Layer(NamedTuple):
    """A function that creates a layer, the shapes of its inputs and further call arguments.

    `second_order` adds a test of second derivatives. `random` marks layers with random results,
    `float32_only` layers that Keras computes in float32 only.
    """

    make: Any
    shapes: list
    call: dict = {}  # noqa: RUF012
    second_order: bool = False
    random: bool = False
    float32_only: bool = False


IMAGE, VOLUME, SERIES = (2, 5, 6, 3), (1, 4, 4, 5, 2), (2, 5, 3)
MASK = np.array([[True, True, False, True, True], [True, False, True, True, False]])


def layers(keras: Any) -> dict[str, Layer]:
    """Returns the table, keyed by class name and variant."""
    L = keras.layers
    table = {}

    def add(label, make, *shapes, **options):
        table[label] = Layer(make, list(shapes), **options)

    # Core
    add("Dense", lambda: L.Dense(4, "tanh"), (2, 3), second_order=True)
    add("Dense-series", lambda: L.Dense(4, use_bias=False), SERIES)
    add(
        "EinsumDense",
        lambda: L.EinsumDense("abc,cd->abd", (None, 4), bias_axes="d"),
        SERIES,
        second_order=True,
    )
    add("Embedding", lambda: EmbeddingCall(L.Embedding(4, 3)), (2, 2, 3))
    add("ReversibleEmbedding", lambda: EmbeddingCall(L.ReversibleEmbedding(4, 3)), (2, 2, 3))
    add(
        "ReversibleEmbedding-reverse",
        lambda: L.ReversibleEmbedding(4, 3),
        (2, 3),
        call={"reverse": True},
    )
    add("Activation", lambda: L.Activation("softplus"), (2, 3))
    add("Lambda", lambda: L.Lambda(lambda x: x * keras.ops.sin(x)), (2, 3))
    add("Masking", lambda: L.Masking(), SERIES)
    add("Identity", lambda: L.Identity(), (2, 3))
    add("TimeDistributed-dense", lambda: L.TimeDistributed(L.Dense(4, "tanh")), SERIES)
    add("TimeDistributed", lambda: L.TimeDistributed(L.Conv1D(2, 2)), (2, 3, 4, 3))
    add("ActivityRegularization", lambda: L.ActivityRegularization(0.1, 0.1), (2, 3))
    # Activations
    for name, make in {
        "ELU": lambda: L.ELU(1.3),
        "LeakyReLU": lambda: L.LeakyReLU(0.2),
        "PReLU": lambda: L.PReLU(),
        "ReLU": lambda: L.ReLU(0.9, 0.1, 0.2),
        "Softmax": lambda: L.Softmax(),
        "ThresholdedReLU": lambda: L.ReLU(threshold=0.1),
    }.items():
        add(name, make, (2, 4))
    for name in (
        "gelu",
        "silu",
        "selu",
        "mish",
        "softsign",
        "hard_sigmoid",
        "log_softmax",
        "celu",
        "glu",
        "squareplus",
        "sparsemax",
        "tanh_shrink",
        "soft_shrink",
        "relu6",
    ):
        add(f"Activation-{name}", lambda name=name: L.Activation(name), (2, 4))
    # Merging
    for name in ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate"):
        add(name, getattr(L, name), (2, 3), (2, 3))
    add("Dot", lambda: L.Dot(axes=(1, 2), normalize=True), (2, 3, 4), (2, 5, 3))
    # Shapes
    add("Flatten", L.Flatten, SERIES)
    add("Reshape", lambda: L.Reshape((3, -1)), SERIES)
    add("Permute", lambda: L.Permute((2, 1)), SERIES)
    add("RepeatVector", lambda: L.RepeatVector(3), (2, 3))
    for n, shape in ((1, SERIES), (2, IMAGE), (3, VOLUME)):
        add(f"Cropping{n}D", lambda n=n: getattr(L, f"Cropping{n}D")(1), shape)
        add(f"ZeroPadding{n}D", lambda n=n: getattr(L, f"ZeroPadding{n}D")(2), shape)
        add(f"UpSampling{n}D", lambda n=n: getattr(L, f"UpSampling{n}D")(2), shape)
        for kind in ("Max", "Average"):
            add(
                f"{kind}Pooling{n}D",
                lambda n=n, kind=kind: getattr(L, f"{kind}Pooling{n}D")(2, 2, "same"),
                shape,
            )
            add(
                f"Global{kind}Pooling{n}D",
                lambda n=n, kind=kind: getattr(L, f"Global{kind}Pooling{n}D")(),
                shape,
            )
            add(
                f"Adaptive{kind}Pooling{n}D",
                lambda n=n, kind=kind: getattr(L, f"Adaptive{kind}Pooling{n}D")(3),
                shape,
            )
        add(
            f"Conv{n}D",
            lambda n=n: getattr(L, f"Conv{n}D")(2, 2, activation="tanh"),
            shape,
            second_order=n < 3,
        )
        add(
            f"Conv{n}DTranspose",
            lambda n=n: getattr(L, f"Conv{n}DTranspose")(2, 2, strides=2),
            shape,
        )
        add(
            f"SpatialDropout{n}D",
            lambda n=n: getattr(L, f"SpatialDropout{n}D")(0.4, seed=1),
            shape,
            call={"training": True},
            random=True,
        )
    add("UpSampling2D-bilinear", lambda: L.UpSampling2D(2, interpolation="bilinear"), IMAGE)
    add("Conv2D-dilated", lambda: L.Conv2D(2, 2, dilation_rate=2, padding="same"), IMAGE)
    add("Conv2D-strided", lambda: L.Conv2D(4, 3, strides=(2, 1), padding="same"), IMAGE)
    add("Conv2D-groups", lambda: L.Conv2D(6, 3, groups=3), IMAGE)
    add("Conv1D-causal", lambda: L.Conv1D(2, 2, padding="causal"), SERIES)
    for n, shape in ((1, SERIES), (2, IMAGE)):
        add(f"SeparableConv{n}D", lambda n=n: getattr(L, f"SeparableConv{n}D")(2, 2), shape)
        add(
            f"DepthwiseConv{n}D",
            lambda n=n: getattr(L, f"DepthwiseConv{n}D")(2, depth_multiplier=2),
            shape,
        )
    # Normalization
    add(
        "BatchNormalization",
        L.BatchNormalization,
        (6, 3),
        call={"training": True},
        second_order=True,
    )
    add("BatchNormalization-inference", L.BatchNormalization, (6, 3))
    add(
        "BatchNormalization-masked",
        L.BatchNormalization,
        SERIES,
        call={"training": True, "mask": MASK},
    )
    add("LayerNormalization", L.LayerNormalization, (3, 4), second_order=True)
    add("GroupNormalization", lambda: L.GroupNormalization(2), (2, 3, 4), second_order=True)
    add("RMSNormalization", L.RMSNormalization, (3, 4), second_order=True)
    add("UnitNormalization", L.UnitNormalization, (3, 4), second_order=True)
    add(
        "SpectralNormalization",
        lambda: L.SpectralNormalization(L.Dense(3)),
        (2, 4),
    )
    add("Normalization", lambda: L.Normalization(mean=0.3, variance=2.0), (3, 4))
    # Attention
    add("Attention", lambda: L.Attention(use_scale=True), (2, 3, 4), (2, 5, 4), second_order=True)
    add("AdditiveAttention", L.AdditiveAttention, (2, 3, 4), (2, 5, 4), second_order=True)
    add(
        "MultiHeadAttention",
        lambda: AttentionCall(L.MultiHeadAttention(2, 3)),
        (2, 3, 4),
        (2, 5, 4),
        second_order=True,
    )
    add(
        "MultiHeadAttention-causal",
        lambda: AttentionCall(L.MultiHeadAttention(2, 3), 1),
        (2, 4, 3),
        call={"use_causal_mask": True},
    )
    add(
        "GroupedQueryAttention",
        lambda: AttentionCall(L.GroupQueryAttention(3, 4, 2)),
        (2, 3, 4),
        (2, 5, 4),
    )
    # Recurrent
    for name in ("SimpleRNN", "LSTM", "GRU"):
        make = getattr(L, name)
        add(name, lambda make=make: make(4), SERIES)
        add(f"{name}-sequences", lambda make=make: make(4, return_sequences=True), SERIES)
        add(
            f"{name}-masked",
            lambda make=make: make(3, go_backwards=True),
            SERIES,
            call={"mask": MASK},
        )
        cell = getattr(L, f"{name}Cell")
        states = 2 if name == "LSTM" else 1
        add(f"{name}Cell", lambda cell=cell: CellCall(cell(4)), (2, 3), *[(2, 4)] * states)
    add("GRU-reset-before", lambda: L.GRU(3, reset_after=False, use_bias=True), SERIES)
    add("RNN-StackedRNNCells", lambda: L.RNN([L.LSTMCell(3), L.GRUCell(2)]), SERIES)
    add("StackedRNNCells", lambda: L.RNN(L.StackedRNNCells([L.GRUCell(3), L.GRUCell(2)])), SERIES)
    add("Bidirectional", lambda: L.Bidirectional(L.LSTM(3, return_sequences=True)), SERIES)
    for n, shape in ((1, (1, 3, 4, 2)), (2, (1, 3, 4, 4, 2)), (3, (1, 2, 3, 3, 3, 2))):
        add(f"ConvLSTM{n}D", lambda n=n: getattr(L, f"ConvLSTM{n}D")(2, 2), shape)
    # Preprocessing
    add("Rescaling", lambda: L.Rescaling(0.5, 1.0), (2, 3))
    add("Resizing", lambda: L.Resizing(4, 9), IMAGE)
    add("CenterCrop", lambda: L.CenterCrop(3, 4), IMAGE)
    add(
        "STFTSpectrogram",
        lambda: L.STFTSpectrogram("real", frame_length=6, frame_step=3, fft_length=8),
        (2, 20, 1),
    )
    add(
        "MelSpectrogram",
        lambda: L.MelSpectrogram(
            fft_length=16, sequence_stride=8, num_mel_bins=4, sampling_rate=100, min_freq=1
        ),
        (2, 40),
        float32_only=True,
    )
    # Random
    for name in ("Dropout", "GaussianDropout", "AlphaDropout", "GaussianNoise"):
        add(
            name,
            lambda name=name: getattr(L, name)(0.4, seed=1),
            (4, 5),
            call={"training": True},
            random=True,
        )
    for name, make in {
        "CutMix": lambda: L.CutMix(seed=1),
        "MixUp": lambda: L.MixUp(seed=1),
        "RandAugment": lambda: L.RandAugment((0, 1), seed=1),
        "RandomBrightness": lambda: L.RandomBrightness(0.2, (0, 1), seed=1),
        "RandomColorDegeneration": lambda: L.RandomColorDegeneration(0.5, (0, 1), seed=1),
        "RandomContrast": lambda: L.RandomContrast(0.3, (0, 1), seed=1),
        "RandomCrop": lambda: L.RandomCrop(3, 4, seed=1),
        "RandomElasticTransform": lambda: L.RandomElasticTransform(1.0, scale=0.9, seed=1),
        "RandomErasing": lambda: L.RandomErasing(1.0, seed=1),
        "RandomFlip": lambda: L.RandomFlip(seed=1),
        "RandomGaussianBlur": lambda: L.RandomGaussianBlur(1.0, value_range=(0, 1), seed=1),
        "RandomGrayscale": lambda: L.RandomGrayscale(0.5, seed=1),
        "RandomInvert": lambda: L.RandomInvert(0.5, (0, 1), seed=1),
        "RandomPerspective": lambda: L.RandomPerspective(1.0, 0.5, seed=1),
        "RandomRotation": lambda: L.RandomRotation(0.3, seed=1),
        "RandomSaturation": lambda: L.RandomSaturation(0.5, (0, 1), seed=1),
        "RandomSharpness": lambda: L.RandomSharpness(0.5, (0, 1), seed=1),
        "RandomShear": lambda: L.RandomShear(0.5, 0.5, seed=1),
        "RandomTranslation": lambda: L.RandomTranslation(0.3, 0.3, seed=1),
        "RandomZoom": lambda: L.RandomZoom(0.3, seed=1),
        "Solarization": lambda: L.Solarization(0.0, 0.2, (0, 1), seed=1),
        "RandomHue": lambda: L.RandomHue(0.5, (0, 1), seed=1),
        "RandomColorJitter": lambda: L.RandomColorJitter((0, 1), 0.2, 0.2, 0.2, 0.2, seed=1),
        "AutoContrast": lambda: L.AutoContrast((0, 1)),
        "Pipeline": lambda: L.Pipeline([L.RandomFlip(seed=1), L.Rescaling(0.5)]),
        "Equalization": lambda: L.Equalization((0, 1)),
    }.items():
        add(name, make, IMAGE, call={"training": True}, random=True)
    return table  # fmt: skip


class AttentionCall:
    """Calls an attention layer with a list of inputs."""

    def __init__(self, layer, count=2):
        self.layer, self.count = layer, count

    def __call__(self, inputs, **call):
        query, value = (inputs, inputs) if self.count == 1 else inputs
        return self.layer(query, value, **call)


class CellCall:
    """Calls a recurrent cell with a list of its input and states."""

    def __init__(self, layer):
        self.layer = layer

    def __call__(self, inputs, **call):
        y, states = self.layer(inputs[0], list(inputs[1:]), **call)
        return [y, *(states if isinstance(states, list | tuple) else [states])]


class EmbeddingCall:
    """Looks up some integers in an embedding layer and multiplies them by the input."""

    def __init__(self, layer):
        self.layer = layer

    def __call__(self, inputs, **call):
        return self.layer(np.array([[0, 3], [3, 1]]), **call) * inputs


class LayerCase:
    """A layer with inputs and weights that are the same on all backends."""

    def __init__(self, keras: Any, label: str, dtype: str) -> None:
        make, shapes, call, _, random, _ = layers(keras)[label]
        self.rng = np.random.default_rng(list(label.encode()))
        low = 0.05 if shapes == [IMAGE] and random else -1.0
        self.inputs = [self.rng.uniform(low, 1, shape).astype(dtype) for shape in shapes]
        policy = keras.config.dtype_policy()
        keras.config.set_dtype_policy(dtype)
        try:
            self.callable, self.options = make(), call
            self.layer = (
                self.callable.layer
                if isinstance(self.callable, AttentionCall | CellCall | EmbeddingCall)
                else self.callable
            )
            self.keras = keras
            self(*map(keras.ops.convert_to_tensor, self.inputs))  # creates the weights
        finally:
            keras.config.set_dtype_policy(policy)
        self.weights = [self._weight(v.numpy(), dtype) for v in self.layer.trainable_variables]
        self.state = [(v, np.array(v)) for v in self.layer.non_trainable_variables]

    def _weight(self, initial: np.ndarray, dtype: str) -> np.ndarray:
        """Perturbs constant initial values; replaces random ones."""
        constant = np.isin(initial, (0, 1)).all()
        noise = self.rng.uniform(-1, 1, initial.shape)
        return (initial + 0.3 * noise if constant else 0.7 * noise).astype(dtype)

    def __call__(self, *inputs: Any) -> list:
        """Returns the outputs in a list."""
        y = self.callable(list(inputs) if len(inputs) > 1 else inputs[0], **self.options)
        return y if isinstance(y, list | tuple) else [y]

    def directions(self) -> list[np.ndarray]:
        """Returns a random direction for each input and each weight."""
        rng = np.random.default_rng(3)
        return [rng.uniform(0.5, 1.5, x.shape).astype(x.dtype) for x in self.inputs + self.weights]

    def weighted_sum(self, outputs: list) -> Any:
        """Returns the sum of all outputs with random weights."""
        rng = np.random.default_rng(4)
        total = 0.0
        for y in outputs:
            factors = rng.uniform(0.5, 1.5, tuple(y.shape)).astype(self.inputs[0].dtype)
            total = self.keras.ops.sum(y * factors) + total
        return total


def _jax_result(label: str) -> list[float]:
    """Returns the loss and its directional derivatives."""
    import jax
    import keras

    case = LayerCase(keras, label, "float32")

    def loss(inputs, weights):
        for v, w in zip(case.layer.trainable_variables, weights, strict=True):
            v._value = w
        return case.weighted_sum(case(*inputs))

    inputs, weights = ([jax.numpy.asarray(x) for x in xs] for xs in (case.inputs, case.weights))
    value, (input_gradients, weight_gradients) = jax.value_and_grad(loss, (0, 1))(inputs, weights)
    gradients = [*input_gradients, *weight_gradients]
    directional_derivatives = [
        (g * d).sum() for g, d in zip(gradients, case.directions(), strict=True)
    ]
    return [float(f"{float(x):.8g}") for x in (value, *directional_derivatives)]


if __name__ == "__main__":
    import keras

    assert keras.backend.backend() == "jax"
    table = {label: layer for label, layer in layers(keras).items() if not layer.random}
    del table["Activation-sparsemax"]  # Keras's result on JAX does not sum to 1
    lines = [f"{json.dumps(label)}: {json.dumps(_jax_result(label))}" for label in table]
    EXPECTED_PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")
