"""Measures where the time of a training step goes, and draws docs/figures/step_time.svg.

The kernels of a step are timed alone by `tape.profile`. The rest of the step is Python: checking
arguments, recording, and updating variables.
"""

import itertools
import pathlib
import time

import numpy as np

import retrograde as tf

TARGET = pathlib.Path(__file__).parents[1] / "docs" / "figures" / "step_time.svg"
NETWORKS = {
    "small network: 16-32-32-4, batch of 32": ((16, 32, 32, 4), 32, 400),
    "larger network: 784-512-512-10, batch of 128": ((784, 512, 512, 10), 128, 40),
}
PARTS = ("kernels, forward pass", "kernels, backward pass", "Python, recording, update")
COLORS = (
    "var(--figure-forward, #2a6f97)",
    "var(--figure-backward, #c05a10)",
    "var(--figure-faint, #6b7a83)",
)
INK = "var(--figure-ink, #22333b)"


def measure(widths, batch, repeats):
    """Returns the seconds of the parts of a training step."""
    rng = np.random.default_rng(1)
    shapes = list(itertools.pairwise(widths))
    weights = [tf.Variable(rng.normal(size=s).astype("float32") * 0.1) for s in shapes]
    biases = [tf.Variable(tf.zeros([n])) for n in widths[1:]]
    x = tf.constant(rng.normal(size=(batch, widths[0])).astype("float32"))
    labels = tf.constant(rng.integers(widths[-1], size=batch))

    def loss_of():
        h = x
        for w, b in zip(weights, biases, strict=True):
            h = tf.nn.relu(h @ w + b)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, h)
        return tf.reduce_mean(losses)

    def step():
        with tf.GradientTape() as tape:
            loss = loss_of()
        variables = [*weights, *biases]
        for v, g in zip(variables, tape.gradient(loss, variables), strict=True):
            v.assign_sub(0.01 * g)

    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    with tf.GradientTape(persistent=True) as tape:
        loss = loss_of()
    profiles = [tape.profile(loss) for _ in range(5)]
    forward = min(profile.forward for profile in profiles)
    backward = min(profile.backward for profile in profiles)
    return forward, backward, max(0.0, min(times) - forward - backward)


def draw(results):
    """Returns a bar for each network as SVG."""
    body = []
    for row, (title, parts) in enumerate(results.items()):
        top, left, total = 24 + 84 * row, 20.0, sum(parts)
        body.append(f'<text x="20" y="{top}">{title}: {total * 1e6:,.0f} µs</text>')
        for part, color in zip(parts, COLORS, strict=True):
            width = 760 * part / total
            body.append(
                f'<rect x="{left:.1f}" y="{top + 10}" width="{width:.1f}" height="26" '
                f'fill="{color}"/>'
            )
            if width > 40:
                body.append(
                    f'<text x="{left + width / 2:.1f}" y="{top + 28}" text-anchor="middle" '
                    f'class="share">{part / total:.0%}</text>'
                )
            left += width
    for column, (part, color) in enumerate(zip(PARTS, COLORS, strict=True)):
        x, y = 20 + 240 * column, 24 + 84 * len(results)
        body.append(f'<rect x="{x}" y="{y - 11}" width="12" height="12" fill="{color}"/>')
        body.append(f'<text x="{x + 20}" y="{y}">{part}</text>')
    height = 44 + 84 * len(results)
    style = (
        f'.step_time text {{ font: 14px system-ui, "DejaVu Sans", sans-serif; fill: {INK}; }} '
        ".step_time .share { fill: #fff; font-size: 12px; }"
    )
    lines = "\n  ".join([f"<style>{style}</style>", *body])
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="step_time" viewBox="0 0 800 {height}">'
    )
    return f"{opening}\n  {lines}\n</svg>\n"


if __name__ == "__main__":
    measured = {title: measure(*network) for title, network in NETWORKS.items()}
    TARGET.write_text(draw(measured), encoding="utf-8")
    for title, parts in measured.items():
        print(title, *(f"{part * 1e6:.0f} us" for part in parts))
