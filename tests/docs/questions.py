"""What people search for, and the page that answers it."""

# Words that people type, and the page that has to be the first result.
WORDS = {
    "gradient none": "why_none.html",
    "why is my gradient none": "why_none.html",
    "No gradients provided for any variable": "why_none.html",
    "Gradients do not exist for variables": "why_none.html",
    "loss is nan": "nan.html",
    "nan gradients": "nan.html",
    "memory leak": "memory.html",
    "out of memory": "memory.html",
    "memory keeps increasing": "memory.html",
    "retracing": "functions.html",
    "triggered tf.function retracing": "functions.html",
    "program is slow": "speed.html",
    "mixed precision": "mixed_precision.html",
    "loss scaling float16": "mixed_precision.html",
    "GPU": "gpu.html",
    "list_physical_devices GPU empty": "gpu.html",
    "multiple machines": "scale.html",
    "distributed training": "scale.html",
    "save and resume training": "saving.html",
    "checkpoint": "saving.html",
    "install": "installation.html",
    "how fast": "speed.html",
    "differences from tensorflow": "differences.html",
    "pytorch": "from_pytorch.html",
    "zero_grad": "from_pytorch.html",
    "jax": "from_jax.html",
    "value_and_grad": "from_jax.html",
    "run tensorflow script": "index.html",
    "keras fit": "keras.html",
    "pinn": "scientific.html",
    "curve fitting": "scientific.html",
    "teach automatic differentiation": "teaching.html",
    "library authors": "library_authors.html",
    "custom training loop slower than fit": "speed.html",
    "resume training from checkpoint": "saving.html",
    "gradient accumulation": "guide.html",
    "hessian matrix": "derivatives.html",
    "per-example gradients": "derivatives.html",
    "profile": "inspecting_tapes.html",
    "reduce_sum": "api/math.html#retrograde.math.reduce_sum",
    "vae": "gallery/vae.html",
    "grad-cam": "gallery/attributions.html",
    "style transfer": "gallery/texture.html",
}

# Titles of threads, as their authors wrote them. At least 18 of these 20 have to be answered by the
# first result.
FORUM = {
    # github.com/tensorflow/tensorflow/issues/42984
    "tf.GradientTape().gradient() returns None": "why_none.html",
    # github.com/tensorflow/tensorflow/issues/24849
    "GradientTape return none for variable not being present in expression": "why_none.html",
    # github.com/tensorflow/tensorflow/issues/44033
    "triggered tf.function retracing warning": "functions.html",
    # github.com/tensorflow/tensorflow/issues/38561
    "Unwanted tf.function retracing when using variable-length inputs": "functions.html",
    # github.com/tensorflow/tensorflow/issues/36988
    "Rising a memory on every step": "memory.html",
    # github.com/tensorflow/tensorflow/issues/23953
    "Runs out of memory after 3 epochs": "memory.html",
    # github.com/tensorflow/tensorflow/issues/17411
    "Illegal instruction (core dumped) after running import tensorflow": "installation.html",
    # github.com/tensorflow/tensorflow/issues/49107
    "TensorFlow won't detect GPU": "gpu.html",
    # github.com/tensorflow/tensorflow/issues/33898
    "tf.GradientTape training much slower than keras.fit": "speed.html",
    # github.com/tensorflow/tensorflow/issues/29781
    "[TF 2.0] tf.hessians": "derivatives.html",
    # errorsfixing.com/how-to-accumulate-gradients-in-tensorflow-2, from Stack Overflow
    "How to accumulate gradients in tensorflow?": "guide.html",
    # newbe.dev/how-to-apply-gradient-clipping-in-tensorflow, from Stack Overflow
    "How to apply gradient clipping in TensorFlow?": "guide.html",
    # taourl.com/read-2589871.html
    "NaN loss output when training DNN with Keras": "nan.html",
    # github.com/keras-team/keras/issues/16552
    "Mix precision leads to nan loss": "mixed_precision.html",
    # github.com/keras-team/keras/issues/2378
    "Not able to resume training after loading model + weights": "saving.html",
    # github.com/keras-team/keras/issues/4871
    "load_model() with custom layers, and custom layers in general": "saving.html",
    # github.com/keras-team/keras/issues/2743
    "Each time I run the Keras, I get different result.": "guide.html",
    # github.com/karpathy/nn-zero-to-hero/issues/31
    "RuntimeError: Trying to backward through the graph a second time": "from_pytorch.html",
    # stackoverflow.com/questions/43451125
    "Pytorch, what are the gradient arguments": "from_pytorch.html",
    # github.com/katerakelly/pytorch-maml/issues/17
    "Hessian-vector products": "derivatives.html",
}
