"""Keras's preprocessing layers in models, functions and datasets."""

import importlib

import numpy as np
import pytest

import retrograde as tf
from retrograde import keras
from retrograde.tensorflow_shim.import_hook import retrograde_as_tensorflow

layers = keras.layers
IMAGES = np.arange(2 * 6 * 6 * 3, dtype=np.float32).reshape(2, 6, 6, 3)

IMAGE_LAYERS = {
    "Rescaling": lambda: layers.Rescaling(1 / 255, offset=-1),
    "RandomFlip": lambda: layers.RandomFlip(seed=1),
    "RandomRotation": lambda: layers.RandomRotation(0.1, seed=1),
    "RandomZoom": lambda: layers.RandomZoom(0.1, seed=1),
    "RandomTranslation": lambda: layers.RandomTranslation(0.1, 0.1, seed=1),
    "RandomContrast": lambda: layers.RandomContrast(0.1, seed=1),
    "RandomBrightness": lambda: layers.RandomBrightness(0.1, seed=1),
    "Resizing": lambda: layers.Resizing(4, 5),
    "CenterCrop": lambda: layers.CenterCrop(4, 4),
    "Normalization": lambda: layers.Normalization(mean=2.0, variance=4.0),
}


@pytest.fixture(autouse=True)
def tensorflow():
    """Makes `tensorflow` importable: Keras tests whether it is imported."""
    with retrograde_as_tensorflow():
        yield importlib.import_module("tensorflow")


@pytest.mark.parametrize("create", IMAGE_LAYERS.values(), ids=IMAGE_LAYERS)
def test_image_layers_in_functions_and_datasets(create):
    expected = create()(IMAGES)

    layer = create()
    traced = tf.function(lambda x: layer(x))(IMAGES)
    (mapped,) = tf.data.Dataset.from_tensors(IMAGES).map(create())

    np.testing.assert_allclose(traced, expected, rtol=1e-6)
    np.testing.assert_allclose(mapped, expected, rtol=1e-6)


@pytest.mark.parametrize("create", IMAGE_LAYERS.values(), ids=IMAGE_LAYERS)
def test_image_layers_in_models(create):
    model = keras.Sequential([layers.Input((6, 6, 3)), create(), layers.Flatten(), layers.Dense(1)])
    model.compile("sgd", "mse")

    model.fit(IMAGES, np.zeros([2, 1]), verbose=0)
    assert model.predict(IMAGES, verbose=0).shape == (2, 1)


def test_random_layers_draw_new_numbers_for_each_element():
    flip = layers.RandomFlip("horizontal", seed=1)
    images = tf.data.Dataset.from_tensors(IMAGES[0]).repeat(20).map(lambda x: flip(x))

    assert len({image.numpy().tobytes() for image in images}) == 2


def test_category_encoding():
    counts = [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0]]
    x = tf.constant([[0, 1], [3, 3]])
    layer = layers.CategoryEncoding(4, output_mode="count")
    (mapped,) = tf.data.Dataset.from_tensors(x).map(layer)

    assert layer(x).numpy().tolist() == mapped.numpy().tolist() == counts
    multi_hot = layers.CategoryEncoding(4, output_mode="multi_hot")(x)
    assert multi_hot.numpy().tolist() == np.minimum(counts, 1).tolist()


# The expected bins were computed with TensorFlow.
def test_hashing():
    assert layers.Hashing(5)([["a"], ["b"]]).numpy().tolist() == [[4], [2]]
    assert layers.Hashing(5, salt=133)([["a"], ["b"]]).numpy().tolist() == [[2], [4]]
    assert layers.Hashing(3, mask_value=0)([0, 7]).numpy().tolist()[0] == 0


def test_hashed_crossing():
    layer = layers.HashedCrossing(5)
    x = (tf.constant(["A", "B", "A"]), tf.constant([101, 101, 102]))
    one_hot = layers.HashedCrossing(5, output_mode="one_hot", sparse=False)

    assert layer(x).numpy().tolist() == [1, 4, 3]
    assert one_hot(x).numpy().argmax(-1).tolist() == [1, 4, 3]


@pytest.mark.parametrize("make_array", [np.array, tf.constant, lambda x: np.array(x, "O")])
def test_models_accept_strings(make_array, tmp_path):
    words = keras.Input((1,), dtype="string")
    outputs = layers.Dense(2)(layers.Hashing(7, output_mode="multi_hot")(words))
    model = keras.Model(words, outputs)
    model.compile("sgd", "mse")
    x = make_array([["a"], ["b"], ["c"]])

    model.fit(x, np.ones([3, 2]), batch_size=2, verbose=0)
    predictions = model.predict(x, verbose=0)
    np.testing.assert_allclose(predictions, model(tf.constant([["a"], ["b"], ["c"]])))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.predict(x, verbose=0), predictions)


# Lookups. The expected results were computed with TensorFlow.

