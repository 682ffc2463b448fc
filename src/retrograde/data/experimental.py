"""tf.data.experimental: legacy names of `Dataset` methods, mostly for `Dataset.apply`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from retrograde._api.lazy import from_all
from retrograde.core.tensor import Tensor
from retrograde.data import _sources
from retrograde.data._nodes import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from retrograde.data._transforms import assert_count
from retrograde.data.csv import CsvDataset, make_csv_dataset
from retrograde.data.dataset import Dataset
from retrograde.data.iterator import Iterator, Optional
from retrograde.data.options import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ServiceOptions,
    ThreadingOptions,
)
from retrograde.data.readers import TFRecordDataset
from retrograde.records.parsing import parse_example
from retrograde.values import dtypes
from retrograde.values.arguments import as_int, expect

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "AutotuneAlgorithm",
    "AutotuneOptions",
    "Counter",
    "CsvDataset",
    "DistributeOptions",
    "ExternalStatePolicy",
    "OptimizationOptions",
    "Optional",
    "ServiceOptions",
    "ThreadingOptions",
    "assert_cardinality",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_ragged_batch",
    "dense_to_sparse_batch",
    "enable_debug_mode",
    "enumerate_dataset",
    "from_list",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_window",
    "ignore_errors",
    "load",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "map_and_batch",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "save",
    "scan",
    "shuffle_and_repeat",
    "snapshot",
    "take_while",
    "unbatch",
    "unique",
]

__path__: list[str] = []  # allows imports of submodules, as in TensorFlow
__getattr__, __dir__ = from_all(__name__)

Transformation = Callable[[Dataset], Dataset]

# Functions of datasets and iterators


def enable_debug_mode() -> None:
    """Does nothing: the functions of a dataset always run as Python, where a debugger can stop."""


def cardinality(dataset: Dataset) -> Tensor:
    """Returns `dataset.cardinality()`."""
    return expect(dataset, Dataset, "cardinality", "a dataset").cardinality()


def get_single_element(dataset: Dataset) -> Any:
    """Returns `dataset.get_single_element()`."""
    return expect(dataset, Dataset, "get_single_element", "a dataset").get_single_element()


def get_structure(dataset_or_iterator: Dataset | Iterator) -> Any:
    """Returns the spec of elements."""
    kinds = (Dataset, Iterator)
    return expect(dataset_or_iterator, kinds, "get_structure", "a dataset").element_spec


def get_next_as_optional(iterator: Iterator) -> Optional:
    """Returns the next element as an `Optional`."""
    op_name = "get_next_as_optional"
    return expect(iterator, Iterator, op_name, "an iterator").get_next_as_optional()


# Datasets


def Counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64) -> Dataset:
    """Creates an infinite dataset `start`, `start + step`, ..."""
    return Dataset.counter(start, step, dtype)


def from_list(elements: Sequence[Any], name: str | None = None) -> Dataset:
    """Creates a dataset from a list. Shapes may differ, but not structures and dtypes."""
    return Dataset(_sources.from_list(elements))


def choose_from_datasets(
    datasets: Sequence[Dataset], choice_dataset: Dataset, stop_on_empty_dataset: bool = False
) -> Dataset:
    """Takes each element from the dataset whose index is the next of `choice_dataset`."""
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def sample_from_datasets(
    datasets: Sequence[Dataset],
    weights: Any = None,
    seed: Any = None,
    stop_on_empty_dataset: bool = False,
) -> Dataset:
    """Takes each element from a random dataset, with probabilities `weights`."""
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)


def save(
    dataset: Dataset,
    path: Any,
    compression: str | None = None,
    shard_func: Callable | None = None,
    checkpoint_args: Any = None,
) -> None:
    """Saves all elements to a directory."""
    expect(dataset, Dataset, "save", "a dataset")
    dataset.save(path, compression, shard_func, checkpoint_args)


def load(
    path: Any,
    element_spec: Any = None,
    compression: str | None = None,
    reader_func: Callable | None = None,
) -> Dataset:
    """Loads a dataset that `save` wrote to a directory."""
    return Dataset.load(path, element_spec, compression, reader_func)


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: Any,
    features: Any,
    reader: Any = None,
    label_key: str | None = None,
    reader_args: Sequence[Any] | None = None,
    num_epochs: Any = None,
    shuffle: bool = True,
    shuffle_buffer_size: Any = 10000,
    shuffle_seed: Any = None,
    prefetch_buffer_size: Any = None,
    reader_num_threads: Any = None,
    parser_num_threads: Any = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Creates a dataset of batches of parsed examples from files.

    `reader` is a dataset class, `tf.data.TFRecordDataset` by default. With a `label_key`, elements
    are pairs of the features and the label. Without `num_epochs`, the dataset repeats forever.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     with tf.io.TFRecordWriter(file.name) as writer:
    ...         for number in range(3):
    ...             example = tf.train.Example()
    ...             example.features.feature["x"].int64_list.value.append(number)
    ...             writer.write(example.SerializeToString())
    ...     features = {"x": tf.io.FixedLenFeature([], tf.int64)}
    ...     data = tf.data.experimental.make_batched_features_dataset(
    ...         file.name, 2, features, num_epochs=1, shuffle=False
    ...     )
    ...     [batch["x"].numpy().tolist() for batch in data]
    [[0, 1], [2]]
    """
    make = TFRecordDataset if reader is None else reader
    files = Dataset.list_files(file_pattern, shuffle=shuffle, seed=shuffle_seed)
    arguments = () if reader_args is None else reader_args
    threads = 1 if reader_num_threads is None else reader_num_threads
    dataset = files.interleave(lambda path: make(path, *arguments), cycle_length=threads)
    if type(dataset.element_spec) is tuple:  # readers of keys and values
        dataset = dataset.map(lambda _key, value: value)
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    dataset = dataset.apply(parse_example_dataset(features, parser_num_threads or 1))
    if label_key is not None:
        if label_key not in features:
            raise ValueError(
                f"The `label_key` provided ({label_key!r}) must be one of the `features` keys."
            )
        dataset = dataset.map(lambda parsed: (parsed, parsed.pop(label_key)))
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


