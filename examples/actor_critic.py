"""Actor-critic reinforcement learning: balancing a pole on a cart.

The environment is a few lines of NumPy with eight carts in parallel. The policy of the actor and
the value estimate of the critic are trained with one loss. Shows a policy-gradient loss with
`tf.stop_gradient`.
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
)
from networks import Mlp

MAX_STEPS = 500  # per episode
DISCOUNT = 0.99


class Carts:
    """Carts with poles, each pushed to the left or to the right at every step."""

    def __init__(self, count, seed):
        self.random = np.random.default_rng(seed)
        self.state = self._initial_state(count)
        self.age = np.zeros(count, int)

    def _initial_state(self, count):
        return self.random.uniform(-0.05, 0.05, (count, 4))

    def push(self, right):
        """Advances all carts; returns which episodes ended, and their lengths."""
        _, speed, angle, angular_speed = self.state.T
        force = np.where(right, 10.0, -10.0)
        cos, sin = np.cos(angle), np.sin(angle)
        pull = (force + 0.05 * angular_speed**2 * sin) / 1.1
        angular_acceleration = (9.8 * sin - cos * pull) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        acceleration = pull - 0.05 * angular_acceleration * cos / 1.1
        derivative = np.stack([speed, acceleration, angular_speed, angular_acceleration], axis=1)
        self.state = self.state + 0.02 * derivative
        self.age += 1
        fell = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 0.21)
        ended = fell | (self.age >= MAX_STEPS)
        lengths = self.age[ended].tolist()
        self.state[ended] = self._initial_state(int(ended.sum()))
        self.age[ended] = 0
        return ended, lengths


def observe(state):
    return tf.constant((state * [1.0, 0.5, 5.0, 0.5]).astype(np.float32))


def play(actor, carts, steps):
    """Returns observations, actions, the ends of episodes, and the lengths of those that ended."""
    observations, actions, ends, lengths = [], [], [], []
    for _ in range(steps):
        x = observe(carts.state)
        probability = tf.sigmoid(actor(x)).numpy()[:, 0]
        right = carts.random.uniform(size=len(probability)) < probability
        ended, new_lengths = carts.push(right)
        observations.append(x)
        actions.append(right)
        ends.append(ended)
        lengths += new_lengths
    return observations, np.array(actions), np.array(ends), lengths


def discounted_returns(ends, bootstrap):
    """Computes the discounted return of each step, with a reward of 1 per step."""
    returns = np.empty(ends.shape)
    for step in reversed(range(len(ends))):
        bootstrap = 1.0 + DISCOUNT * np.where(ends[step], 0.0, bootstrap)
        returns[step] = bootstrap
    return returns


def train_step(actor, critic, optimizer, observations, actions, returns):
    """Updates both networks and returns the loss."""
    x = tf.concat(observations, axis=0)
    right = tf.constant(actions.reshape(-1, 1).astype(np.float32))
    returns = tf.constant((returns.reshape(-1, 1) / 50.0).astype(np.float32))
    variables = [*actor.trainable_variables, *critic.trainable_variables]
    with tf.GradientTape() as tape:
        logits, values = actor(x), critic(x)
        advantage = tf.stop_gradient(returns - values)
        neg_log_prob = tf.nn.sigmoid_cross_entropy_with_logits(labels=right, logits=logits)
        probability = tf.sigmoid(logits)
        entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels=probability, logits=logits)
        loss = tf.reduce_mean(neg_log_prob * advantage - 0.002 * entropy + (returns - values) ** 2)
    gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, variables), 0.5)
    optimizer.apply_gradients(zip(gradients, variables))
    return loss


def main(argv=None):
    options = parse_options(__doc__, argv, updates=(400, 4), steps=(32, 8), carts=(8, 4))
    actor = Mlp((4, 64, 1), seed=options.seed)
    critic = Mlp((4, 64, 1), seed=options.seed + 1)
    rate = tf.optimizers.schedules.PolynomialDecay(5e-3, options.updates, 1e-4)
    optimizer = tf.optimizers.Adam(rate)
    carts = Carts(options.carts, options.seed)
    lengths, losses = [], []
    for update in range(1, options.updates + 1):
        observations, actions, ends, new_lengths = play(actor, carts, options.steps)
        bootstrap = 50.0 * critic(observe(carts.state)).numpy()[:, 0]
        returns = discounted_returns(ends, bootstrap)
        loss = train_step(actor, critic, optimizer, observations, actions, returns)
        losses.append(float(loss))
        lengths += new_lengths
        print_progress(update, options.updates, length=np.mean(lengths[-20:]) if lengths else 0.0)
    if not options.small:
        draw(options, actor, lengths)
    return report(
        options,
        {
            "loss of the last update": losses[-1],
            "probability to push a leaning pole": push_probability(actor),
            "mean length of the last 20 episodes": np.mean(lengths[-20:]) if lengths else 0.0,
        },
    )


def push_probability(actor):
    """Returns the probability of pushing right when the pole leans to the right."""
    return float(tf.sigmoid(actor(observe(np.array([[0.0, 0.0, 0.1, 0.2]]))))[0, 0])


def draw(options, actor, lengths):
    """Plots the episode lengths, one greedy episode, and the policy."""
    carts = Carts(1, options.seed + 5)
    path = []
    for _ in range(MAX_STEPS):
        path.append(carts.state[0])
        probability = float(tf.sigmoid(actor(observe(carts.state)))[0, 0])
        if carts.push(np.array([probability > 0.5]))[0][0]:
            break
    path = np.array(path)
    angle, angular_speed = np.meshgrid(np.linspace(-0.2, 0.2, 60), np.linspace(-2, 2, 60))
    grid = np.stack([0 * angle, 0 * angle, angle, angular_speed], axis=-1).reshape(-1, 4)
    policy = tf.sigmoid(actor(observe(grid))).numpy().reshape(60, 60)
    with saved_figure(options, "actor_critic", 1, 3) as (figure, axes):
        axes[0, 0].plot(lengths, ".", markersize=3, color=BLUE, alpha=0.4)
        means = [np.mean(lengths[end - 20 : end]) for end in range(20, len(lengths) + 1)]
        plot_curve(axes[0, 0], means, "Episode length", ORANGE)
        axes[0, 0].set(xlabel="episode", ylabel="steps")
        axes[0, 1].plot(path[:, 0], color=BLUE, label="cart position")
        axes[0, 1].plot(10 * path[:, 2], color=ORANGE, label="pole angle, times 10")
        axes[0, 1].set(title="One episode with the greedy policy", xlabel="step")
        axes[0, 1].legend(frameon=False)
        contours = axes[0, 2].contourf(
            angle, angular_speed, policy, 20, cmap="RdBu_r", vmin=0, vmax=1
        )
        figure.colorbar(contours, ax=axes[0, 2])
        axes[0, 2].set(title="Probability to push right", xlabel="angle", ylabel="angular speed")


if __name__ == "__main__":
    main()