LOOKUPS = {
    "int": ({}, [["a", "z"], ["b", "a"]], [[1, 0], [2, 1]]),
    "invert": ({"invert": True}, [0, 1, 2], [b"[UNK]", b"a", b"b"]),
    "multi_hot": ({"output_mode": "multi_hot"}, [["a", "z"]], [[1, 1, 0]]),
    "count": ({"output_mode": "count"}, [["a", "a"]], [[0, 2, 0]]),
    "one_hot": ({"output_mode": "one_hot"}, ["a", "b"], [[0, 1, 0], [0, 0, 1]]),
    "oov": ({"num_oov_indices": 3}, [["q", "a"]], [[2, 3]]),
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_string_lookup(name):
    options, x, expected = LOOKUPS[name]
    layer = layers.StringLookup(vocabulary=["a", "b"], **options)
    x = tf.constant(x, "int64" if name == "invert" else "string")

    assert layer(x).numpy().tolist() == expected
    assert tf.function(lambda x: layer(x))(x).numpy().tolist() == expected
    (mapped,) = tf.data.Dataset.from_tensors(x).map(layer)
    assert mapped.numpy().tolist() == expected


def test_integer_lookup():
    layer = layers.IntegerLookup(vocabulary=[12, 36])

    assert layer([[12, 7], [36, 0]]).numpy().tolist() == [[1, 0], [2, 0]]


@pytest.mark.parametrize(
    "data",
    [["a", "b", "b", "c"], tf.data.Dataset.from_tensor_slices(["a", "b", "b", "c"]).batch(2)],
    ids=type,
)
def test_lookups_adapt_to_data(data):
    layer = layers.StringLookup()
    layer.adapt(data)

    assert layer.get_vocabulary() == ["[UNK]", "b", "c", "a"]


def adapted(**options):
    layer = layers.TextVectorization(**options)
    layer.adapt(["the cat sat", "the dog ran, far!"])
    return layer


def lowercase_letters(x):
    return tf.strings.regex_replace(tf.strings.lower(x), "[^a-z ]", "")


VECTORS = {
    "default": ({}, ["the cat zzz"], [[2, 7, 1]]),
    "length": (
        {"output_sequence_length": 4, "max_tokens": 6},
        ["the cat", "dog"],
        [[2, 1, 0, 0], [1, 0, 0, 0]],
    ),
    "multi_hot": ({"output_mode": "multi_hot"}, [["the cat"]], [[0, 1, 0, 0, 0, 0, 1]]),
    "character": ({"split": "character"}, ["cat"], [[14, 4, 3]]),
    "standardize": ({"standardize": lowercase_letters}, ["The, Cat"], [[2, 7]]),
}


@pytest.mark.parametrize("name", VECTORS)
def test_text_vectorization(name):
    options, x, expected = VECTORS[name]
    layer, x = adapted(**options), tf.constant(x)

    assert layer(x).numpy().tolist() == expected
    assert tf.function(lambda x: layer(x))(x).numpy().tolist() == expected
    (mapped,) = tf.data.Dataset.from_tensors(x).map(layer)
    assert mapped.numpy().tolist() == expected


def test_text_vectorization_with_ragged_results():
    assert adapted(ragged=True)(["the cat", "dog"]).to_list() == [[2, 7], [6]]


def test_text_vectorization_with_tf_idf():
    y = adapted(output_mode="tf_idf")(["the cat"])

    np.testing.assert_allclose(y, [[0, 0.51082563, 0, 0, 0, 0, 0.6931472]], rtol=1e-6)


def test_text_vectorization_in_saved_models(tmp_path):
    words = keras.Input((1,), dtype="string")
    x = layers.Embedding(20, 4)(adapted(output_sequence_length=4)(words))
    model = keras.Model(words, layers.Dense(1)(layers.GlobalAveragePooling1D()(x)))
    model.compile("adam", "mse")
    data = np.array([["the cat"], ["dog"]], object)

    model.fit(data, np.ones([2, 1]), verbose=0)
    predictions = model.predict(data, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.predict(data, verbose=0), predictions)
    assert loaded.layers[1].get_vocabulary()[:3] == ["", "[UNK]", "the"]


def test_text_vectorization_as_the_first_layer():
    model = keras.Sequential(
        [adapted(), layers.Embedding(20, 4), layers.GlobalAveragePooling1D(), layers.Dense(1)]
    )
    model.compile("adam", "mse")
    texts = ["the cat", "dog", "the dog ran"]
    model.fit(tf.data.Dataset.from_tensor_slices((texts, [1.0, 0.0, 1.0])).batch(2), verbose=0)

    assert model.predict(tf.constant(texts), verbose=0).shape == (3, 1)


def test_feature_space():
    features = {"s": "string_categorical", "i": "integer_categorical", "f": "float_normalized"}
    space = keras.utils.FeatureSpace(
        features=features, output_mode="concat", crosses=[("s", "i")], crossing_dim=8
    )
    data = tf.data.Dataset.from_tensor_slices(
        {"s": ["a", "b", "a"], "i": [1, 2, 1], "f": [0.1, 0.2, 0.3]}
    )
    space.adapt(data)

    assert space({"s": ["a", "b"], "i": [1, 2], "f": [0.1, 0.2]}).shape == (2, 15)
    assert [x.shape for x in data.batch(2).map(space)] == [(2, 15), (1, 15)]
