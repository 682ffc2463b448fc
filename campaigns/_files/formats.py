"""Defines the supported formats: valid files, readers and permitted exceptions."""

from __future__ import annotations

import contextlib
import csv
import functools
import gzip
import io
import json
import pathlib
import random
import tempfile
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import retrograde as tf
from campaigns._files import images
from retrograde.tensorflow_shim.command_line import main

Files = dict[str, bytes]
_INVALID = (tf.errors.InvalidArgumentError, tf.errors.ResourceExhaustedError)
_LOST = (tf.errors.DataLossError, tf.errors.ResourceExhaustedError)


class Format(NamedTuple):
    """A format: valid files, a reader of a folder with them, and the errors it may raise.

    If it `has_checksums`, corruption that does not update them must be detected.
    """

    make: Callable[[random.Random], Files]
    read: Callable[[pathlib.Path], Any]
    errors: tuple[type[Exception], ...]
    has_checksums: bool = False


# Images


def _image(name: str, make: Callable[[random.Random], bytes], errors: Any = _INVALID) -> Format:
    def read(folder: pathlib.Path) -> list:
        data = (folder / name).read_bytes()
        return [tf.io.decode_image(data), *_attempts(data)]

    return Format(lambda rng: {name: make(rng)}, read, errors)


def _attempts(data: bytes) -> list:
    """Runs other decoders on the data. A decoder may accept data that another refuses."""
    results = []
    for decode in (
        lambda: tf.io.decode_png(data, channels=1, dtype=tf.uint16),
        lambda: tf.io.decode_gif(data),
        lambda: tf.io.decode_jpeg(data, channels=1, ratio=2),
        lambda: tf.io.extract_jpeg_shape(data),
        lambda: tf.io.decode_image(data, dtype=tf.float32, expand_animations=False),
    ):
        with contextlib.suppress(*_INVALID):
            results.append(decode())
    return results


def _jpeg(rng: random.Random) -> bytes:
    known = _progressive()
    if known and rng.random() < 0.4:
        return rng.choice(known)
    options = {"quality": rng.choice((10, 75, 100)), "chroma_downsampling": rng.random() < 0.5}
    return tf.io.encode_jpeg(images.pixels(rng), **options).numpy()


@functools.cache
def _progressive() -> list[bytes]:
    """Returns progressive files, which our encoder cannot create, from the test data."""
    path = pathlib.Path(__file__).parents[2] / "tests" / "data" / "image_jpeg_results.json"
    calls = json.loads(path.read_text()) if path.exists() else {}
    hex_strings = {
        call.split("fromhex('")[1].split("'")[0] for call in calls if "fromhex('" in call
    }
    return sorted(bytes.fromhex(text) for text in hex_strings)


def _encoded_png(rng: random.Random) -> bytes:
    return tf.io.encode_png(images.pixels(rng)).numpy()


@functools.cache
def _zeros() -> bytes:
    return zlib.compress(bytes(100 << 20))


# Streams


def _text(rng: random.Random) -> bytes:
    count = rng.choice((0, 10, 5000))
    return b"".join(rng.choice((b"some words\n", b"\r\n", b"x" * 50)) for _ in range(count))


def _compress_random_text(rng: random.Random, kind: str, members: int) -> bytes:
    compress = zlib.compress if kind == "ZLIB" else gzip.compress
    return b"".join(compress(_text(rng)) for _ in range(members))


def _stream(kind: str, members: int = 1) -> Format:
    """Returns a compressed format. A file that ends after one of its members is also valid."""
    name = f"data.{kind.lower()}"

    def read(folder: pathlib.Path) -> list:
        path = folder / name
        decoded = tf.io.decode_compressed(path.read_bytes(), kind)
        lines = list(tf.data.TextLineDataset(str(path), kind).take(10**5))
        records = tf.data.FixedLengthRecordDataset(str(path), 11, compression_type=kind)
        with contextlib.suppress(tf.errors.InvalidArgumentError):
            return [decoded, lines, list(records)]
        return [decoded, lines]

    make = lambda rng: {name: _compress_random_text(rng, kind, members)}  # noqa: E731
    return Format(make, read, _LOST, has_checksums=members == 1)


def _read_bomb(folder: pathlib.Path) -> list:
    """Reads the first lines of a file whose content would not fit into memory."""
    lines = tf.data.FixedLengthRecordDataset(str(folder / "data"), 1 << 20, compression_type="ZLIB")
    return list(lines.take(2))


# Tables, tensors and text


def _table(rng: random.Random) -> bytes:
    file = io.StringIO(newline="")
    words = ("", "a", 'say "hi"', "x,y", "line\nend", "é")
    writer = csv.writer(file)
    for _ in range(rng.randint(1, 9)):
        writer.writerow([rng.randrange(-99, 99), rng.random(), rng.choice(words)])
    return file.getvalue().encode()


