"""Image translation with one persistent tape: outlines become colored shapes.

A generator fills outlines; a discriminator sees outline and image together. Both losses are
computed under one persistent tape, which computes two gradients. Shows `persistent=True` and
`del tape`.
"""

import numpy as np
import tensorflow as tf
from example_utils import (
    BLUE,
    ORANGE,
    RED,
    parse_options,
    plot_curve,
    print_progress,
    report,
    saved_figure,
    set_initial_weights,
    show_image,
)

SIDE = 16


def make_pairs(count, random):
    """Returns outlines of discs and squares, and the filled shapes in blue and orange."""
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    outlines = np.zeros((count, SIDE, SIDE, 1), np.float32)
    filled = np.full((count, SIDE, SIDE, 3), 0.95, np.float32)
    colors = np.array([[0.16, 0.44, 0.6], [0.88, 0.48, 0.12]], np.float32)
    for i in range(count):
        kind = random.integers(0, 2)
        radius = random.uniform(3.0, 5.5)
        center = random.uniform(radius + 0.5, SIDE - 1.5 - radius, 2)
        offsets = np.abs(y - center[0]), np.abs(x - center[1])
        distance = np.maximum(*offsets) if kind else np.hypot(*offsets)
        inside = distance <= radius
        outlines[i, ..., 0] = inside & (distance > radius - 1.1)
        filled[i, inside] = colors[kind] * (1.15 - 0.3 * y[inside, None] / SIDE)
    return tf.constant(outlines), tf.constant(filled.clip(0, 1))


def make_generator(width):
    """Returns a small U-Net: downsampling, upsampling and skip connections."""
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


def make_discriminator(width):
    """Returns a network that rates each patch of an image, given its outline."""
    layers = tf.keras.layers
    outline, filled = tf.keras.Input((SIDE, SIDE, 1)), tf.keras.Input((SIDE, SIDE, 3))
    x = layers.Concatenate()([outline, filled])
    x = layers.LeakyReLU(negative_slope=0.2)(layers.Conv2D(width, 4, 2, padding="same")(x))
    x = layers.LeakyReLU(negative_slope=0.2)(layers.Conv2D(2 * width, 4, 2, padding="same")(x))
    return tf.keras.Model([outline, filled], layers.Conv2D(1, 3, padding="same")(x))


def make_step(generator, discriminator):
    cross_entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)
    generator_optimizer = tf.keras.optimizers.Adam(2e-3, beta_1=0.5)
    discriminator_optimizer = tf.keras.optimizers.Adam(5e-4, beta_1=0.5)

    @tf.function
    def step(outline, filled):
        with tf.GradientTape(persistent=True) as tape:
            generated = generator(outline, training=True)
            real_logits = discriminator([outline, filled], training=True)
            generated_logits = discriminator([outline, generated], training=True)
            error = tf.reduce_mean((generated - filled) ** 2)
            adversarial = cross_entropy(tf.ones_like(generated_logits), generated_logits)
            generator_loss = 0.1 * adversarial + 50.0 * error
            discriminator_loss = cross_entropy(tf.ones_like(real_logits), real_logits)
            discriminator_loss += cross_entropy(tf.zeros_like(generated_logits), generated_logits)
        generator_grads = tape.gradient(generator_loss, generator.trainable_variables)
        discriminator_grads = tape.gradient(discriminator_loss, discriminator.trainable_variables)
        del tape
        generator_optimizer.apply_gradients(zip(generator_grads, generator.trainable_variables))
        discriminator_optimizer.apply_gradients(
            zip(discriminator_grads, discriminator.trainable_variables)
        )
        return error, adversarial, discriminator_loss

    return step


def main(argv=None):
    options = parse_options(__doc__, argv, steps=(600, 3), batch=(16, 4), width=(16, 3))
    generator, discriminator = make_generator(options.width), make_discriminator(options.width)
    set_initial_weights(
        [*generator.trainable_variables, *discriminator.trainable_variables], options.seed
    )
    step = make_step(generator, discriminator)
    random = np.random.default_rng(options.seed)
    history = []
    for number in range(1, options.steps + 1):
        losses = [float(loss) for loss in step(*make_pairs(options.batch, random))]
        history.append(losses)
        print_progress(
            number, options.steps, error=losses[0], adversarial=losses[1], discriminator=losses[2]
        )
    outlines, filled = make_pairs(100, np.random.default_rng(99))
    generated = generator(outlines)
    if not options.small:
        draw(options, outlines.numpy(), filled.numpy(), generated.numpy(), np.array(history))
    white_error = np.mean(np.abs(0.95 - filled.numpy()))
    return report(
        options,
        {
            "mean absolute error": np.mean(np.abs(generated.numpy() - filled.numpy())),
            "error of a white image": white_error,
            "final discriminator loss": history[-1][2],
        },
    )


def draw(options, outlines, filled, generated, history):
    """Plots outlines, generated images, targets, and the losses."""
    with saved_figure(options, "translation", 3, 8, size=(14, 5.4)) as (figure, axes):
        by_color = np.argsort(filled[..., 2].mean(axis=(1, 2)))  # both shapes are shown
        for column, i in enumerate(by_color[[5, 25, 50, 75, 95]]):
            show_image(axes[0, column], outlines[i, ..., 0], "outline" if not column else "")
            show_image(axes[1, column], generated[i], "generated" if not column else "")
            show_image(axes[2, column], filled[i], "target" if not column else "")
        for axis in axes[:, 5:].ravel():
            axis.remove()
        axis = figure.add_subplot(axes[0, 0].get_gridspec()[:, 5:])
        names = (("error times 100", BLUE), ("adversarial", ORANGE), ("discriminator", RED))
        for column, (name, color) in enumerate(names):
            values = history[:, column] * (100 if not column else 1)
            plot_curve(axis, values, "Losses", color, label=name)
        axis.legend(frameon=False)


if __name__ == "__main__":
    main()
