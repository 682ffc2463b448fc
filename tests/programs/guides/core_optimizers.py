"""The Core API: optimizers written by hand, on functions of one variable."""

# %% Setup
import numpy as np
import tensorflow as tf
from notes import note, save_notes

# %% A function with one minimum, and one with several
x_values = tf.cast(tf.linspace(-2.0, 2.0, 9), tf.float32)


def bowl(x):
    return 0.1 * x**4 - 0.5 * x**3 + 2.0 * x**2 + x


def waves(x):
    return tf.sin(3.0 * x) + 0.3 * x**2


def derivative(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


note(
    bowl=bowl(x_values),
    bowl_slope=derivative(bowl, x_values),
    waves_slope=derivative(waves, x_values),
)


# %% Three optimizers
class Descent(tf.Module):
    """Gradient descent."""

    def __init__(self, rate=1e-3):
        super().__init__()
        self.rate = rate
        self.title = f"Descent: rate={self.rate}"

    def apply_gradients(self, grads, variables):
        for g, var in zip(grads, variables):
            var.assign_sub(self.rate * g)


class Momentum(tf.Module):
    """Gradient descent with momentum."""

    def __init__(self, rate=1e-3, momentum=0.7):
        super().__init__()
        self.rate, self.momentum, self.change = rate, momentum, 0.0

    def apply_gradients(self, grads, variables):
        for g, var in zip(grads, variables):
            change = self.rate * g + self.momentum * self.change
            var.assign_sub(change)
            self.change = change


class Adam(tf.Module):
    """The Adam optimizer."""

    def __init__(self, rate=1e-3, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
        super().__init__()
        self.beta_1, self.beta_2, self.rate, self.epsilon = beta_1, beta_2, rate, epsilon
        self.t, self.built = 1.0, False

    def apply_gradients(self, grads, variables):
        if not self.built:
            self.v = [tf.Variable(tf.zeros(shape=var.shape)) for var in variables]
            self.s = [tf.Variable(tf.zeros(shape=var.shape)) for var in variables]
            self.built = True
        for i, (g, var) in enumerate(zip(grads, variables)):
            self.v[i] = self.beta_1 * self.v[i] + (1 - self.beta_1) * g
            self.s[i] = self.beta_2 * self.s[i] + (1 - self.beta_2) * tf.square(g)
            v_hat = self.v[i] / (1 - self.beta_1**self.t)
            s_hat = self.s[i] / (1 - self.beta_2**self.t)
            var.assign_sub(self.rate * (v_hat / (tf.sqrt(s_hat) + self.epsilon)))
        self.t += 1.0


# %% Minimization until the steps are small
class Ball(tf.Module):
    """A point on the graph of a function."""

    def __init__(self, f, start):
        super().__init__()
        self.f, self.x = f, tf.Variable(start)

    def __call__(self):
        return self.f(self.x)


def minimize(f, start, optimizer, max_steps=300, tolerance=1e-4):
    ball, path = Ball(f, start), []
    for step in range(max_steps):
        with tf.GradientTape() as tape:
            height = ball()
        grads = tape.gradient(height, [ball.x])
        optimizer.apply_gradients(grads, [ball.x])
        path.append(ball.x.numpy())
        if step and abs(path[-1] - path[-2]) < tolerance:
            break
    return {"x": ball.x, "height": ball(), "steps": len(path), "path": path[:5]}


for name, f in {"bowl": bowl, "waves": waves}.items():
    note(
        **{
            f"{name}_descent": minimize(f, 2.0, Descent(0.05)),
            f"{name}_momentum": minimize(f, 2.0, Momentum(0.05, 0.6)),
            f"{name}_adam": minimize(f, 2.0, Adam(0.1)),
        }
    )

# %% Many starting points at once
starts = tf.Variable(np.linspace(-3.0, 3.0, 7).astype(np.float32))
for _ in range(200):
    with tf.GradientTape() as tape:
        heights = waves(starts)
    starts.assign_sub(0.05 * tape.gradient(heights, starts))
note(final_positions=starts)


# %% A learning rate schedule as a tf.function
@tf.function
def schedule(step):
    return 0.1 / (1.0 + 0.01 * tf.cast(step, tf.float32))


position = tf.Variable([1.5, -1.0])
for step in range(60):
    with tf.GradientTape() as tape:
        height = tf.reduce_sum(bowl(position))
    position.assign_sub(schedule(tf.constant(step)) * tape.gradient(height, position))
note(final_position=position, rate=schedule(tf.constant(59)))

# %% The same with Keras
keras_position = tf.Variable(2.0)
optimizer = tf.keras.optimizers.Adam(learning_rate=0.1, epsilon=1e-7)
for _ in range(50):
    with tf.GradientTape() as tape:
        height = bowl(keras_position)
    optimizer.apply_gradients([(tape.gradient(height, keras_position), keras_position)])
by_hand = Ball(bowl, 2.0)
adam = Adam(0.1)
for _ in range(50):
    with tf.GradientTape() as tape:
        height = by_hand()
    adam.apply_gradients([tape.gradient(height, by_hand.x)], [by_hand.x])
note(keras_position=keras_position, manual_position=by_hand.x)

save_notes()
