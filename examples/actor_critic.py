"""Actor and critic: a pole is balanced on a cart, learned by trial and error.

The world is a few lines of NumPy, and eight carts run side by side. The actor's chances of pushing
to the right and the critic's guess of what is to come are learned in one loss. What is taught: a
loss from what happened, in which some parts are held fixed.
"""

import numpy as np
import tensorflow as tf
from networks import Mlp
from showing import BLUE, ORANGE, curve, options_of, picture, progress, report

LONGEST = 500  # steps; a pole that stands so long has been balanced
DISCOUNT = 0.99


class Carts:
    """Carts with poles on them, each pushed to the left or to the right at every step."""

    def __init__(self, count, seed):
        self.random = np.random.default_rng(seed)
        self.state = self._fresh(count)
        self.age = np.zeros(count, int)

    def _fresh(self, count):
        return self.random.uniform(-0.05, 0.05, (count, 4))

    def push(self, right):
        """Moves all carts; returns which fell, and for how long the poles stood that ended."""
        _, speed, angle, turn = self.state.T
        force = np.where(right, 10.0, -10.0)
        cos, sin = np.cos(angle), np.sin(angle)
        pull = (force + 0.05 * turn**2 * sin) / 1.1
        turning = (9.8 * sin - cos * pull) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        moving = pull - 0.05 * turning * cos / 1.1
        step = np.stack([speed, moving, turn, turning], axis=1)
        self.state = self.state + 0.02 * step
        self.age += 1
        fell = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 0.21)
        over = fell | (self.age >= LONGEST)
        stood = self.age[over].tolist()
        self.state[over] = self._fresh(int(over.sum()))
        self.age[over] = 0
        return over, stood


def observe(state):
    return tf.constant((state * [1.0, 0.5, 5.0, 0.5]).astype(np.float32))


def play(actor, carts, steps):
    """Returns what was seen and done, what it was worth, and for how long the poles stood."""
    seen, done, over, stood = [], [], [], []
    for _ in range(steps):
        x = observe(carts.state)
        chance = tf.sigmoid(actor(x)).numpy()[:, 0]
        right = carts.random.uniform(size=len(chance)) < chance
        fell, ended = carts.push(right)
        seen.append(x)
        done.append(right)
        over.append(fell)
        stood += ended
    return seen, np.array(done), np.array(over), stood


def worth_of(over, later):
    """What each step was worth: one for itself, and what came after, discounted."""
    worth = np.empty(over.shape)
    for step in reversed(range(len(over))):
        later = 1.0 + DISCOUNT * np.where(over[step], 0.0, later)
        worth[step] = later
    return worth


def learn(actor, critic, optimizer, seen, done, worth):
    """Moves both networks; returns the loss."""
    x = tf.concat(seen, axis=0)
    right = tf.constant(done.reshape(-1, 1).astype(np.float32))
    worth = tf.constant((worth.reshape(-1, 1) / 50.0).astype(np.float32))
    variables = [*actor.trainable_variables, *critic.trainable_variables]
    with tf.GradientTape() as tape:
        logits, guess = actor(x), critic(x)
        surprise = tf.stop_gradient(worth - guess)
        unlikely = tf.nn.sigmoid_cross_entropy_with_logits(labels=right, logits=logits)
        chance = tf.sigmoid(logits)
        open_minded = tf.nn.sigmoid_cross_entropy_with_logits(labels=chance, logits=logits)
        loss = tf.reduce_mean(unlikely * surprise - 0.002 * open_minded + (worth - guess) ** 2)
    gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, variables), 0.5)
    optimizer.apply_gradients(zip(gradients, variables))
    return loss


def main(arguments=None):
    options = options_of(__doc__, arguments, updates=(400, 4), steps=(32, 8), carts=(8, 4))
    actor = Mlp((4, 64, 1), seed=options.seed)
    critic = Mlp((4, 64, 1), seed=options.seed + 1)
    rate = tf.optimizers.schedules.PolynomialDecay(5e-3, options.updates, 1e-4)
    optimizer = tf.optimizers.Adam(rate)
    carts = Carts(options.carts, options.seed)
    stood, losses = [], []
    for update in range(1, options.updates + 1):
        seen, done, over, ended = play(actor, carts, options.steps)
        later = 50.0 * critic(observe(carts.state)).numpy()[:, 0]
        worth = worth_of(over, later)
        losses.append(float(learn(actor, critic, optimizer, seen, done, worth)))
        stood += ended
        progress(update, options.updates, stood=np.mean(stood[-20:]) if stood else 0.0)
    if not options.small:
        draw(options, actor, stood)
    return report(
        options,
        {
            "loss of the last update": losses[-1],
            "chance to push a leaning pole's way": leaning(actor),
            "poles stood, the last twenty": np.mean(stood[-20:]) if stood else 0.0,
        },
    )


def leaning(actor):
    """How sure the actor is to push to the right if the pole leans to the right."""
    return float(tf.sigmoid(actor(observe(np.array([[0.0, 0.0, 0.1, 0.2]]))))[0, 0])


def draw(options, actor, stood):
    """Draws how long the poles stood, one of the last tries, and what the actor does."""
    carts = Carts(1, options.seed + 5)
    path = []
    for _ in range(LONGEST):
        path.append(carts.state[0])
        chance = float(tf.sigmoid(actor(observe(carts.state)))[0, 0])
        if carts.push(np.array([chance > 0.5]))[0][0]:
            break
    path = np.array(path)
    angle, turn = np.meshgrid(np.linspace(-0.2, 0.2, 60), np.linspace(-2, 2, 60))
    grid = np.stack([0 * angle, 0 * angle, angle, turn], axis=-1).reshape(-1, 4)
    chances = tf.sigmoid(actor(observe(grid))).numpy().reshape(60, 60)
    with picture(options, "actor_critic", 1, 3) as (figure, axes):
        axes[0, 0].plot(stood, ".", markersize=3, color=BLUE, alpha=0.4)
        means = [np.mean(stood[end - 20 : end]) for end in range(20, len(stood) + 1)]
        curve(axes[0, 0], means, "How long poles stood", ORANGE)
        axes[0, 0].set(xlabel="try", ylabel="steps")
        axes[0, 1].plot(path[:, 0], color=BLUE, label="place of the cart")
        axes[0, 1].plot(10 * path[:, 2], color=ORANGE, label="angle of the pole, times 10")
        axes[0, 1].set(title="One try, without chance", xlabel="step")
        axes[0, 1].legend(frameon=False)
        shown = axes[0, 2].contourf(angle, turn, chances, 20, cmap="RdBu_r", vmin=0, vmax=1)
        figure.colorbar(shown, ax=axes[0, 2])
        axes[0, 2].set(title="Chance to push right", xlabel="angle", ylabel="speed of turning")


if __name__ == "__main__":
    main()
