"""Modules: variables, submodules, checkpoints and saved models."""

# %% Setup
import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from notes import expect_error, note, save_notes

folder = pathlib.Path(tempfile.mkdtemp())


def initial_values(*shape):
    """Returns the same initial values in every run."""
    return np.cos(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)


# %% A module
class Spring(tf.Module):
    """The force of a spring as a function of its position."""

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


# %% Nested modules
class Dense(tf.Module):
    """A dense layer with fixed input and output sizes."""

    def __init__(self, inputs, outputs, name=None):
        super().__init__(name=name)
        self.w = tf.Variable(initial_values(inputs, outputs), name="w")
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


# %% Creating variables in the first call
class Flexible(tf.Module):
    """A dense layer that takes its input size from the first input."""

    def __init__(self, outputs, name=None):
        super().__init__(name=name)
        self.built, self.outputs = False, outputs

    @tf.Module.with_name_scope
    def __call__(self, x):
        if not self.built:
            self.w = tf.Variable(initial_values(x.shape[-1], self.outputs), name="w")
            self.b = tf.Variable(tf.zeros([self.outputs]), name="b")
            self.built = True
        return tf.nn.relu(tf.matmul(x, self.w) + self.b)


flexible = Flexible(4, name="flexible")
before = len(flexible.variables)
note(
    flexible=flexible(tf.constant([[1.0, -1.0]])),
    variable_counts=[before, len(flexible.variables)],
    scoped_name=[v.name.split(":")[0] for v in flexible.variables],
)

# %% Saving and restoring weights
checkpoint = tf.train.Checkpoint(model=stack)
checkpoint.write(str(folder / "weights"))
note(listed=sorted(name for name, _ in tf.train.list_variables(str(folder / "weights")))[-4:])
restored = Stack()
for variable in restored.variables:
    variable.assign(tf.zeros_like(variable))
tf.train.Checkpoint(model=restored).restore(str(folder / "weights"))
note(restored=restored(tf.constant([[2.0, 2.0, 2.0]])))


# %% Saving functions: loading does not need the class
class Traced(tf.Module):
    """Two layers in one function."""

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
    same_class=isinstance(loaded, Traced),
    loaded=[loaded(tf.constant(row)), loaded(tf.constant(rows))],
    is_saved_model=tf.saved_model.contains_saved_model(str(folder / "saved")),
)
with expect_error("wrong_shape", ValueError):
    loaded(tf.constant([[1.0, 2.0]]))


# %% An unknown batch size
class Exported(tf.Module):
    """A model for any number of rows."""

    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def predict(self, x):
        hidden = self.inside.one(x)
        centered = hidden - tf.reduce_mean(hidden, axis=0)
        return {"scores": self.inside.two(centered), "rows": tf.shape(x)[0]}


exported = Exported(stack)
tf.saved_model.save(exported, str(folder / "exported"), signatures=exported.predict)
opened = tf.saved_model.load(str(folder / "exported"))
for count in (1, 4, 7):
    data = tf.constant(np.sin(np.arange(3.0 * count)).reshape(count, 3), tf.float32)
    note(**{f"open_{count}": opened.predict(data), f"straight_{count}": exported.predict(data)})
signature_outputs = opened.signatures["serving_default"](x=tf.ones([5, 3]))
note(signature_keys=sorted(signature_outputs), signature_rows=signature_outputs["rows"])
opened.inside.two.b.assign([1.0, 1.0])
note(after_assignment=opened.predict(tf.ones([2, 3]))["scores"])


# %% The same as Keras layers and models
class KerasDense(tf.keras.layers.Layer):
    """A Keras layer that creates its variables in `build`."""

    def __init__(self, outputs, **kwargs):
        super().__init__(**kwargs)
        self.outputs = outputs

    def build(self, input_shape):
        self.w = tf.Variable(initial_values(input_shape[-1], self.outputs), name="w")
        self.b = tf.Variable(tf.zeros([self.outputs]), name="b")

    def call(self, x):
        return tf.matmul(x, self.w) + self.b


layer = KerasDense(3)
unbuilt = len(layer.variables)
note(
    keras_layer=layer(tf.constant([[2.0, 2.0], [3.0, 3.0]])),
    keras_variable_counts=[unbuilt, len(layer.variables)],
)
with expect_error("keras_wrong_shape", tf.errors.InvalidArgumentError, ValueError):
    layer(tf.constant([[2.0, 2.0, 2.0]]))


@tf.keras.utils.register_keras_serializable()
class KerasStack(tf.keras.Model):
    """Two Keras layers."""

    def __init__(self, name=None, **kwargs):
        super().__init__(**kwargs)
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
