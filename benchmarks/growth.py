"""Measures how time and memory grow with the number of calls and with the batch size.

`python benchmarks/run.py --growth` runs each stage in a new process: the forward pass under a tape,
the backward pass, tracing, the generation of a replay, compilation by XLA, and `explain`.
"""

import json
import subprocess
import sys
import time

from benchmarks.environments import python_of
from benchmarks.peers import PEER_BY_NAME, ROOT
from benchmarks.processes import child_environment
from benchmarks.report import format_value, markdown_table
from benchmarks.worker import peak_megabytes

HEADING = "## Growth"
CALLS = (100, 1_000, 10_000, 100_000, 1_000_000)
BATCHES = (1, 10, 100, 1_000, 10_000)
SECONDS = 90.0  # limit for one cell


def _chain(tf, x, calls):
    """Applies `calls` operations. They vary, so that a compiler cannot merge them into a loop."""
    for i in range(calls // 2):
        x = tf.sin(x) * (1.0 + 1.0 / (i + 2))
    return x


def _forward(tf, calls):
    x = tf.Variable(1.0)

    def run():
        with tf.GradientTape() as tape:
            y = _chain(tf, x, calls)
        return tape, y

    return run


def _backward(tf, calls):
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = _chain(tf, x, calls)
    return lambda: tape.gradient(y, x)


def _explain(tf, calls):
    x, unused = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = _chain(tf, x, calls)
    return lambda: str(tape.explain(y, unused))


def _tracing(tf, calls):
    f, x = tf.function(lambda x: _chain(tf, x, calls)), tf.constant(1.0)
    return lambda: f(x)


def _second_call(tf, calls, jit_compile=None):
    f, x = tf.function(lambda x: _chain(tf, x, calls), jit_compile=jit_compile), tf.constant(1.0)
    f(x)
    return lambda: f(x).numpy()


def _compilation(tf, calls):
    return _second_call(tf, calls, jit_compile=True)


def _step(tf, batch):
    """Returns a training step of a 784-128-10 network."""
    weights = [tf.Variable(0.01 * tf.ones(shape)) for shape in ([784, 128], [128, 10])]
    x = tf.ones([batch, 784])

    def run():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.tanh(x @ weights[0]) @ weights[1])
        for w, g in zip(weights, tape.gradient(loss, weights), strict=True):
            w.assign_sub(0.1 * g)

    run()
    return run


STAGES = {
    "forward pass": _forward,
    "backward pass": _backward,
    "explain": _explain,
    "tracing": _tracing,
    "code generation": _second_call,
    "XLA compilation": _compilation,
    "training step": _step,
}


def measure_one(stage, size):
    """Returns the seconds of a stage, and the megabytes by which the peak memory grows."""
    import retrograde as tf

    tf.sin(tf.constant(1.0))  # imports the operations
    before = peak_megabytes()
    run = STAGES[stage](tf, size)
    begun = time.perf_counter()
    run()
    return {"seconds": time.perf_counter() - begun, "megabytes": peak_megabytes() - before}


def measure(environments, log):
    """Returns the measurements by stage and size. A cell is `None` if it takes too long."""
    python = python_of(PEER_BY_NAME["retrograde"], environments, log)
    return {
        (stage, size): _in_new_process(python, stage, size, log)
        for stage in STAGES
        for size in (BATCHES if stage == "training step" else CALLS)
    }


def _in_new_process(python, stage, size, log):
    log(f"{stage}, {size:,}")
    command = [python, "-m", "benchmarks.growth", stage, str(size)]
    # Every program is compiled, even if an earlier run has cached it.
    environment = child_environment() | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, timeout=SECONDS, check=True
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        log(f"{stage}, {size:,}: {error}")
        return None
    return json.loads(done.stdout)


def section(measured):
    """Returns the section of the page, in Markdown."""
    steps = {key: value for key, value in measured.items() if key[0] == "training step"}
    calls = {key: value for key, value in measured.items() if key not in steps}
    return "\n\n".join([HEADING, _INTRODUCTION, _table(calls, CALLS), _table(steps, BATCHES)])


def _table(measured, sizes):
    rows = []
    for stage in dict.fromkeys(stage for stage, _ in measured):
        cells = [measured[stage, size] for size in sizes]
        rows.append([stage, *[format_value(c["seconds"], "s") if c else "-" for c in cells]])
        rows.append(["", *[format_value(c["megabytes"], "MB") if c else "-" for c in cells]])
    return markdown_table(["stage", *[f"{size:,}" for size in sizes]], rows)


_INTRODUCTION = f"""\
`python benchmarks/run.py --growth --write` writes this section. The first table has the time of
each stage, and the growth of the peak memory up to its end, for a chain of scalar operations. The
columns are the number of calls. The second table has a training step of a 784-128-10 network, by
batch size. A dash means that the stage took more than {SECONDS:g} s or failed."""


if __name__ == "__main__":
    print(json.dumps(measure_one(sys.argv[1], int(sys.argv[2]))))
