"""Attribution maps: Grad-CAM and integrated gradients.

A network learns which shape is in a cluttered image, without being told where. Grad-CAM weights the
feature maps of the last convolution by the gradient of the logit. Integrated gradients average the
gradient with respect to the pixels on the path from an empty image. Shows gradients with respect to
intermediate activations and inputs.
"""

import numpy as np
import tensorflow as tf
from example_utils import (
    parse_options,
    plot_curve,
    print_progress,
    report,
    saved_figure,
    set_initial_weights,
    show_image,
)

SIDE, SHAPE = 24, 9
NAMES = ("disc", "square", "cross")


def shape_of(kind):
    y, x = np.mgrid[0:SHAPE, 0:SHAPE] - SHAPE // 2
    if kind == 0:
        return x**2 + y**2 <= 17
    if kind == 1:
        return np.maximum(abs(x), abs(y)) <= 3
    return (abs(x) <= 1) | (abs(y) <= 1)


def make_images(count, seed):
    """Returns images with one shape and short strokes, the labels, and the shapes' corners."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, len(NAMES), count).astype(np.int32)
    images = np.zeros((count, SIDE, SIDE, 1))
    for canvas in images:
        for row, column in random.integers(0, SIDE - 4, (9, 2)):
            tall = random.integers(0, 2)
            canvas[row : row + 1 + 3 * tall, column : column + 4 - 3 * tall] = 0.8
    corners = random.integers(0, SIDE - SHAPE + 1, (count, 2))
    for canvas, label, (row, column) in zip(images, labels, corners):
        canvas[row : row + SHAPE, column : column + SHAPE, 0] = 0.8 * shape_of(label)
    images += random.normal(0.0, 0.08, images.shape)
    return images.clip(0, 1).astype(np.float32), labels, corners


def make_model(width):
    inputs = tf.keras.Input((SIDE, SIDE, 1))
    x = tf.keras.layers.Conv2D(width, 5, padding="same", activation="relu")(inputs)
    x = tf.keras.layers.MaxPooling2D(2)(x)
    x = tf.keras.layers.Conv2D(2 * width, 5, padding="same", activation="relu", name="last")(x)
    x = tf.keras.layers.GlobalMaxPooling2D()(x)
    return tf.keras.Model(inputs, tf.keras.layers.Dense(len(NAMES))(x))


def train(model, images, labels, steps, seed):
    random = np.random.default_rng(seed)
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.Adam(5e-3)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    losses = []
    for number in range(1, steps + 1):
        rows = random.integers(0, len(labels), 32)
        losses.append(float(step(tf.constant(images[rows]), tf.constant(labels[rows]))))
        print_progress(number, steps, loss=losses[-1])
    return losses


def grad_cam(model, images, labels):
    """Computes the Grad-CAM map of each image for its label."""
    both = tf.keras.Model(model.input, [model.get_layer("last").output, model.output])
    with tf.GradientTape() as tape:
        maps, logits = both(images)
        label_logits = tf.gather(logits, labels, batch_dims=1)
    weights = tf.reduce_mean(tape.gradient(label_logits, maps), axis=(1, 2), keepdims=True)
    return tf.nn.relu(tf.reduce_sum(weights * maps, axis=3)).numpy()


def integrated_gradients(model, images, labels, steps=48):
    """Computes attributions whose sum is the change of the logit from an empty image."""
    total = tf.zeros_like(images)
    for fraction in (np.arange(steps) + 0.5) / steps:
        x = tf.constant(images * np.float32(fraction))
        with tf.GradientTape() as tape:
            tape.watch(x)
            label_logits = tf.gather(model(x), labels, batch_dims=1)
        total += tape.gradient(label_logits, x)
    return (total / steps).numpy() * images


def hit_rate(maps, corners):
    """Returns the fraction of maps with their maximum on the shape."""
    scale = SIDE // maps.shape[1]
    indices = [np.unravel_index(m.argmax(), m.shape) for m in maps]
    centers = (np.array(indices) + 0.5) * scale
    return np.mean(np.all((centers >= corners) & (centers <= corners + SHAPE), axis=1))


def main(argv=None):
    options = parse_options(__doc__, argv, steps=(500, 4), images=(2000, 64), width=(12, 4))
    images, labels, _ = make_images(options.images, options.seed)
    model = make_model(options.width)
    set_initial_weights(model.trainable_variables, options.seed)
    losses = train(model, images, labels, options.steps, options.seed)

    images, labels, corners = make_images(100, options.seed + 1)
    logits = model(images).numpy()
    maps = grad_cam(model, images, labels)
    pixels = integrated_gradients(model, images, labels)
    at_label = np.arange(len(labels)), labels
    change = logits[at_label] - model(0 * images).numpy()[at_label]
    if not options.small:
        draw(options, losses, images, labels, logits.argmax(axis=1), maps, pixels)
    return report(
        options,
        {
            "final loss": losses[-1],
            "accuracy": np.mean(logits.argmax(axis=1) == labels),
            "Grad-CAM maxima on the shape": hit_rate(maps, corners),
            "error of the sum of attributions": np.max(np.abs(pixels.sum(axis=(1, 2, 3)) - change)),
        },
    )


def draw(options, losses, images, labels, predictions, maps, pixels):
    """Plots images with their attribution maps, and the loss."""
    with saved_figure(options, "attributions", 3, 7, size=(14, 6.4)) as (_, axes):
        for i in range(6):
            title = f"{NAMES[labels[i]]}, predicted {NAMES[predictions[i]]}"
            show_image(axes[0, i], images[i, ..., 0], title)
            show_image(axes[1, i], images[i, ..., 0], "Grad-CAM" if not i else "")
            heat_map = np.kron(maps[i] / maps[i].max(), np.ones((2, 2)))
            axes[1, i].imshow(heat_map, cmap="inferno", alpha=0.6)
            limit = np.abs(pixels[i]).max()
            show_image(
                axes[2, i],
                pixels[i, ..., 0],
                "integrated gradients" if not i else "",
                cmap="RdBu_r",
                vmin=-limit,
                vmax=limit,
            )
        plot_curve(axes[0, 6], losses, "Loss")
        axes[1, 6].axis("off")
        axes[2, 6].axis("off")


if __name__ == "__main__":
    main()
