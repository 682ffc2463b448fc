"""Modules: variables and functions together; saved as weights, and as functions without code."""

# %% What everything below needs
import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from noting import note, refused, save_notes

folder = pathlib.Path(tempfile.mkdtemp())


def start(*shape):
    """Numbers to start from, the same everywhere."""
    return np.cos(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)


# %% A module
class Spring(tf.Module):
    """Force by displacement."""

    def __init__(self, name=None):
        super().__init__(name=name)
        self.stiffness = tf.Variable(5.0, name="learn_me")
        self.rest = tf.Variable(1.0, trainable=False, name="leave_me")

    def __call__(self, x):
        return self.stiffness * (x - self.rest)


spring = Spring(name="spring")
note(
    force=spring(tf.constant(5.0)),
    trainable=[v.name.split(":")[0] for v in spring.trainable_variables],
    all=[v.name.split(":")[0] for v in spring.variables],
    frozen=len(spring.non_trainable_variables),
    name=spring.name,
)


# %% Modules in modules
class Dense(tf.Module):
    """A layer that makes its variables when it is told its sizes."""

    def __init__(self, inputs, outputs, name=None):
        super().__init__(name=name)
        self.w = tf.Variable(start(inputs, outputs), name="w")
        self.b = tf.Variable(tf.zeros([outputs]), name="b")

    def __call__(self, x):
        return tf.nn.relu(tf.matmul(x, self.w) + self.b)


class Stack(tf.Module):
    """Two layers."""

    def __init__(self, name=None):
        super().__init__(name=name)
        self.one = Dense(3, 3)
        self.two = Dense(3, 2)

    def __call__(self, x):
        return self.two(self.one(x))


stack = Stack(name="stack")
note(
    stacked=stack(tf.constant([[2.0, 2.0, 2.0]])),
    submodules=[type(m).__name__ for m in stack.submodules],
    shapes=[v.shape for v in stack.variables],
)


# %% Variables in the first call
class Flexible(tf.Module):
    """A layer that looks at its first input."""

    def __init__(self, outputs, name=None):
        super().__init__(name=name)
        self.built, self.outputs = False, outputs

    @tf.Module.with_name_scope
    def __call__(self, x):
        if not self.built:
            self.w = tf.Variable(start(x.shape[-1], self.outputs), name="w")
            self.b = tf.Variable(tf.zeros([self.outputs]), name="b")
            self.built = True
        return tf.nn.relu(tf.matmul(x, self.w) + self.b)


flexible = Flexible(4, name="flexible")
before = len(flexible.variables)
note(
    flexible=flexible(tf.constant([[1.0, -1.0]])),
    made=[before, len(flexible.variables)],
    scoped_name=[v.name.split(":")[0] for v in flexible.variables],
)

# %% Weights, saved and restored
checkpoint = tf.train.Checkpoint(model=stack)
checkpoint.write(str(folder / "weights"))
note(listed=sorted(name for name, _ in tf.train.list_variables(str(folder / "weights")))[-4:])
again = Stack()
for variable in again.variables:
    variable.assign(tf.zeros_like(variable))
tf.train.Checkpoint(model=again).restore(str(folder / "weights"))
note(restored=again(tf.constant([[2.0, 2.0, 2.0]])))


# %% Functions, saved: what loads them needs no class
class Traced(tf.Module):
    """Two layers in one graph."""

    def __init__(self, name=None):
        super().__init__(name=name)
        self.one = Dense(3, 3)
        self.two = Dense(3, 2)

    @tf.function
    def __call__(self, x):
        return self.two(self.one(x))


model = Traced(name="traced")
row, rows = [[2.0, 2.0, 2.0]], [[[2.0, 2.0, 2.0], [1.0, 1.0, 1.0]]]
note(traced=[model(tf.constant(row)), model(tf.constant(rows))])

tf.summary.trace_on(graph=True)
Traced()(tf.constant(row))
with tf.summary.create_file_writer(str(folder / "logs")).as_default():
    tf.summary.trace_export(name="trace", step=0)
note(logs=len(list((folder / "logs").iterdir())))

tf.saved_model.save(model, str(folder / "saved"))
loaded = tf.saved_model.load(str(folder / "saved"))
note(
    is_the_class=isinstance(loaded, Traced),
    loaded=[loaded(tf.constant(row)), loaded(tf.constant(rows))],
    there=tf.saved_model.contains_saved_model(str(folder / "saved")),
)
with refused("another_shape", ValueError):
    loaded(tf.constant([[1.0, 2.0]]))


# %% A shape left open
class Exported(tf.Module):
    """Any number of rows."""

    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def predict(self, x):
        hidden = self.inside.one(x)
        centred = hidden - tf.reduce_mean(hidden, axis=0)
        return {"scores": self.inside.two(centred), "rows": tf.shape(x)[0]}


exported = Exported(stack)
tf.saved_model.save(exported, str(folder / "exported"), signatures=exported.predict)
opened = tf.saved_model.load(str(folder / "exported"))
for count in (1, 4, 7):
    data = tf.constant(np.sin(np.arange(3.0 * count)).reshape(count, 3), tf.float32)
    note(**{f"open_{count}": opened.predict(data), f"straight_{count}": exported.predict(data)})
answer = opened.signatures["serving_default"](x=tf.ones([5, 3]))
note(signature_keys=sorted(answer), signature_rows=answer["rows"])
opened.inside.two.b.assign([1.0, 1.0])
note(changed=opened.predict(tf.ones([2, 3]))["scores"])


# %% The same as Keras layers and models
class KerasDense(tf.keras.layers.Layer):
    """Made when it is built."""

    def __init__(self, outputs, **more):
        super().__init__(**more)
        self.outputs = outputs

    def build(self, input_shape):
        self.w = tf.Variable(start(input_shape[-1], self.outputs), name="w")
        self.b = tf.Variable(tf.zeros([self.outputs]), name="b")

    def call(self, x):
        return tf.matmul(x, self.w) + self.b


layer = KerasDense(3)
unbuilt = len(layer.variables)
note(
    keras_layer=layer(tf.constant([[2.0, 2.0], [3.0, 3.0]])),
    keras_made=[unbuilt, len(layer.variables)],
)
with refused("keras_other_shape", tf.errors.InvalidArgumentError, ValueError):
    layer(tf.constant([[2.0, 2.0, 2.0]]))


@tf.keras.utils.register_keras_serializable()
class KerasStack(tf.keras.Model):
    """Two of them."""

    def __init__(self, name=None, **more):
        super().__init__(**more)
        self.one = KerasDense(3)
        self.two = KerasDense(2)

    def call(self, x):
        return self.two(self.one(x))

    def get_config(self):
        return {}


keras_model = KerasStack()
point = tf.constant([[2.0, 2.0, 2.0]])
note(
    keras_model=keras_model(point),
    keras_variables=len(keras_model.variables),
    keras_layers=[type(part).__name__ for part in keras_model.layers],
)
inputs = tf.keras.Input(shape=[3])
functional = tf.keras.Model(inputs=inputs, outputs=KerasDense(2)(KerasDense(3)(inputs)))
note(functional=functional(point), parameters=functional.count_params())
functional.summary(print_fn=lambda *_, **__: None)

save_notes()
