"""A variational autoencoder: small pictures of digits, ordered in a plane.

The encoder says where in the plane a picture lies and how sure it is; noise is scaled and shifted
by what it says, so that gradients go through the drawing of random numbers. What is taught: the
trick of reparametrisation, and a loss of two parts.
"""

import numpy as np
import tensorflow as tf
from glyphs import SIZE, make_digits
from networks import Mlp
from showing import curve, image, options_of, picture, progress, report

PIXELS = SIZE * SIZE


class Autoencoder(tf.Module):
    """An encoder to the plane and a decoder back."""

    def __init__(self, width, seed):
        super().__init__()
        self.encoder = Mlp((PIXELS, width, width, 4), tf.nn.relu, seed)
        self.decoder = Mlp((2, width, width, PIXELS), tf.nn.relu, seed + 1)

    def encode(self, x):
        """The middle, and the logarithm of the variance."""
        return tf.split(self.encoder(x), 2, axis=1)

    def decode(self, z):
        return tf.sigmoid(self.decoder(z))


def loss_of(model, x, noise):
    """Bits that a picture costs: what is lost of it, and where it lies."""
    mean, log_variance = model.encode(x)
    logits = model.decoder(mean + tf.exp(0.5 * log_variance) * noise)
    lost = tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits)
    place = 0.5 * (tf.exp(log_variance) + mean**2 - 1.0 - log_variance)
    parts = tf.reduce_sum(lost, axis=1), tf.reduce_sum(place, axis=1)
    return tf.reduce_mean(parts[0] + parts[1]), tf.reduce_mean(parts[1])


def train(model, images, steps, batch, seed):
    """Returns the loss before each step."""
    random = np.random.default_rng(seed)
    optimizer = tf.optimizers.Adam(2e-3)

    @tf.function
    def step(x, noise):
        with tf.GradientTape() as tape:
            loss, place = loss_of(model, x, noise)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss, place

    losses = []
    for number in range(1, steps + 1):
        x = tf.constant(images[random.integers(0, len(images), batch)])
        noise = tf.constant(random.normal(size=(batch, 2)).astype(np.float32))
        loss, place = step(x, noise)
        losses.append(float(loss))
        progress(number, steps, loss=loss, place=place)
    return losses


def main(arguments=None):
    options = options_of(
        __doc__, arguments, steps=(1000, 10), batch=(128, 32), width=(128, 24), pictures=(4000, 200)
    )
    images, labels = make_digits(options.pictures, options.seed, noise=0.0, reach=0)
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
            "loss at the start": losses[0],
            "loss at the end": np.mean(losses[-10:]),
            "mean error of a pixel": error,
            "of a grey picture": np.mean(np.abs(flat.mean(axis=0) - flat)),
        },
    )


def draw(options, model, labels, means, losses):
    """Draws where the digits lie, what the plane looks like, and the loss."""
    line = np.linspace(-2.2, 2.2, 14, dtype=np.float32)
    across, up = np.meshgrid(line, line[::-1])
    plane = model.decode(tf.constant(np.stack([across, up], axis=-1).reshape(-1, 2))).numpy()
    tiles = plane.reshape(14, 14, SIZE, SIZE).swapaxes(1, 2).reshape(14 * SIZE, 14 * SIZE)
    with picture(options, "vae", 1, 3, size=(14, 4.6)) as (_, axes):
        points = axes[0, 0].scatter(*means.T, c=labels, s=4, cmap="tab10")
        axes[0, 0].set(title="Where pictures lie", aspect="equal")
        where = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        axes[0, 0].legend(*points.legend_elements(), frameon=False, fontsize=8, **where)
        image(axes[0, 1], tiles, "The plane, decoded")
        curve(axes[0, 2], losses, "Loss")


if __name__ == "__main__":
    main()
