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


# The bins are TensorFlow's.
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


@pytest.mark.parametrize("strings", [np.array, tf.constant, lambda x: np.array(x, "O")])
def test_models_accept_strings(strings, tmp_path):
    words = keras.Input((1,), dtype="string")
    outputs = layers.Dense(2)(layers.Hashing(7, output_mode="multi_hot")(words))
    model = keras.Model(words, outputs)
    model.compile("sgd", "mse")
    x = strings([["a"], ["b"], ["c"]])

    model.fit(x, np.ones([3, 2]), batch_size=2, verbose=0)
    predictions = model.predict(x, verbose=0)
    np.testing.assert_allclose(predictions, model(tf.constant([["a"], ["b"], ["c"]])))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.predict(x, verbose=0), predictions)
