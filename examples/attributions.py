"""Where a network looks: Grad-CAM and integrated gradients.

A network learns which shape is somewhere in a cluttered picture; nobody tells it where. Grad-CAM
weighs the maps of the last convolution by the gradient of the answer; integrated gradients add up
the gradient by the pixels on the way from an empty picture. What is taught: gradients of an answer
by what is inside a model, and by its input.
"""

import numpy as np
import tensorflow as tf
from showing import curve, image, options_of, picture, progress, report, start_alike

SIDE, SHAPE = 24, 9
NAMES = ("disc", "square", "cross")


def shape_of(kind):
    y, x = np.mgrid[0:SHAPE, 0:SHAPE] - SHAPE // 2
    if kind == 0:
        return x**2 + y**2 <= 17
    if kind == 1:
        return np.maximum(abs(x), abs(y)) <= 3
    return (abs(x) <= 1) | (abs(y) <= 1)


def make_pictures(count, seed):
    """Pictures with one shape and short strokes, what the shapes are, and where they are."""
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
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.Adam(5e-3)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    losses = []
    for number in range(1, steps + 1):
        rows = random.integers(0, len(labels), 32)
        losses.append(float(step(tf.constant(images[rows]), tf.constant(labels[rows]))))
        progress(number, steps, loss=losses[-1])
    return losses


def grad_cam(model, images, labels):
    """A map for each picture: where the last convolution speaks for the label."""
    both = tf.keras.Model(model.input, [model.get_layer("last").output, model.output])
    with tf.GradientTape() as tape:
        maps, logits = both(images)
        answers = tf.gather(logits, labels, batch_dims=1)
    weights = tf.reduce_mean(tape.gradient(answers, maps), axis=(1, 2), keepdims=True)
    return tf.nn.relu(tf.reduce_sum(weights * maps, axis=3)).numpy()


def integrated_gradients(model, images, labels, steps=48):
    """What each pixel adds to the answer; the sum is the answer less that to an empty picture."""
    total = tf.zeros_like(images)
    for share in (np.arange(steps) + 0.5) / steps:
        x = tf.constant(images * np.float32(share))
        with tf.GradientTape() as tape:
            tape.watch(x)
            answers = tf.gather(model(x), labels, batch_dims=1)
        total += tape.gradient(answers, x)
    return (total / steps).numpy() * images


def hits(maps, corners):
    """How often the hottest place lies on the shape."""
    scale = SIDE // maps.shape[1]
    places = [np.unravel_index(m.argmax(), m.shape) for m in maps]
    middles = (np.array(places) + 0.5) * scale
    return np.mean(np.all((middles >= corners) & (middles <= corners + SHAPE), axis=1))


def main(arguments=None):
    options = options_of(__doc__, arguments, steps=(500, 4), pictures=(2000, 64), width=(12, 4))
    images, labels, _ = make_pictures(options.pictures, options.seed)
    model = make_model(options.width)
    start_alike(model.trainable_variables, options.seed)
    losses = train(model, images, labels, options.steps, options.seed)

    images, labels, corners = make_pictures(100, options.seed + 1)
    logits = model(images).numpy()
    maps = grad_cam(model, images, labels)
    pixels = integrated_gradients(model, images, labels)
    chosen = np.arange(len(labels)), labels
    change = logits[chosen] - model(0 * images).numpy()[chosen]
    if not options.small:
        draw(options, losses, images, labels, logits.argmax(axis=1), maps, pixels)
    return report(
        options,
        {
            "loss at the end": losses[-1],
            "accuracy": np.mean(logits.argmax(axis=1) == labels),
            "Grad-CAM's hottest place on the shape": hits(maps, corners),
            "attributions miss the change by": np.max(np.abs(pixels.sum(axis=(1, 2, 3)) - change)),
        },
    )


def draw(options, losses, images, labels, found, maps, pixels):
    """Draws pictures, and where the network looks."""
    with picture(options, "attributions", 3, 7, size=(14, 6.4)) as (_, axes):
        for column in range(6):
            at = column
            title = f"{NAMES[labels[at]]}, read as {NAMES[found[at]]}"
            image(axes[0, column], images[at, ..., 0], title)
            image(axes[1, column], images[at, ..., 0], "Grad-CAM" if not column else "")
            heat = np.kron(maps[at] / maps[at].max(), np.ones((2, 2)))
            axes[1, column].imshow(heat, cmap="inferno", alpha=0.6)
            reach = np.abs(pixels[at]).max()
            image(
                axes[2, column],
                pixels[at, ..., 0],
                "integrated gradients" if not column else "",
                cmap="RdBu_r",
                vmin=-reach,
                vmax=reach,
            )
        curve(axes[0, 6], losses, "Loss")
        axes[1, 6].axis("off")
        axes[2, 6].axis("off")


if __name__ == "__main__":
    main()
