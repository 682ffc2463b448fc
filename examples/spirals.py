"""Three spirals, classified by a small network with a GradientTape loop.

Run it with `make demo`. It trains for a few seconds, prints loss and accuracy, and plots the loss
and the decision regions. Shows a `tf.Module`, an optimizer written by hand, and a training loop
with a tape.
"""

import itertools
import sys
import time

import numpy as np
import tensorflow as tf
from example_utils import INK, RED, parse_options, report, saved_figure

CLASSES = 3
LIMIT = 1.15  # the plot covers [-LIMIT, LIMIT] on both axes
COLORS = ("#2a6f97", "#e07a1f", "#5b8c3a")


def make_spirals(points, seed):
    """Returns `points` noisy points for each class, shuffled: float32 positions, int32 labels."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(CLASSES, dtype=np.int32), points)
    radius = np.sqrt(random.uniform(0.01, 1.0, labels.size))
    turn = 2 * np.pi * (labels / CLASSES + 1.1 * radius)
    angle = turn + random.normal(0.0, 0.22, labels.size)
    positions = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    order = random.permutation(labels.size)
    return positions[order].astype(np.float32), labels[order]


class Network(tf.Module):
    """A multilayer perceptron with tanh between the layers; it returns logits."""

    def __init__(self, widths, seed):
        super().__init__()
        random = np.random.default_rng(seed)
        self.weights = []
        self.biases = []
        for i, (fan_in, fan_out) in enumerate(itertools.pairwise(widths)):
            initial = random.normal(0.0, fan_in**-0.5, (fan_in, fan_out)).astype(np.float32)
            self.weights.append(tf.Variable(initial, name=f"w{i}"))
            self.biases.append(tf.Variable(np.zeros(fan_out, np.float32), name=f"b{i}"))

    def __call__(self, x):
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = tf.tanh(x @ w + b)
        return x @ self.weights[-1] + self.biases[-1]


class Adam(tf.Module):
    """The Adam optimizer, with two moving averages for each variable."""

    def __init__(self, variables, rate=0.005, decay=0.9, decay_squares=0.999):
        super().__init__()
        self.rate, self.decay, self.decay_squares = rate, decay, decay_squares
        self.steps = 0
        self.slots = [self._slots(v) for v in variables]

    @staticmethod
    def _slots(variable):
        zeros = np.zeros(variable.shape, np.float32)
        return variable, tf.Variable(zeros, trainable=False), tf.Variable(zeros, trainable=False)

    def apply(self, gradients):
        self.steps += 1
        correction = (1 - self.decay_squares**self.steps) ** 0.5 / (1 - self.decay**self.steps)
        for gradient, (variable, mean, squares) in zip(gradients, self.slots, strict=True):
            mean.assign_add((1 - self.decay) * (gradient - mean))
            squares.assign_add((1 - self.decay_squares) * (tf.square(gradient) - squares))
            variable.assign_sub(self.rate * correction * mean / (tf.sqrt(squares) + 1e-8))


def loss_fn(network, x, labels):
    """Returns the mean cross entropy, a scalar tensor."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=network(x))
    return tf.reduce_mean(losses)


def accuracy_of(network, x, labels):
    """Returns the accuracy, a scalar tensor."""
    predictions = tf.argmax(network(x), axis=1, output_type=tf.int32)
    return tf.reduce_mean(tf.cast(tf.equal(predictions, labels), tf.float32))


def train_step(network, optimizer, x, labels):
    """Updates the variables and returns the loss before the update."""
    with tf.GradientTape() as tape:
        loss = loss_fn(network, x, labels)
    optimizer.apply(tape.gradient(loss, network.variables))
    return loss


