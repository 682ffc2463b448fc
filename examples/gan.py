"""A GAN with two tapes: noise turned into points on a ring of eight clouds.

Two networks with opposite aims are trained in one step, each from a tape and with an optimizer of
its own. What is taught: two losses, two tapes, one pass.
"""

import numpy as np
import tensorflow as tf
from showing import BLUE, ORANGE, curve, options_of, picture, progress, report, start_alike

NOISE, CLOUDS, SPREAD = 8, 8, 0.08


def make_ring(count, random):
    angle = 2 * np.pi * random.integers(0, CLOUDS, count) / CLOUDS
    middle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return (middle + random.normal(0.0, SPREAD, middle.shape)).astype(np.float32)


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


def make_step(generator, judge):
    """The step that trains both."""
    cross_entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)
    for_generator = tf.keras.optimizers.Adam(1e-3, beta_1=0.5)
    for_judge = tf.keras.optimizers.Adam(1e-3, beta_1=0.5)

    @tf.function
    def step(real, noise):
        with tf.GradientTape() as generator_tape, tf.GradientTape() as judge_tape:
            made = generator(noise, training=True)
            of_real, of_made = judge(real, training=True), judge(made, training=True)
            generator_loss = cross_entropy(tf.ones_like(of_made), of_made)
            judge_loss = cross_entropy(tf.ones_like(of_real), of_real)
            judge_loss += cross_entropy(tf.zeros_like(of_made), of_made)
        generator_variables = generator.trainable_variables
        judge_variables = judge.trainable_variables
        gradients = generator_tape.gradient(generator_loss, generator_variables)
        for_generator.apply_gradients(zip(gradients, generator_variables))
        gradients = judge_tape.gradient(judge_loss, judge_variables)
        for_judge.apply_gradients(zip(gradients, judge_variables))
        return generator_loss, judge_loss

    return step


def quality(points):
    """The share of points that lie in a cloud, and the number of clouds that have some."""
    angle = 2 * np.pi * np.arange(CLOUDS) / CLOUDS
    middles = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    apart = np.linalg.norm(points[:, None] - middles[None], axis=2)
    near = apart.min(axis=1) < 3.5 * SPREAD
    counts = np.bincount(apart.argmin(axis=1)[near], minlength=CLOUDS)
    return near.mean(), int((counts > len(points) / CLOUDS / 10).sum())


def main(arguments=None):
    options = options_of(__doc__, arguments, steps=(2000, 5), batch=(256, 32), width=(64, 12))
    generator = make_network(NOISE, options.width, 2)
    judge = make_network(2, options.width, 1)
    start_alike([*generator.trainable_variables, *judge.trainable_variables], options.seed)
    step = make_step(generator, judge)
    random = np.random.default_rng(options.seed)
    losses = []
    for number in range(1, options.steps + 1):
        real = tf.constant(make_ring(options.batch, random))
        noise = tf.constant(random.normal(size=(options.batch, NOISE)).astype(np.float32))
        both = step(real, noise)
        losses.append([float(loss) for loss in both])
        progress(number, options.steps, generator=both[0], judge=both[1])
    made = generator(random.normal(size=(1000, NOISE)).astype(np.float32)).numpy()
    inside, clouds = quality(made)
    if not options.small:
        draw(options, judge, make_ring(1000, random), made, np.array(losses))
    return report(
        options,
        {
            "generator's loss at the end": losses[-1][0],
            "judge's loss at the end": losses[-1][1],
            "share of points in a cloud": inside,
            "clouds with points": clouds,
        },
    )


def draw(options, judge, real, made, losses):
    """Draws real and made points, how real the judge finds a place, and the losses."""
    line = np.linspace(-1.6, 1.6, 80, dtype=np.float32)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    chance = tf.sigmoid(judge(grid)).numpy().reshape(80, 80)
    with picture(options, "gan", 1, 3) as (figure, axes):
        axes[0, 0].scatter(*real.T, s=4, color=BLUE, alpha=0.5, label="real")
        axes[0, 0].scatter(*made.T, s=4, color=ORANGE, alpha=0.6, label="made")
        axes[0, 0].set(title="Points", aspect="equal", xlim=(-1.6, 1.6), ylim=(-1.6, 1.6))
        axes[0, 0].legend(frameon=False, markerscale=3, loc="center")
        shown = axes[0, 1].contourf(line, line, chance, np.linspace(0, 1, 21), cmap="RdBu_r")
        figure.colorbar(shown, ax=axes[0, 1])
        axes[0, 1].set(title="How real the judge finds a place", aspect="equal")
        for column, label, colour in ((0, "generator", ORANGE), (1, "judge", BLUE)):
            means = np.convolve(losses[:, column], np.ones(20) / 20, "valid")
            curve(axes[0, 2], means, "Losses", colour, label=label)
        axes[0, 2].legend(frameon=False)


if __name__ == "__main__":
    main()
