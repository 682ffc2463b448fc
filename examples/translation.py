"""Images translated, with one persistent tape: outlines turned into coloured shapes.

A generator fills outlines; a judge sees outline and picture together. Both losses are computed once
under one persistent tape, which is asked twice. What is taught: `persistent=True`, and `del tape`.
"""

import numpy as np
import tensorflow as tf
from showing import (
    BLUE,
    ORANGE,
    RED,
    curve,
    image,
    options_of,
    picture,
    progress,
    report,
    start_alike,
)

SIDE = 16


def make_pairs(count, random):
    """Outlines of discs and squares, and the same filled: discs in blue, squares in orange."""
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    outlines = np.zeros((count, SIDE, SIDE, 1), np.float32)
    filled = np.full((count, SIDE, SIDE, 3), 0.95, np.float32)
    colours = np.array([[0.16, 0.44, 0.6], [0.88, 0.48, 0.12]], np.float32)
    for i in range(count):
        kind = random.integers(0, 2)
        radius = random.uniform(3.0, 5.5)
        middle = random.uniform(radius + 0.5, SIDE - 1.5 - radius, 2)
        apart = np.abs(y - middle[0]), np.abs(x - middle[1])
        far = np.maximum(*apart) if kind else np.hypot(*apart)
        inside = far <= radius
        outlines[i, ..., 0] = inside & (far > radius - 1.1)
        filled[i, inside] = colours[kind] * (1.15 - 0.3 * y[inside, None] / SIDE)
    return tf.constant(outlines), tf.constant(filled.clip(0, 1))


def make_generator(width):
    """Down to a quarter and up again, with ways across."""
    layers = tf.keras.layers
    inputs = tf.keras.Input((SIDE, SIDE, 1))
    half = layers.Conv2D(width, 4, 2, padding="same", activation="elu")(inputs)
    quarter = layers.Conv2D(2 * width, 4, 2, padding="same", activation="elu")(half)
    deep = layers.Conv2D(2 * width, 3, padding="same", activation="elu")(quarter)
    up = layers.Conv2DTranspose(width, 4, 2, padding="same", activation="elu")(deep)
    up = layers.Concatenate()([up, half])
    up = layers.Conv2DTranspose(width, 4, 2, padding="same", activation="elu")(up)
    up = layers.Concatenate()([up, inputs])
    return tf.keras.Model(inputs, layers.Conv2D(3, 3, padding="same", activation="sigmoid")(up))


def make_judge(width):
    """Says for each part of a picture how real it looks beside its outline."""
    layers = tf.keras.layers
    outline, filled = tf.keras.Input((SIDE, SIDE, 1)), tf.keras.Input((SIDE, SIDE, 3))
    x = layers.Concatenate()([outline, filled])
    x = layers.LeakyReLU(negative_slope=0.2)(layers.Conv2D(width, 4, 2, padding="same")(x))
    x = layers.LeakyReLU(negative_slope=0.2)(layers.Conv2D(2 * width, 4, 2, padding="same")(x))
    return tf.keras.Model([outline, filled], layers.Conv2D(1, 3, padding="same")(x))


def make_step(generator, judge):
    cross_entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)
    for_generator = tf.keras.optimizers.Adam(2e-3, beta_1=0.5)
    for_judge = tf.keras.optimizers.Adam(5e-4, beta_1=0.5)

    @tf.function
    def step(outline, filled):
        with tf.GradientTape(persistent=True) as tape:
            made = generator(outline, training=True)
            of_real = judge([outline, filled], training=True)
            of_made = judge([outline, made], training=True)
            error = tf.reduce_mean((made - filled) ** 2)
            fooled = cross_entropy(tf.ones_like(of_made), of_made)
            generator_loss = 0.1 * fooled + 50.0 * error
            judge_loss = cross_entropy(tf.ones_like(of_real), of_real)
            judge_loss += cross_entropy(tf.zeros_like(of_made), of_made)
        of_generator = tape.gradient(generator_loss, generator.trainable_variables)
        of_judge = tape.gradient(judge_loss, judge.trainable_variables)
        del tape
        for_generator.apply_gradients(zip(of_generator, generator.trainable_variables))
        for_judge.apply_gradients(zip(of_judge, judge.trainable_variables))
        return error, fooled, judge_loss

    return step


def main(arguments=None):
    options = options_of(__doc__, arguments, steps=(600, 3), batch=(16, 4), width=(16, 3))
    generator, judge = make_generator(options.width), make_judge(options.width)
    start_alike([*generator.trainable_variables, *judge.trainable_variables], options.seed)
    step = make_step(generator, judge)
    random = np.random.default_rng(options.seed)
    history = []
    for number in range(1, options.steps + 1):
        losses = [float(loss) for loss in step(*make_pairs(options.batch, random))]
        history.append(losses)
        progress(number, options.steps, error=losses[0], fooled=losses[1], judge=losses[2])
    outlines, filled = make_pairs(100, np.random.default_rng(99))
    made = generator(outlines)
    if not options.small:
        draw(options, outlines.numpy(), filled.numpy(), made.numpy(), np.array(history))
    white = np.mean(np.abs(0.95 - filled.numpy()))
    return report(
        options,
        {
            "mean error of a pixel": np.mean(np.abs(made.numpy() - filled.numpy())),
            "of a white picture": white,
            "judge's loss at the end": history[-1][2],
        },
    )


def draw(options, outlines, filled, made, history):
    """Draws outlines, what was made of them, and what they should be."""
    with picture(options, "translation", 3, 8, size=(14, 5.4)) as (figure, axes):
        by_colour = np.argsort(filled[..., 2].mean(axis=(1, 2)))  # some of each kind
        for column, at in enumerate(by_colour[[5, 25, 50, 75, 95]]):
            image(axes[0, column], outlines[at, ..., 0], "outline" if not column else "")
            image(axes[1, column], made[at], "made" if not column else "")
            image(axes[2, column], filled[at], "true" if not column else "")
        for axis in axes[:, 5:].ravel():
            axis.remove()
        axis = figure.add_subplot(axes[0, 0].get_gridspec()[:, 5:])
        names = (("error times 100", BLUE), ("generator fooled", ORANGE), ("judge", RED))
        for column, (name, colour) in enumerate(names):
            values = history[:, column] * (100 if not column else 1)
            curve(axis, values, "Losses", colour, label=name)
        axis.legend(frameon=False)


if __name__ == "__main__":
    main()
