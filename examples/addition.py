"""A small transformer learns to add: 47 + 85 = 132, a digit at a time.

Sums are written as rows of signs with the answer backwards, and the network guesses each next sign
of the answer from those before it. What is taught: attention with a mask, several layers of one's
own under one tape, gradients clipped before they are applied.
"""

import numpy as np
import tensorflow as tf
from showing import BLUE, ORANGE, curve, options_of, picture, progress, report, start_alike

SIGNS = "0123456789+="
LENGTH = 2 + 1 + 2 + 1 + 3  # "47+85=" and the answer


def written(a, b):
    """Sums as rows of signs, the answer with its ones first."""
    texts = [f"{i:02d}+{j:02d}={f'{i + j:03d}'[::-1]}" for i, j in zip(a, b)]
    return np.array([[SIGNS.index(sign) for sign in text] for text in texts], np.int32)


class Block(tf.keras.layers.Layer):
    """Attention to the signs before, then a small network, each added to what came in."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = tf.keras.layers.MultiHeadAttention(heads, width // heads, use_bias=False)
        self.inner = tf.keras.layers.Dense(4 * width, activation="relu")
        self.outer = tf.keras.layers.Dense(width)
        self.before = tf.keras.layers.LayerNormalization()
        self.between = tf.keras.layers.LayerNormalization()

    def call(self, x):
        normal = self.before(x)
        x = x + self.attention(normal, normal, use_causal_mask=True)
        return x + self.outer(self.inner(self.between(x)))


class Adder(tf.keras.Model):
    """Signs and their places, blocks, and a guess of the next sign."""

    def __init__(self, width, heads, blocks):
        super().__init__()
        self.signs = tf.keras.layers.Embedding(len(SIGNS), width)
        self.places = tf.keras.layers.Embedding(LENGTH, width)
        self.blocks = [Block(width, heads) for _ in range(blocks)]
        self.normal = tf.keras.layers.LayerNormalization()
        self.guesses = tf.keras.layers.Dense(len(SIGNS))

    def call(self, rows):
        x = self.signs(rows) + self.places(tf.range(rows.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.guesses(self.normal(x))


def make_step(model, optimizer):
    @tf.function
    def step(rows):
        with tf.GradientTape() as tape:
            logits = model(rows[:, :-1], training=True)[:, -3:]
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=rows[:, -3:], logits=logits
            )
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        gradients, norm = tf.clip_by_global_norm(gradients, 1.0)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss, norm

    return step


def answers(model, a, b):
    """What the network says to sums, found sign by sign."""
    rows = written(a, b)[:, : LENGTH - 3]
    for _ in range(3):
        guesses = np.argmax(model(tf.constant(rows)).numpy()[:, -1, :10], axis=1)
        rows = np.concatenate([rows, guesses[:, None].astype(np.int32)], axis=1)
    return rows[:, -3:] @ [1, 10, 100]


def split(seed, share=0.9):
    """All sums of two numbers below a hundred: some to learn from, the rest to be judged by."""
    pairs = np.random.default_rng(seed).permutation(10_000)
    first, second = np.divmod(pairs, 100)
    count = int(share * len(pairs))
    return (first[:count], second[:count]), (first[count:], second[count:])


def main(arguments=None):
    options = options_of(
        __doc__, arguments, steps=(400, 3), batch=(256, 16), width=(64, 8, 2), blocks=(2, 1)
    )
    learned, held_back = split(options.seed)
    model = Adder(options.width, 4 if options.width >= 32 else 2, options.blocks)
    model(tf.constant(written([1], [2])[:, :-1]))
    start_alike(model.trainable_variables, options.seed)
    step = make_step(model, tf.keras.optimizers.Adam(2e-3))
    random = np.random.default_rng(options.seed)
    losses, rights = [], []
    judged = [part[: 500 if not options.small else 50] for part in held_back]
    for number in range(1, options.steps + 1):
        rows = random.integers(0, len(learned[0]), options.batch)
        loss, norm = step(tf.constant(written(learned[0][rows], learned[1][rows])))
        losses.append(float(loss))
        progress(number, options.steps, loss=loss, norm=norm)
        if number % max(1, options.steps // 20) == 0:
            rights.append((number, np.mean(answers(model, *judged) == judged[0] + judged[1])))
    if not options.small:
        draw(options, model, losses, rights)
        for a, b in ((47, 85), (99, 99), (8, 6)):
            print(f"{a} + {b} = {answers(model, [a], [b])[0]}")
    return report(
        options,
        {
            "loss at the start": losses[0],
            "loss at the end": losses[-1],
            "right answers to new sums": rights[-1][1],
        },
    )


def draw(options, model, losses, rights):
    """Draws the loss, the share of right answers, and where mistakes are left."""
    a, b = (grid.ravel() for grid in np.mgrid[0:100, 0:100])
    wrong = np.abs(answers(model, a, b) - a - b).reshape(100, 100)
    with picture(options, "addition", 1, 3) as (_, axes):
        curve(axes[0, 0], losses, "Loss")
        axes[0, 0].set_yscale("log")
        axes[0, 1].plot(*np.array(rights).T, "o-", color=ORANGE, markersize=3)
        axes[0, 1].axhline(1.0, color=BLUE, linewidth=0.8, linestyle=":")
        axes[0, 1].set(title="Right answers to new sums", xlabel="step")
        axes[0, 2].imshow(wrong > 0, cmap="gray_r", vmin=0, vmax=1, origin="lower")
        axes[0, 2].spines[:].set_visible(True)  # without mistakes all inside is white
        axes[0, 2].set(title=f"All sums: {np.sum(wrong > 0)} of 10,000 wrong (black)")
        axes[0, 2].set(xlabel="second number", ylabel="first number")


if __name__ == "__main__":
    main()