def _read_table(folder: pathlib.Path) -> list:
    records = (folder / "data.csv").read_bytes().split(b"\r\n")[:-1]
    return tf.io.decode_csv(records, [[0], [0.0], [""]])


def _tensor(rng: random.Random) -> bytes:
    dtype = rng.choice((tf.float32, tf.int64, tf.bool, tf.string, tf.complex64, tf.bfloat16))
    shape = [rng.randrange(4) for _ in range(rng.randrange(4))]
    if dtype == tf.string:
        return tf.io.serialize_tensor(tf.fill(shape, rng.randbytes(5))).numpy()
    return tf.io.serialize_tensor(tf.cast(tf.fill(shape, rng.randrange(99)), dtype)).numpy()


def _read_tensor(folder: pathlib.Path) -> list:
    data, results = (folder / "data").read_bytes(), []
    for dtype in (tf.float32, tf.int64, tf.bool, tf.string, tf.complex64, tf.bfloat16):
        with contextlib.suppress(*_INVALID):
            results.append(tf.io.parse_tensor(data, dtype))
        with contextlib.suppress(*_INVALID, TypeError, ValueError):
            results.append(tf.io.decode_raw(data, dtype))
    with contextlib.suppress(*_INVALID):
        results.append(tf.io.decode_base64(data))
    with contextlib.suppress(*_INVALID):
        results.append(tf.strings.to_number(data, tf.int64))
    return results


def _notebook(rng: random.Random) -> bytes:
    sources = ("import tensorflow as tf\n", "%time\n", ["x = 1\n", "tf.nothing"], "!ls", "%%html\n")
    kinds, count = ("code", "markdown"), rng.randrange(5)
    cells = [
        {"cell_type": rng.choice(kinds), "source": rng.choice(sources), "metadata": {}}
        for _ in range(count)
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}).encode()


def _program(rng: random.Random) -> bytes:
    lines = (
        b"import tensorflow as tf", b"tf.math.sin(1.0)", b"from tensorflow import nn as k",
        b"def f(x=tf.float32):\n    return [tf.nothing for tf in x]", b"try:\n    import tf_keras",
        b"except ImportError:\n    pass", b"x = tf.a.b.c", b"class A(tf.Module): pass",
    )  # fmt: skip
    return b"\n".join(rng.choice(lines) for _ in range(rng.randint(1, 9)))


def _check(name: str) -> Callable[[pathlib.Path], Any]:
    def read(folder: pathlib.Path) -> str:
        """Returns the output of the command, which does not run programs."""
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            status = main(["check", str(folder / name)])
        if status not in (0, 1, 2) or "Traceback" in errors.getvalue():
            raise AssertionError(f"exit status {status}: {errors.getvalue()}")
        return out.getvalue()

    return read


def _vocabulary(rng: random.Random) -> bytes:
    return b"".join(b"word %d,%d\n" % (i, rng.randrange(1, 9)) for i in range(5))


def _read_vocabulary(folder: pathlib.Path) -> tuple:
    path = str(folder / "words.csv")
    return tf.random.fixed_unigram_candidate_sampler([[0]], 1, 2, True, 5, vocab_file=path)


# Saved files


def _files_in(write: Callable[[str], Any]) -> Files:
    with tempfile.TemporaryDirectory() as folder:
        write(folder)
        files = (path for path in pathlib.Path(folder).rglob("*") if path.is_file())
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _variables(kind: int) -> dict[str, Any]:
    return {
        "a": tf.Variable(np.arange(6 + kind, dtype=np.float32)),
        "b": tf.Variable(["some", "strings"]) if kind % 2 else tf.Variable(3, dtype=tf.int64),
        "c": tf.Variable(tf.cast([1, 2], tf.bfloat16 if kind % 3 else tf.complex128)),
    }


@functools.cache
def _checkpoints() -> list[Files]:
    def write(folder: str, kind: int) -> None:
        data = tf.data.Dataset.range(9).shuffle(4, seed=1)
        checkpoint = tf.train.Checkpoint(iterator=iter(data), **_variables(kind))
        tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2).save()

    return [_files_in(lambda folder, kind=kind: write(folder, kind)) for kind in range(6)]