def train(network, training, testing, epochs, batch, seed, report):
    """Trains on shuffled batches; returns the training and test losses of each epoch."""
    random = np.random.default_rng(seed)
    optimizer = Adam(network.variables)
    x, labels = map(tf.constant, training)
    x_test, labels_test = map(tf.constant, testing)
    curve = []
    for epoch in range(1, epochs + 1):
        start = time.perf_counter()
        order = random.permutation(len(training[1]))
        batches = np.split(order, range(batch, len(order), batch))  # the last may be smaller
        for rows in batches:
            train_step(network, optimizer, tf.gather(x, rows), tf.gather(labels, rows))
        speed = len(batches) / (time.perf_counter() - start)

        loss = float(loss_fn(network, x, labels))
        curve.append((loss, float(loss_fn(network, x_test, labels_test))))
        report(epoch, epochs, loss, float(accuracy_of(network, x, labels)), speed)
    return curve


def show_progress(epoch, epochs, loss, accuracy, speed):
    """Prints a progress line; on a terminal it replaces the previous one."""
    done = 24 * epoch // epochs
    line = (
        f"epoch {epoch:3d}/{epochs}  {'█' * done}{'░' * (24 - done)}"
        f"  loss {loss:.4f}  accuracy {accuracy:.3f}  {speed:5.0f} steps/s"
    )
    if sys.stdout.isatty():
        print(f"\r{line}", end="\n" if epoch == epochs else "", flush=True)
    elif epoch == 1 or epoch % 20 == 0 or epoch == epochs:
        print(line, flush=True)


def regions(network, size=400):
    """Returns the class probabilities on a grid, shape (size, size, CLASSES)."""
    line = np.linspace(-LIMIT, LIMIT, size, dtype=np.float32)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    return tf.nn.softmax(network(tf.constant(grid))).numpy().reshape(size, size, CLASSES)


def draw(options, network, curve, points, labels):
    """Plots the losses, and the decision regions with the test points."""
    with saved_figure(options, "spirals", 1, 2, size=(11, 4.8)) as (_, axes):
        draw_curve(axes[0, 0], np.array(curve))
        draw_regions(axes[0, 1], regions(network), points, labels)


def draw_curve(axes, curve):
    epochs = np.arange(1, len(curve) + 1)
    for column, label, color in ((0, "training", INK), (1, "test", RED)):
        axes.semilogy(epochs, curve[:, column], color=color, linewidth=1.8, label=label)
    axes.set(title="Loss", xlabel="epoch", ylabel="mean cross entropy", xlim=(0, len(curve)))
    axes.grid(axis="y", which="both", color="#000000", alpha=0.08)
    axes.legend(frameon=False)


def draw_regions(axes, probabilities, points, labels):
    from matplotlib.colors import to_rgb

    colors = np.array([to_rgb(color) for color in COLORS])
    tint = 1 - 0.45 * (1 - probabilities @ colors)  # the less certain, the paler
    extent = (-LIMIT, LIMIT, -LIMIT, LIMIT)
    axes.imshow(tint, origin="lower", extent=extent, interpolation="bilinear")
    axes.scatter(*points.T, c=colors[labels], s=16, edgecolors="white", linewidths=0.5)
    axes.set(title="Decision regions and test points", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def main(argv=None):
    options = parse_options(__doc__, argv, epochs=(80, 2), points=(500, 40, 5), width=(64, 12))
    training = make_spirals(options.points, options.seed + 6)
    testing = make_spirals(options.points // 3, options.seed + 7)
    network = Network((2, options.width, options.width, CLASSES), options.seed + 6)
    print(f"{len(training[1])} training points, {len(testing[1])} test points, {CLASSES} spirals")

    batch = CLASSES * options.points // 15
    curve = train(network, training, testing, options.epochs, batch, options.seed, show_progress)

    if not options.small:
        draw(options, network, curve, *testing)
    return report(
        options,
        {
            "initial loss": curve[0][0],
            "final loss": curve[-1][0],
            "training accuracy": accuracy_of(network, *training).numpy(),
            "test accuracy": accuracy_of(network, *testing).numpy(),
        },
    )


if __name__ == "__main__":
    main()
