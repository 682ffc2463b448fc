"""A GAN with two tapes: generates points from a ring of eight Gaussians.

A generator and a discriminator are trained in the same step. Shows two losses, two tapes and two
optimizers.
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
)

NOISE, CLUSTERS, STDDEV = 8, 8, 0.08


def make_ring(count, random):
    angle = 2 * np.pi * random.integers(0, CLUSTERS, count) / CLUSTERS
    centers = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return (centers + random.normal(0.0, STDDEV, centers.shape)).astype(np.float32)


def make_network(inputs, width, outputs):
    return tf.keras.Sequential(
        [
            tf.keras.Input((inputs,)),
            tf.keras.layers.Dense(width),
            tf.keras.layers.LeakyReLU(negative_slope=0.2),
            tf.keras.layers.Dense(width),
            tf.keras.layers.LeakyReLU(negative_slope=0.2),
            tf.keras.layers.Dense(outputs),
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
            discriminator_loss = cross_entropy(tf.ones_like(real_logits), real_logits)
            discriminator_loss += cross_entropy(tf.zeros_like(generated_logits), generated_logits)
        generator_variables = generator.trainable_variables
        discriminator_variables = discriminator.trainable_variables
        gradients = generator_tape.gradient(generator_loss, generator_variables)
        generator_optimizer.apply_gradients(zip(gradients, generator_variables))
        gradients = discriminator_tape.gradient(discriminator_loss, discriminator_variables)
        discriminator_optimizer.apply_gradients(zip(gradients, discriminator_variables))
        return generator_loss, discriminator_loss

    return step


def quality(points):
    """Returns the fraction of points near a cluster, and the number of clusters with points."""
    angle = 2 * np.pi * np.arange(CLUSTERS) / CLUSTERS
    centers = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    distances = np.linalg.norm(points[:, None] - centers[None], axis=2)
    near = distances.min(axis=1) < 3.5 * STDDEV
    counts = np.bincount(distances.argmin(axis=1)[near], minlength=CLUSTERS)
    return near.mean(), int((counts > len(points) / CLUSTERS / 10).sum())


def main(argv=None):
    options = parse_options(__doc__, argv, steps=(2000, 5), batch=(256, 32), width=(64, 12))
    generator = make_network(NOISE, options.width, 2)
    discriminator = make_network(2, options.width, 1)
    set_initial_weights(
        [*generator.trainable_variables, *discriminator.trainable_variables], options.seed
    )
    step = make_step(generator, discriminator)
    random = np.random.default_rng(options.seed)
    losses = []
    for number in range(1, options.steps + 1):
        real = tf.constant(make_ring(options.batch, random))
        noise = tf.constant(random.normal(size=(options.batch, NOISE)).astype(np.float32))
        both = step(real, noise)
        losses.append([float(loss) for loss in both])
        print_progress(number, options.steps, generator=both[0], discriminator=both[1])
    generated = generator(random.normal(size=(1000, NOISE)).astype(np.float32)).numpy()
    fraction, clusters = quality(generated)
    if not options.small:
        draw(options, discriminator, make_ring(1000, random), generated, np.array(losses))
    return report(
        options,
        {
            "final generator loss": losses[-1][0],
            "final discriminator loss": losses[-1][1],
            "fraction of points in a cluster": fraction,
            "clusters with points": clusters,
        },
    )


def draw(options, discriminator, real, generated, losses):
    """Plots real and generated points, the output of the discriminator, and the losses."""
    line = np.linspace(-1.6, 1.6, 80, dtype=np.float32)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    output = tf.sigmoid(discriminator(grid)).numpy().reshape(80, 80)
    with saved_figure(options, "gan", 1, 3) as (figure, axes):
        axes[0, 0].scatter(*real.T, s=4, color=BLUE, alpha=0.5, label="real")
        axes[0, 0].scatter(*generated.T, s=4, color=ORANGE, alpha=0.6, label="generated")
        axes[0, 0].set(title="Points", aspect="equal", xlim=(-1.6, 1.6), ylim=(-1.6, 1.6))
        axes[0, 0].legend(frameon=False, markerscale=3, loc="center")
        contours = axes[0, 1].contourf(line, line, output, np.linspace(0, 1, 21), cmap="RdBu_r")
        figure.colorbar(contours, ax=axes[0, 1])
        axes[0, 1].set(title="Output of the discriminator", aspect="equal")
        for column, label, color in ((0, "generator", ORANGE), (1, "discriminator", BLUE)):
            means = np.convolve(losses[:, column], np.ones(20) / 20, "valid")
            plot_curve(axes[0, 2], means, "Losses", color, label=label)
        axes[0, 2].legend(frameon=False)


if __name__ == "__main__":
    main()
