"""Style transfer without a trained network: an image repainted in stripes.

The variables are pixels. The style of an image is the Gram matrices of random filters, and its
content is its brightness at low resolution. Both are matched to other images by gradient
descent on the pixels. Shows optimization of the input.
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
from glyphs import SHAPES


def make_content(size):
    """Returns an image of a large digit."""
    digit = np.kron(SHAPES[5], np.ones((size // 9, size // 9)))
    canvas = np.full((size, size), 0.34)
    down, right = (size - digit.shape[0]) // 2, (size - digit.shape[1]) // 2
    canvas[down : down + digit.shape[0], right : right + digit.shape[1]] += 0.22 * digit
    return np.repeat(canvas[None, :, :, None], 3, axis=3).astype(np.float32)


def make_style(size):
    """Returns an image of wavy stripes in two colors."""
    y, x = np.mgrid[0:size, 0:size] / size
    waves = np.sin(2 * np.pi * (9 * x + 6 * y + 0.4 * np.sin(2 * np.pi * 2 * y)))
    stripes = 0.5 + 0.5 * np.tanh(3 * waves)
    colors = np.array([[0.95, 0.75, 0.2], [0.1, 0.2, 0.45]])
    picture = stripes[..., None] * colors[0] + (1 - stripes[..., None]) * colors[1]
    return picture[None].astype(np.float32)


def make_filters(count, seed):
    """Returns random filters for three scales."""
    random = np.random.default_rng(seed)
    filters = random.normal(0.0, 1.0, (3, 5, 5, 3, count)) / np.sqrt(75)
    return [tf.constant(f.astype(np.float32)) for f in filters]


def style_of(x, filters):
    """Computes the Gram matrices of the filter responses and colors at three scales."""
    grams = []
    for kernel in filters:
        padded = tf.pad(x - 0.5, [[0, 0], [2, 2], [2, 2], [0, 0]], "REFLECT")
        responses = tf.nn.relu(tf.nn.conv2d(padded, kernel, strides=1, padding="VALID"))
        features = tf.concat([responses, x, tf.ones_like(x[..., :1])], axis=3)
        flat = tf.reshape(features, [-1, features.shape[-1]])
        grams.append(tf.matmul(flat, flat, transpose_a=True) / float(flat.shape[0]))
        x = tf.nn.avg_pool2d(x, 2, 2, "VALID")
    return grams


def content_of(x):
    """Computes the brightness at low resolution."""
    return tf.nn.avg_pool2d(tf.reduce_mean(x, axis=3, keepdims=True), 4, 2, "VALID")


def losses_of(x, filters, style, content):
    style_loss = tf.add_n(
        [
            tf.reduce_mean((gram - target) ** 2) / tf.reduce_mean(target**2)
            for gram, target in zip(style_of(x, filters), style, strict=True)
        ]
    )
    return style_loss, tf.reduce_mean((content_of(x) - content) ** 2)


def paint(x, filters, style, content, steps):
    """Optimizes the pixels of `x` and returns both losses before each step."""
    optimizer = tf.optimizers.Adam(0.03)
    history = []
    for step in range(1, steps + 1):
        with tf.GradientTape() as tape:
            style_loss, content_loss = losses_of(x, filters, style, content)
            loss = style_loss + 6.0 * content_loss
        optimizer.apply_gradients([(tape.gradient(loss, x), x)])
        x.assign(tf.clip_by_value(x, 0.0, 1.0))
        history.append((float(style_loss), float(content_loss)))
        print_progress(step, steps, style=style_loss, content=content_loss)
    return np.array(history)


def main(argv=None):
    options = parse_options(__doc__, argv, steps=(250, 4), size=(81, 27, 12), filters=(32, 8))
    content_image, style_image = make_content(options.size), make_style(options.size)
    filters = make_filters(options.filters, options.seed)
    noise = np.random.default_rng(options.seed).normal(0.0, 0.05, content_image.shape)
    x = tf.Variable((content_image + noise).astype(np.float32))
    style = style_of(tf.constant(style_image), filters)
    content = content_of(tf.constant(content_image))
    history = paint(x, filters, style, content, options.steps)
    if not options.small:
        draw(options, content_image, style_image, x.numpy(), history)
    return report(
        options,
        {
            "initial style loss": history[0, 0],
            "final style loss": history[-1, 0],
            "initial content loss": history[0, 1],
            "final content loss": history[-1, 1],
            "mean of the pixels": np.mean(x.numpy()),
        },
    )


def draw(options, content, style, painted, history):
    """Plots the content image, the style image, the result, and the losses."""
    with saved_figure(options, "texture", 1, 4, size=(14, 3.7)) as (_, axes):
        show_image(axes[0, 0], content[0, ..., 0], "Content", cmap="gray")
        show_image(axes[0, 1], style[0], "Style")
        show_image(axes[0, 2], painted[0], "Result")
        plot_curve(axes[0, 3], history[:, 0], "Losses", label="style")
        axes[0, 3].semilogy(history[:, 1], linewidth=1.2, label="content")
        axes[0, 3].legend(frameon=False)


if __name__ == "__main__":
    main()