def _read_checkpoint(folder: pathlib.Path) -> list:
    path = tf.train.latest_checkpoint(folder) or str(folder / "ckpt-1")
    reader = tf.train.load_checkpoint(path)
    tensors = [reader.get_tensor(key) for key in sorted(reader.get_variable_to_shape_map())]
    kind = next(kind for kind in range(6) if len(tensors[1]) == 6 + kind)
    variables = _variables(kind)
    iterator = iter(tf.data.Dataset.range(9).shuffle(4, seed=1))
    tf.train.Checkpoint(iterator=iterator, **variables).restore(path).expect_partial()
    return [tensors, [variable.numpy() for variable in variables.values()], list(iterator)]


@functools.cache
def _models() -> list[Files]:
    return [_files_in(lambda folder, kind=kind: _save_model(folder, kind)) for kind in range(5)]


def _save_model(folder: str, kind: int) -> None:
    model = tf.Module()
    model.v = tf.Variable(np.arange(12, dtype=np.float32).reshape(3, 4))
    model.parts = [tf.Variable(2.0), {"key": tf.Variable([1, 2])}]

    def run(x):
        y = x @ model.v
        if kind == 0:
            return tf.reduce_sum(y[:, 1:3] ** 2.0, axis=1)
        if kind == 1:
            model.parts[0].assign_add(tf.reduce_mean(y))
            return {"y": tf.transpose(y), "z": tf.gather(y, [0, 1], axis=1)}
        if kind == 2:
            return tf.nn.softmax(tf.pad(y, [[0, 0], [1, 2]], constant_values=float("inf")))
        if kind == 3:
            return tf.split(tf.reshape(y, [-1]), 2), tf.cast(y, tf.int32), tf.one_hot([1, 2], 4)
        return tf.where(y > 1.0, tf.concat([y, y], 1)[:, ::2], tf.constant(np.eye(2, 4, dtype="f")))

    model.run = tf.function(run)
    model.run(tf.ones([2, 3]))
    tf.saved_model.save(model, folder)


def _read_model(folder: pathlib.Path) -> list:
    model = tf.saved_model.load(str(folder))
    results = [variable.numpy() for variable in model.variables]
    run = getattr(model, "run", None)
    if callable(run):
        with contextlib.suppress(TypeError, ValueError, NotImplementedError, tf.errors.OpError):
            results.append(run(tf.ones([2, 3])))
    return results


@functools.cache
def _datasets() -> list[Files]:
    datasets = [
        tf.data.Dataset.range(7),
        tf.data.Dataset.from_tensor_slices({"a": np.ones([4, 3], np.float32), "b": list("abcd")}),
        tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1, 2], [], [3]])),
        tf.data.Dataset.from_tensors((tf.sparse.from_dense([[0, 1], [2, 0]]), tf.constant(2.5))),
    ]
    return [_files_in(lambda folder, data=data: data.save(folder)) for data in datasets]


def _read_dataset(folder: pathlib.Path) -> list:
    return list(tf.data.Dataset.load(str(folder)).take(1000))


_SAVED = (*_LOST, tf.errors.NotFoundError)
FORMATS = {
    "png": _image("data.png", images.png),
    "encoded png": Format(
        lambda rng: {"data.png": _encoded_png(rng)},
        lambda folder: tf.io.decode_png((folder / "data.png").read_bytes()),
        _INVALID,
        has_checksums=True,
    ),
    "gif": _image("data.gif", images.gif),
    "bmp": _image("data.bmp", images.bmp),
    "jpeg": _image("data.jpeg", _jpeg),
    "image bomb": _image("data.bomb", lambda rng: images.bomb(rng, _zeros())),
    "zlib": _stream("ZLIB"),
    "gzip": _stream("GZIP"),
    "gzip members": _stream("GZIP", members=2),
    "zlib bomb": Format(lambda _rng: {"data": _zeros()}, _read_bomb, _LOST),
    "csv": Format(lambda rng: {"data.csv": _table(rng)}, _read_table, _INVALID),
    "vocabulary": Format(lambda rng: {"words.csv": _vocabulary(rng)}, _read_vocabulary, _INVALID),
    "tensor": Format(lambda rng: {"data": _tensor(rng)}, _read_tensor, _INVALID),
    "notebook": Format(lambda rng: {"a.ipynb": _notebook(rng)}, _check("a.ipynb"), ()),
    "program": Format(lambda rng: {"a.py": _program(rng)}, _check("a.py"), ()),
    # A file whose tensors do not match the variables is not corrupt.
    "checkpoint": Format(
        lambda rng: rng.choice(_checkpoints()),
        _read_checkpoint,
        (*_SAVED, ValueError),
        has_checksums=True,
    ),
    "saved model": Format(
        lambda rng: rng.choice(_models()), _read_model, (*_SAVED, OSError), has_checksums=True
    ),
    "dataset": Format(
        lambda rng: rng.choice(_datasets()), _read_dataset, _SAVED, has_checksums=True
    ),
}
