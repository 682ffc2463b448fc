"""A Wasserstein GAN with gradient penalty: generates points on a spiral.

The critic learns to separate real from generated points. A penalty keeps the norm of its gradient
near one, so the loss contains a gradient. Shows nested tapes.
"""

import numpy as np
import tensorflow as tf
from example_utils import (
    BLUE,
    INK,
    ORANGE,
    parse_options,
    plot_curve,
    print_progress,
    report,
    saved_figure,
)
from networks import Mlp

NOISE = 2


def make_spiral(count, random):
    """Returns points along a spiral, with a little noise."""
    angle = 1.5 * np.pi * (1 + 2 * random.uniform(size=(count, 1)))
    points = np.concatenate([angle * np.cos(angle), angle * np.sin(angle)], axis=1) / 7
    return (points + random.normal(0.0, 0.05, points.shape)).astype(np.float32)


def make_noise(count, random):
    return tf.constant(random.normal(size=(count, NOISE)).astype(np.float32))


def gradient_penalty(critic, real, generated, mix):
    """Computes the gradient penalty at points between real and generated ones."""
    interpolated = mix * real + (1.0 - mix) * generated
    with tf.GradientTape() as tape:
        tape.watch(interpolated)
        values = critic(interpolated)
    gradients = tape.gradient(values, interpolated)
    norms = tf.sqrt(tf.reduce_sum(gradients**2, axis=1) + 1e-12)
    return tf.reduce_mean((norms - 1.0) ** 2)


def make_steps(critic, generator):
    """Returns the critic's training step, which estimates the distance, and the generator's."""
    critic_optimizer = tf.optimizers.Adam(1e-3, beta_1=0.0, beta_2=0.9)
    generator_optimizer = tf.optimizers.Adam(5e-4, beta_1=0.0, beta_2=0.9)

    @tf.function
    def critic_step(real, noise, mix):
        generated = generator(noise)
        with tf.GradientTape() as tape:
            distance = tf.reduce_mean(critic(real)) - tf.reduce_mean(critic(generated))
            loss = -distance + 0.5 * gradient_penalty(critic, real, generated, mix)
        gradients = tape.gradient(loss, critic.trainable_variables)
        critic_optimizer.apply_gradients(zip(gradients, critic.trainable_variables))
        return distance

    @tf.function
    def generator_step(noise):
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(critic(generator(noise)))
        gradients = tape.gradient(loss, generator.trainable_variables)
        generator_optimizer.apply_gradients(zip(gradients, generator.trainable_variables))

    return critic_step, generator_step


def train(critic, generator, steps, batch, seed):
    """Returns the critic's distance estimate before each generator step."""
    random = np.random.default_rng(seed)
    critic_step, generator_step = make_steps(critic, generator)
    distances = []
    for step in range(1, steps + 1):
        for _ in range(4):
            real = tf.constant(make_spiral(batch, random))
            mix = tf.constant(random.uniform(size=(batch, 1)).astype(np.float32))
            distance = critic_step(real, make_noise(batch, random), mix)
        generator_step(make_noise(batch, random))
        distances.append(float(distance))
        print_progress(step, steps, distance=distance)
    return distances


def sliced_distance(a, b, seed=0, directions=64):
    """Computes the sliced Wasserstein distance of two sets of points."""
    angles = np.random.default_rng(seed).uniform(0, np.pi, directions)
    lines = np.stack([np.cos(angles), np.sin(angles)])
    return np.mean(np.abs(np.sort(a @ lines, axis=0) - np.sort(b @ lines, axis=0)))


def main(argv=None):
    options = parse_options(__doc__, argv, steps=(2000, 4), batch=(128, 32), width=(64, 16))
    generator = Mlp((NOISE, *(options.width,) * 3, 2), tf.nn.relu, options.seed)
    critic = Mlp((2, *(options.width,) * 3, 1), tf.nn.silu, options.seed + 1)
    random = np.random.default_rng(99)
    real, noise = make_spiral(1000, random), make_noise(1000, random)
    before = generator(noise).numpy()
    distances = train(critic, generator, options.steps, options.batch, options.seed)
    generated = generator(noise).numpy()
    if not options.small:
        draw(options, critic, real, generated, distances)
    return report(
        options,
        {
            "final estimate of the critic": distances[-1],
            "initial sliced distance": sliced_distance(real, before),
            "final sliced distance": sliced_distance(real, generated),
            "sliced distance of real samples": sliced_distance(real, make_spiral(1000, random)),
        },
    )


def draw(options, critic, real, generated, distances):
    """Plots real and generated points, the output of the critic, and its distance estimate."""
    line = np.linspace(-2.4, 2.4, 80, dtype=np.float32)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    values = critic(tf.constant(grid)).numpy().reshape(80, 80)
    with saved_figure(options, "wgan_gp", 1, 3) as (_, axes):
        axes[0, 0].scatter(*real.T, s=4, color=BLUE, alpha=0.5, label="real")
        axes[0, 0].scatter(*generated.T, s=4, color=ORANGE, alpha=0.6, label="generated")
        axes[0, 0].set(title="Points", aspect="equal")
        axes[0, 0].legend(frameon=False, markerscale=3)
        axes[0, 1].contourf(line, line, values, 24, cmap="RdBu_r")
        axes[0, 1].scatter(*real[::4].T, s=2, color=INK)
        axes[0, 1].set(title="Output of the critic", aspect="equal")
        plot_curve(axes[0, 2], distances, "Distance estimate of the critic")


if __name__ == "__main__":
    main()
