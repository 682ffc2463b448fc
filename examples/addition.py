"""A small transformer learns to add: 47 + 85 = 132, one digit at a time.

Sums are sequences of tokens with the digits of the answer reversed, and the network predicts each
next token of the answer. Shows causal attention, custom layers and gradient clipping.
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

TOKENS = "0123456789+="
LENGTH = 2 + 1 + 2 + 1 + 3  # "47+85=" and the answer


def tokenize(a, b):
    """Converts sums to token ids, the answer with its last digit first."""
    texts = [f"{i:02d}+{j:02d}={f'{i + j:03d}'[::-1]}" for i, j in zip(a, b)]
    return np.array([[TOKENS.index(token) for token in text] for text in texts], np.int32)


class Block(tf.keras.layers.Layer):
    """A transformer block: causal attention and a feed-forward network, with residuals."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = tf.keras.layers.MultiHeadAttention(heads, width // heads, use_bias=False)
        self.inner = tf.keras.layers.Dense(4 * width, activation="relu")
        self.outer = tf.keras.layers.Dense(width)
        self.attention_norm = tf.keras.layers.LayerNormalization()
        self.feed_forward_norm = tf.keras.layers.LayerNormalization()

    def call(self, x):
        normalized = self.attention_norm(x)
        x = x + self.attention(normalized, normalized, use_causal_mask=True)
        return x + self.outer(self.inner(self.feed_forward_norm(x)))


class Adder(tf.keras.Model):
    """Token and position embeddings, transformer blocks, and logits of the next token."""

    def __init__(self, width, heads, blocks):
        super().__init__()
        self.tokens = tf.keras.layers.Embedding(len(TOKENS), width)
        self.positions = tf.keras.layers.Embedding(LENGTH, width)
        self.blocks = [Block(width, heads) for _ in range(blocks)]
        self.norm = tf.keras.layers.LayerNormalization()
        self.logits = tf.keras.layers.Dense(len(TOKENS))

    def call(self, rows):
        x = self.tokens(rows) + self.positions(tf.range(rows.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.logits(self.norm(x))


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


def predict_sums(model, a, b):
    """Predicts the answers of sums by greedy decoding."""
    rows = tokenize(a, b)[:, : LENGTH - 3]
    for _ in range(3):
        tokens = np.argmax(model(tf.constant(rows)).numpy()[:, -1, :10], axis=1)
        rows = np.concatenate([rows, tokens[:, None].astype(np.int32)], axis=1)
    return rows[:, -3:] @ [1, 10, 100]


def split(seed, fraction=0.9):
    """Splits all sums of two numbers below 100 into a training set and a test set."""
    pairs = np.random.default_rng(seed).permutation(10_000)
    first, second = np.divmod(pairs, 100)
    count = int(fraction * len(pairs))
    return (first[:count], second[:count]), (first[count:], second[count:])


def main(argv=None):
    options = parse_options(
        __doc__, argv, steps=(400, 3), batch=(256, 16), width=(64, 8, 2), blocks=(2, 1)
    )
    training, testing = split(options.seed)
    model = Adder(options.width, 4 if options.width >= 32 else 2, options.blocks)
    model(tf.constant(tokenize([1], [2])[:, :-1]))
    set_initial_weights(model.trainable_variables, options.seed)
    step = make_step(model, tf.keras.optimizers.Adam(2e-3))
    random = np.random.default_rng(options.seed)
    losses, accuracies = [], []
    a, b = (part[: 500 if not options.small else 50] for part in testing)
    for number in range(1, options.steps + 1):
        rows = random.integers(0, len(training[0]), options.batch)
        loss, norm = step(tf.constant(tokenize(training[0][rows], training[1][rows])))
        losses.append(float(loss))
        print_progress(number, options.steps, loss=loss, norm=norm)
        if number % max(1, options.steps // 20) == 0:
            accuracies.append((number, np.mean(predict_sums(model, a, b) == a + b)))
    if not options.small:
        draw(options, model, losses, accuracies)
        for i, j in ((47, 85), (99, 99), (8, 6)):
            print(f"{i} + {j} = {predict_sums(model, [i], [j])[0]}")
    return report(
        options,
        {
            "initial loss": losses[0],
            "final loss": losses[-1],
            "accuracy on new sums": accuracies[-1][1],
        },
    )


def draw(options, model, losses, accuracies):
    """Plots the loss, the accuracy on new sums, and the wrong sums."""
    a, b = (grid.ravel() for grid in np.mgrid[0:100, 0:100])
    wrong = np.abs(predict_sums(model, a, b) - a - b).reshape(100, 100)
    with saved_figure(options, "addition", 1, 3) as (_, axes):
        plot_curve(axes[0, 0], losses, "Loss")
        axes[0, 0].set_yscale("log")
        axes[0, 1].plot(*np.array(accuracies).T, "o-", color=ORANGE, markersize=3)
        axes[0, 1].axhline(1.0, color=BLUE, linewidth=0.8, linestyle=":")
        axes[0, 1].set(title="Accuracy on new sums", xlabel="step")
        axes[0, 2].imshow(wrong > 0, cmap="gray_r", vmin=0, vmax=1, origin="lower")
        axes[0, 2].spines[:].set_visible(True)  # without errors, the image is all white
        axes[0, 2].set(title=f"All sums: {np.sum(wrong > 0)} of 10,000 wrong (black)")
        axes[0, 2].set(xlabel="second number", ylabel="first number")


if __name__ == "__main__":
    main()
