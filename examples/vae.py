"""A variational autoencoder of small digit images, with a two-dimensional latent space.

The encoder returns the mean and the variance of the latent code. Noise is scaled and shifted by
them, so that gradients flow through the sampling. Shows the reparameterization trick and a loss of
two terms.
"""

import numpy as np
import tensorflow as tf
from example_utils import (
    parse_options,
    plot_curve,
    print_progress,
    report,
    saved_figure,
    show_image,
)
from glyphs import SIZE, make_digits
from networks import Mlp

PIXELS = SIZE * SIZE


class Autoencoder(tf.Module):
    """An encoder to the latent plane, and a decoder."""

    def __init__(self, width, seed):
        super().__init__()
        self.encoder = Mlp((PIXELS, width, width, 4), tf.nn.relu, seed)
        self.decoder = Mlp((2, width, width, PIXELS), tf.nn.relu, seed + 1)

    def encode(self, x):
        """Returns the mean and the logarithm of the variance."""
        return tf.split(self.encoder(x), 2, axis=1)

    def decode(self, z):
        return tf.sigmoid(self.decoder(z))


def loss_fn(model, x, noise):
    """Returns the negative evidence lower bound, and its KL divergence term."""
    mean, log_variance = model.encode(x)
    logits = model.decoder(mean + tf.exp(0.5 * log_variance) * noise)
    reconstruction = tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits)
    divergence = 0.5 * (tf.exp(log_variance) + mean**2 - 1.0 - log_variance)
    terms = tf.reduce_sum(reconstruction, axis=1), tf.reduce_sum(divergence, axis=1)
    return tf.reduce_mean(terms[0] + terms[1]), tf.reduce_mean(terms[1])


def train(model, images, steps, batch, seed):
    """Returns the loss before each step."""
    random = np.random.default_rng(seed)
    optimizer = tf.optimizers.Adam(2e-3)

    @tf.function
    def step(x, noise):
        with tf.GradientTape() as tape:
            loss, divergence = loss_fn(model, x, noise)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss, divergence

    losses = []
    for number in range(1, steps + 1):
        x = tf.constant(images[random.integers(0, len(images), batch)])
        noise = tf.constant(random.normal(size=(batch, 2)).astype(np.float32))
        loss, divergence = step(x, noise)
        losses.append(float(loss))
        print_progress(number, steps, loss=loss, divergence=divergence)
    return losses


def main(argv=None):
    options = parse_options(
        __doc__, argv, steps=(1000, 10), batch=(128, 32), width=(128, 24), images=(4000, 200)
    )
    images, labels = make_digits(options.images, options.seed, noise=0.0, max_shift=0)
    model = Autoencoder(options.width, options.seed)
    flat = images.reshape(-1, PIXELS)
    losses = train(model, flat, options.steps, options.batch, options.seed)
    means = model.encode(tf.constant(flat))[0]
    error = np.mean(np.abs(model.decode(means).numpy() - flat))
    if not options.small:
        draw(options, model, labels, means.numpy(), losses)
    return report(
        options,
        {
            "initial loss": losses[0],
            "final loss": np.mean(losses[-10:]),
            "mean absolute error": error,
            "error of the mean image": np.mean(np.abs(flat.mean(axis=0) - flat)),
        },
    )


def draw(options, model, labels, means, losses):
    """Plots the latent codes, decoded images over the latent plane, and the loss."""
    line = np.linspace(-2.2, 2.2, 14, dtype=np.float32)
    across, up = np.meshgrid(line, line[::-1])
    plane = model.decode(tf.constant(np.stack([across, up], axis=-1).reshape(-1, 2))).numpy()
    tiles = plane.reshape(14, 14, SIZE, SIZE).swapaxes(1, 2).reshape(14 * SIZE, 14 * SIZE)
    with saved_figure(options, "vae", 1, 3, size=(14, 4.6)) as (_, axes):
        points = axes[0, 0].scatter(*means.T, c=labels, s=4, cmap="tab10")
        axes[0, 0].set(title="Latent codes", aspect="equal")
        position = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        axes[0, 0].legend(*points.legend_elements(), frameon=False, fontsize=8, **position)
        show_image(axes[0, 1], tiles, "Decoded latent plane")
        plot_curve(axes[0, 2], losses, "Loss")


if __name__ == "__main__":
    main()