# Transformations for `Dataset.apply`. Each calls the `Dataset` method of the same name unless its
# docstring says otherwise.


def assert_cardinality(expected_cardinality: int) -> Transformation:
    """Sets the number of elements and checks it in each complete iteration."""
    expected = as_int(expected_cardinality, "assert_cardinality: expected_cardinality")
    if expected < INFINITE_CARDINALITY:
        raise ValueError(
            "assert_cardinality: expected a number of elements or tf.data.INFINITE_CARDINALITY. "
            f"Received: {expected}."
        )
    return lambda dataset: dataset._transform(
        lambda elements, _run: assert_count(elements, expected),
        "AssertCardinality",
        cardinality=lambda _n: expected,
    )


def bucket_by_sequence_length(
    element_length_func: Callable,
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """Batches elements of similar length, with padding."""
    return lambda dataset: dataset.bucket_by_sequence_length(
        element_length_func,
        bucket_boundaries,
        bucket_batch_sizes,
        padded_shapes,
        padding_values,
        pad_to_bucket_boundary,
        no_padding,
        drop_remainder,
    )


def copy_to_device(target_device: Any, source_device: Any = "/cpu:0") -> Transformation:
    """Returns the dataset itself: elements stay on the CPU until an operation uses them."""
    return lambda dataset: dataset


def prefetch_to_device(device: Any, buffer_size: Any = None) -> Transformation:
    """Calls `prefetch`: elements stay on the CPU until an operation uses them."""
    return lambda dataset: dataset.prefetch(buffer_size)


def dense_to_ragged_batch(
    batch_size: Any, drop_remainder: bool = False, row_splits_dtype: Any = dtypes.int64
) -> Transformation:
    """Calls `ragged_batch`."""
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def dense_to_sparse_batch(batch_size: Any, row_shape: Any) -> Transformation:
    """Calls `sparse_batch`."""
    return lambda dataset: dataset.sparse_batch(batch_size, row_shape)


def enumerate_dataset(start: Any = 0) -> Transformation:
    """Calls `enumerate`."""
    return lambda dataset: dataset.enumerate(start)


def group_by_window(
    key_func: Callable,
    reduce_func: Callable,
    window_size: Any = None,
    window_size_func: Callable | None = None,
) -> Transformation:
    """Groups elements by key into windows."""
    return lambda dataset: dataset.group_by_window(
        key_func, reduce_func, window_size, window_size_func
    )


def ignore_errors(log_warning: bool = False) -> Transformation:
    """Drops elements that raise an error."""
    return lambda dataset: dataset.ignore_errors(log_warning)


def map_and_batch(
    map_func: Callable,
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: bool = False,
    num_parallel_calls: Any = None,
) -> Transformation:
    """Calls `map` with parallel calls, then `batch`."""
    calls = AUTOTUNE if num_parallel_calls is None else num_parallel_calls
    return lambda dataset: dataset.map(map_func, calls).batch(batch_size, drop_remainder)


def parallel_interleave(
    map_func: Callable,
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: bool | None = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Transformation:
    """Calls `interleave` with parallel calls."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length, cycle_length)


def parse_example_dataset(
    features: Any, num_parallel_calls: Any = 1, deterministic: bool | None = None
) -> Transformation:
    """Parses batches of serialized examples, as `tf.io.parse_example` does."""
    if features is None:
        raise ValueError("Argument `features` is required, but not specified.")
    calls = None if num_parallel_calls == 1 else num_parallel_calls

    def parse(serialized: Tensor) -> dict[str, Any]:
        return parse_example(serialized, features)

    return lambda dataset: dataset.map(parse, calls, deterministic)


def rejection_resample(
    class_func: Callable, target_dist: Any, initial_dist: Any = None, seed: Any = None
) -> Transformation:
    """Drops elements at random until classes have the distribution `target_dist`."""
    return lambda dataset: dataset.rejection_resample(class_func, target_dist, initial_dist, seed)


def scan(initial_state: Any, scan_func: Callable) -> Transformation:
    """Maps `scan_func` over the elements with a state."""
    return lambda dataset: dataset.scan(initial_state, scan_func)


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Transformation:
    """Calls `shuffle`, then `repeat`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def snapshot(
    path: Any,
    compression: str = "AUTO",
    reader_func: Callable | None = None,
    shard_func: Callable | None = None,
) -> Transformation:
    """Caches the elements of the first complete iteration in a directory."""
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)


def take_while(predicate: Callable) -> Transformation:
    """Stops at the first element for which `predicate` is false."""
    return lambda dataset: dataset.take_while(predicate)


def unbatch() -> Transformation:
    """Splits each element into its rows."""
    return lambda dataset: dataset.unbatch()


def unique() -> Transformation:
    """Drops repeated elements."""
    return lambda dataset: dataset.unique()
