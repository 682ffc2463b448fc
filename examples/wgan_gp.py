"""A Wasserstein GAN with gradient penalty: points on a spiral roll, out of noise.

The critic learns to tell real points from made ones by a large difference of its answers, and is
held to slopes of about one: the penalty is made of a gradient, and has a gradient itself. What is
taught: a tape inside a tape.
"""

import numpy as np
import tensorflow as tf
from networks import Mlp
from showing import BLUE, INK, ORANGE, curve, options_of, picture, progress, report

NOISE = 2


def make_roll(count, random):
    """Points along a spiral, with a little noise."""
    turn = 1.5 * np.pi * (1 + 2 * random.uniform(size=(count, 1)))
    points = np.concatenate([turn * np.cos(turn), turn * np.sin(turn)], axis=1) / 7
    return (points + random.normal(0.0, 0.05, points.shape)).astype(np.float32)


def make_noise(count, random):
    return tf.constant(random.normal(size=(count, NOISE)).astype(np.float32))


def gradient_penalty(critic, real, made, mix):
    """The mean square of how far the slope of the critic is from one, between real and made."""
    between = mix * real + (1.0 - mix) * made
    with tf.GradientTape() as tape:
        tape.watch(between)
        answers = critic(between)
    slopes = tape.gradient(answers, between)
    lengths = tf.sqrt(tf.reduce_sum(slopes**2, axis=1) + 1e-12)
    return tf.reduce_mean((lengths - 1.0) ** 2)


def make_steps(critic, generator):
    """The step of the critic, which returns its estimate of the distance, and the generator's."""
    for_critic = tf.optimizers.Adam(1e-3, beta_1=0.0, beta_2=0.9)
    for_generator = tf.optimizers.Adam(5e-4, beta_1=0.0, beta_2=0.9)

    @tf.function
    def critic_step(real, noise, mix):
        made = generator(noise)
        with tf.GradientTape() as tape:
            distance = tf.reduce_mean(critic(real)) - tf.reduce_mean(critic(made))
            loss = -distance + 0.5 * gradient_penalty(critic, real, made, mix)
        gradients = tape.gradient(loss, critic.trainable_variables)
        for_critic.apply_gradients(zip(gradients, critic.trainable_variables))
        return distance

    @tf.function
    def generator_step(noise):
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(critic(generator(noise)))
        gradients = tape.gradient(loss, generator.trainable_variables)
        for_generator.apply_gradients(zip(gradients, generator.trainable_variables))

    return critic_step, generator_step


def train(critic, generator, steps, batch, seed):
    """Returns the critic's estimate of the distance before each step of the generator."""
    random = np.random.default_rng(seed)
    critic_step, generator_step = make_steps(critic, generator)
    distances = []
    for step in range(1, steps + 1):
        for _ in range(4):
            real = tf.constant(make_roll(batch, random))
            mix = tf.constant(random.uniform(size=(batch, 1)).astype(np.float32))
            distance = critic_step(real, make_noise(batch, random), mix)
        generator_step(make_noise(batch, random))
        distances.append(float(distance))
        progress(step, steps, distance=distance)
    return distances


def sliced_distance(a, b, seed=0, directions=64):
    """The mean distance of two clouds of points, looked at along many lines."""
    angles = np.random.default_rng(seed).uniform(0, np.pi, directions)
    lines = np.stack([np.cos(angles), np.sin(angles)])
    return np.mean(np.abs(np.sort(a @ lines, axis=0) - np.sort(b @ lines, axis=0)))


def main(arguments=None):
    options = options_of(__doc__, arguments, steps=(2000, 4), batch=(128, 32), width=(64, 16))
    generator = Mlp((NOISE, *(options.width,) * 3, 2), tf.nn.relu, options.seed)
    critic = Mlp((2, *(options.width,) * 3, 1), tf.nn.silu, options.seed + 1)
    random = np.random.default_rng(99)
    real, noise = make_roll(1000, random), make_noise(1000, random)
    before = generator(noise).numpy()
    distances = train(critic, generator, options.steps, options.batch, options.seed)
    made = generator(noise).numpy()
    if not options.small:
        draw(options, critic, real, made, distances)
    return report(
        options,
        {
            "the critic's estimate at the end": distances[-1],
            "sliced distance before": sliced_distance(real, before),
            "sliced distance after": sliced_distance(real, made),
            "of two samples of real points": sliced_distance(real, make_roll(1000, random)),
        },
    )


def draw(options, critic, real, made, distances):
    """Draws real and made points, the critic's answers, and its estimate."""
    line = np.linspace(-2.4, 2.4, 80, dtype=np.float32)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    heights = critic(tf.constant(grid)).numpy().reshape(80, 80)
    with picture(options, "wgan_gp", 1, 3) as (_, axes):
        axes[0, 0].scatter(*real.T, s=4, color=BLUE, alpha=0.5, label="real")
        axes[0, 0].scatter(*made.T, s=4, color=ORANGE, alpha=0.6, label="made")
        axes[0, 0].set(title="Points", aspect="equal")
        axes[0, 0].legend(frameon=False, markerscale=3)
        axes[0, 1].contourf(line, line, heights, 24, cmap="RdBu_r")
        axes[0, 1].scatter(*real[::4].T, s=2, color=INK)
        axes[0, 1].set(title="The critic's answers", aspect="equal")
        curve(axes[0, 2], distances, "The critic's estimate of the distance")


if __name__ == "__main__":
    main()
