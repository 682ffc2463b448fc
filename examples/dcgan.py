"""A DCGAN: a convolutional generator and discriminator learn to draw digits.

The generator turns noise into images with transposed convolutions and batch normalization. Shows
convolutional networks in a custom training loop, with batch statistics in training and moving
averages afterwards.
"""

import numpy as np
import tensorflow as tf
from example_utils import (
    BLUE,
    ORANGE,
    parse_options,
    plot_curve,
    print_progress,
    report,
    saved_figure,
    set_initial_weights,
    show_image,
)
from glyphs import SHAPES, SIZE, make_digits

NOISE = 32
layers = tf.keras.layers


def make_generator(width):
    """Returns a network from noise to images in [-1, 1]: 3x3, 6x6, then 12x12 pixels."""
    return tf.keras.Sequential(
        [
            tf.keras.Input((NOISE,)),
            layers.Dense(3 * 3 * 4 * width, use_bias=False),
            layers.BatchNormalization(),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Reshape((3, 3, 4 * width)),
            layers.Conv2DTranspose(2 * width, 4, strides=2, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Conv2DTranspose(1, 4, strides=2, padding="same", activation="tanh"),
        ]
    )


def make_discriminator(width):
    """Returns a network from images to the logit that they are real."""
    return tf.keras.Sequential(
        [
            tf.keras.Input((SIZE, SIZE, 1)),
            layers.Conv2D(width, 4, strides=2, padding="same"),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Conv2D(2 * width, 4, strides=2, padding="same"),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )


def make_step(generator, discriminator):
    """Returns the step that trains both networks."""
    cross_entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)
    generator_optimizer = tf.keras.optimizers.Adam(1e-3, beta_1=0.5)
    discriminator_optimizer = tf.keras.optimizers.Adam(1e-3, beta_1=0.5)

    @tf.function
    def step(real, noise):
        with tf.GradientTape() as generator_tape, tf.GradientTape() as discriminator_tape:
            generated = generator(noise, training=True)
            real_logits = discriminator(real, training=True)
            generated_logits = discriminator(generated, training=True)
            generator_loss = cross_entropy(tf.ones_like(generated_logits), generated_logits)
            # One-sided label smoothing: a target of 0.9 keeps the discriminator uncertain.
            discriminator_loss = cross_entropy(0.9 * tf.ones_like(real_logits), real_logits)
            discriminator_loss += cross_entropy(tf.zeros_like(generated_logits), generated_logits)
        gradients = generator_tape.gradient(generator_loss, generator.trainable_variables)
        generator_optimizer.apply_gradients(zip(gradients, generator.trainable_variables))
        gradients = discriminator_tape.gradient(
            discriminator_loss, discriminator.trainable_variables
        )
        discriminator_optimizer.apply_gradients(zip(gradients, discriminator.trainable_variables))
        return generator_loss, discriminator_loss

    return step


def similarity(images):
    """Returns the correlation of each image with the most similar digit, and that digit."""
    templates, labels = [], []
    for digit, shape in enumerate(SHAPES):
        for down in range(SIZE - 6):
            for right in range(SIZE - 4):
                template = np.zeros((SIZE, SIZE))
                template[down : down + 7, right : right + 5] = shape
                templates.append(template.ravel())
                labels.append(digit)
    scores = normalized(images.reshape(len(images), -1)) @ normalized(np.array(templates)).T
    return scores.max(axis=1), np.array(labels)[scores.argmax(axis=1)]


def normalized(rows):
    """Returns rows with mean 0 and norm 1."""
    rows = rows - rows.mean(axis=1, keepdims=True)
    return rows / (np.linalg.norm(rows, axis=1, keepdims=True) + 1e-6)


def make_noise(count, random):
    return tf.constant(random.normal(size=(count, NOISE)).astype(np.float32))


def main(argv=None):
    options = parse_options(__doc__, argv, steps=(1500, 3), batch=(64, 16), width=(16, 4))
    images, _ = make_digits(60 * options.batch, options.seed, noise=0.05, max_shift=0)
    images = 2.0 * images[..., None] - 1.0
    generator, discriminator = make_generator(options.width), make_discriminator(options.width)
    set_initial_weights(
        [*generator.trainable_variables, *discriminator.trainable_variables], options.seed
    )
    step = make_step(generator, discriminator)
    random = np.random.default_rng(options.seed)
    fixed_noise = make_noise(16, random)
    losses, snapshots = [], []
    for number in range(1, options.steps + 1):
        real = tf.constant(images[random.integers(0, len(images), options.batch)])
        both = step(real, make_noise(options.batch, random))
        losses.append([float(loss) for loss in both])
        print_progress(number, options.steps, generator=both[0], discriminator=both[1])
        if number in (options.steps // 15, options.steps // 5, options.steps):
            snapshots.append((number, generator(fixed_noise, training=False).numpy()))
    scores, digits = similarity(generator(make_noise(500, random), training=False).numpy())
    if not options.small:
        draw(options, images, snapshots, np.array(losses))
    return report(
        options,
        {
            "final generator loss": losses[-1][0],
            "final discriminator loss": losses[-1][1],
            "mean similarity to a digit": scores.mean(),
            "different digits": len(np.unique(digits[scores > 0.8])),
        },
    )


def draw(options, real, snapshots, losses):
    """Plots real images, images generated from the same noise during training, and the losses."""
    columns = [("Real images", real[:16])]
    columns += [(f"Generated, step {number}", images) for number, images in snapshots]
    with saved_figure(options, "dcgan", 1, 5, size=(17, 3.8)) as (_, axes):
        for axis, (title, images) in zip(axes[0], columns):
            show_image(axis, tile(images), title, vmin=-1)
        for column, label, color in ((0, "generator", ORANGE), (1, "discriminator", BLUE)):
            means = np.convolve(losses[:, column], np.ones(20) / 20, "valid")
            plot_curve(axes[0, 4], means, "Losses", color, label=label)
        axes[0, 4].legend(frameon=False)


def tile(images):
    """Returns 16 images as one, in four rows."""
    tiles = np.pad(images[..., 0], ((0, 0), (1, 1), (1, 1)), constant_values=-0.6)
    side = SIZE + 2
    return tiles.reshape(4, 4, side, side).swapaxes(1, 2).reshape(4 * side, 4 * side)


if __name__ == "__main__":
    main()
