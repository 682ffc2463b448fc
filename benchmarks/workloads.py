"""Lists the workloads, in the order of the table.

To add a workload, add a line here and a function of that name to each module. The function takes
the library and returns a step: a function without arguments that does the work and returns a list
of results. The results of the first two steps are compared over all peers. The functions are in:

- `workloads_*.py` for `STEPS` and `MEMORY`;
- `derivatives_*.py` for `DERIVATIVES`;
- `pipelines_*.py` for `PIPELINES`, for the libraries that have pipelines;
- `keras_models.py` for `KERAS`, `MODELS` and `KERAS_LOOPS`, for all Keras backends, or those with
  tapes. The peak memory of `MODELS` is measured as well, as `MODEL_MEMORY`;
- `compiled_*.py` for `COMPILED`. These functions also take the mode, and all modes are compared.
"""

STEPS = {
    "square": "gradient of `x * x` at a scalar variable",
    "add8": "`a + b` of two tensors with 8 elements, without a tape",
    "chain": "gradient of 100 chained sines on 8 elements, summed",
    "small_mlp": "training step (SGD) of a 16-32-32-4 network, batch of 32",
    "mnist_mlp": "training step (SGD) of a 784-512-512-10 network, batch of 128",
    "elementwise_1m": "gradient of `sum(sin(x) * exp(x) + tanh(x))` on 1,000,000 elements",
    "conv_small": "gradients of `sum(y * y)`, y = 3 x 3 convolution, 32 images, 28 x 28, "
    "8 to 16 channels",
    "conv_64": "the same, 64 to 64 channels",
    "max_pool": "gradient of `sum(y * y)`, y = 2 x 2 max pooling, 32 images, 28 x 28, 64 channels",
}

DERIVATIVES = {
    "jacobian_64": "Jacobian of `tanh(m @ v)`, 64 x 64",
    "hessian_32": "Hessian of `sum(tanh(m @ v)**2)`, 32 x 32",
    "batch_jacobian": "Jacobians of a 16-32-32-8 tanh network, batch of 64",
    "hessian_vector": "Hessian-vector product of a 5-layer tanh network, 256 points in the plane",
    "laplacian": "Laplacian of the same network at each point",
    "fourth_derivative": "fourth derivative of such a network at 256 points on a line",
    "per_example": "per-example gradients, 16-32-32-4 network, batch of 256",
}

PIPELINES = {
    "shuffled_batches": "epoch over 60,000 rows of 784 floats and labels, shuffled, batches of 128",
}

MEMORY = {
    "memory_50_layers": "peak memory of 50 layers `tanh(h @ w)`, 1024 x 1024, forward + backward",
}

IMPORTS = {
    "import": "import in a new interpreter, without the startup time of the interpreter",
}

COMPILED = {
    "call": "`a + b` of two tensors with 8 elements: the overhead of a function call",
    "small_mlp_step": "training step (SGD) of a 16-32-32-4 network, batch of 32",
    "mnist_mlp_step": "training step (SGD) of a 784-512-512-10 network, batch of 128",
    "elementwise_step": "gradient of `sum(sin(x) * exp(x) + tanh(x))` on 1,000,000 elements",
    "rnn_step": "training step of a recurrent layer, 100 steps, batch of 32, 16 features, 32 units",
    "transformer_step": "training step of a transformer block, batch of 8, 64 tokens, width 128",
    "jacobian_step": "Jacobian of `tanh(m @ v)`, 64 x 64",
    "conv_step": "training step of a 3 x 3 convolution, 32 images, 28 x 28, 8 to 16 channels",
}

KERAS = {
    "fit_mlp_32": "`fit` over 20 batches of 32, a 784-32-32-10 network, Adam",
    "fit_mlp_512": "`fit` over 20 batches of 32, a 784-512-512-10 network, Adam",
    "fit_cnn": "`fit` over 20 batches of 64 images, 28 x 28, two convolutions, Adam",
    "fit_lstm": "`fit` over 20 batches of 32, LSTM of 64 units over 50 steps, Adam",
}

MODELS = {
    "gpt": "training step of a GPT, 4 blocks of width 256, 8 x 128 tokens, Adam",
    "resnet50": "training step of ResNet50, 8 images of 64 x 64, Adam",
    "mobilenet_v2": "training step of MobileNetV2, 8 images of 64 x 64, Adam",
}

MODEL_MEMORY = {
    f"{name}_memory": f"peak memory of three steps of `{name}`, with the library" for name in MODELS
}

KERAS_LOOPS = {
    "keras_loop": "training step with a tape, 784-32-32-10 network, batch of 32, Adam",
}

DESCRIPTIONS = (
    STEPS
    | DERIVATIVES
    | PIPELINES
    | COMPILED
    | KERAS
    | MODELS
    | KERAS_LOOPS
    | MEMORY
    | MODEL_MEMORY
    | IMPORTS
)
