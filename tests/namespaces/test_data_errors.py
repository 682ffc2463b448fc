"""tf.data: error classes and messages."""

import pytest

import retrograde as tf
from tests.namespaces.datasets import INT64, Dataset, to_list
from tests.namespaces.helpers import assert_raises

ERRORS = {
    "scalar": (
        lambda: Dataset.from_tensor_slices(1),
        ValueError,
        "Unbatching a tensor is only supported for rank >= 1. Use from_tensors for one element.",
    ),
    "uneven": (
        lambda: Dataset.from_tensor_slices(([1, 2], [1, 2, 3])),
        ValueError,
        "Dimensions 2 and 3 are not compatible. All tensors must have the same first dimension.",
    ),
    "empty": (
        lambda: Dataset.from_tensor_slices(()),
        ValueError,
        "Invalid `element`. `element` should not be empty.",
    ),
    "batch": (
        lambda: Dataset.range(3).batch(0),
        tf.errors.InvalidArgumentError,
        "batch: batch_size must be greater than zero. Received: 0.",
    ),
    "no_count": (
        lambda: Dataset.range(3).take(1.5),
        TypeError,
        "count: expected integers. Received: 1.5 of dtype float32.",
    ),
    "zip_of_nothing": (
        lambda: Dataset.zip(()),
        tf.errors.InvalidArgumentError,
        "Must pass at least one dataset to `zip`. Received an empty structure.",
    ),
    "choices": (
        lambda: Dataset.choose_from_datasets([Dataset.range(3)], [0]),
        TypeError,
        "Invalid `choice_dataset`. `choice_dataset` should be a `tf.data.Dataset` but is "
        "<class 'list'>.",
    ),
    "sparse_batch_of_pairs": (
        lambda: Dataset.range(3).enumerate().sparse_batch(2, [3]).element_spec,
        TypeError,
        f"sparse_batch: elements must be single tensors. Received: {(INT64, INT64)}.",
    ),
    "structure_of_padded_shapes": (
        lambda: to_list(Dataset.range(3).enumerate().padded_batch(2, padded_shapes=[])),
        TypeError,
        "`padded_shapes` must have the structure of the elements. Received: [].",
    ),
    "padded_sparse_tensors": (
        lambda: to_list(
            Dataset.from_tensor_slices(tf.sparse.from_dense([[1, 0], [0, 2]])).padded_batch(2)
        ),
        TypeError,
        "`padded_batch` is only supported for datasets of tensors. Received: elements of type "
        "SparseTensor.",
    ),
    "padded_shapes": (
        lambda: to_list(Dataset.range(3).padded_batch(2, padded_shapes=([3], []))),
        ValueError,
        "`padded_shapes` must contain shapes. Received: ([3], []).",
    ),
    "rebatch": (
        lambda: Dataset.range(3).batch(2).rebatch([1, -1]),
        tf.errors.InvalidArgumentError,
        "rebatch: batch_size must not be negative, and at least one size must be greater than "
        "zero. Received: [1, -1].",
    ),
    "rebatch_without_sizes": (
        lambda: Dataset.range(3).batch(2).rebatch([]),
        tf.errors.InvalidArgumentError,
        "rebatch: batch_size must not be empty. Received: [].",
    ),
    "shapes": (
        lambda: to_list(Dataset.range(1, 3).map(tf.range).batch(2)),
        tf.errors.InvalidArgumentError,
        "Cannot batch tensors with different shapes in component 0. First element had shape [1] "
        "and element 1 had shape [2]. Use padded_batch for such elements.",
    ),
    "shard": (
        lambda: Dataset.range(3).shard(2, 2),
        tf.errors.InvalidArgumentError,
        "shard: index must be between 0 and 1. Received: index 2.",
    ),
    "shuffle": (
        lambda: Dataset.range(3).shuffle(0),
        tf.errors.InvalidArgumentError,
        "shuffle: buffer_size must be greater than zero or UNKNOWN_CARDINALITY. Received: 0.",
    ),
    "prefetch": (
        lambda: Dataset.range(3).prefetch(-2),
        tf.errors.InvalidArgumentError,
        "prefetch: buffer_size must be >= 0 or AUTOTUNE. Received: -2.",
    ),
    "window": (
        lambda: Dataset.range(3).window(2, 0),
        tf.errors.InvalidArgumentError,
        "window: shift must be greater than zero. Received: 0.",
    ),
    "single_none": (
        lambda: Dataset.range(0).get_single_element(),
        tf.errors.InvalidArgumentError,
        "Dataset was empty. Expected exactly one element.",
    ),
    "single_many": (
        lambda: Dataset.range(2).get_single_element(),
        tf.errors.InvalidArgumentError,
        "Dataset had more than one element. Expected exactly one element.",
    ),
    "unbatch_scalar": (
        lambda: Dataset.range(2).unbatch(),
        ValueError,
        "Cannot unbatch an input with scalar components. Expected elements with a first axis.",
    ),
    "unbatch_none": (
        lambda: to_list(Dataset.range(2).map(lambda _x: (None, None)).unbatch()),
        ValueError,
        "`unbatch()` is only supported for elements with at least one tensor. Received: elements "
        "(None, None).",
    ),
    "unbatch_none_known": (
        lambda: Dataset.from_generator(
            lambda: iter([(None,)]),
            output_signature=Dataset.range(2).map(lambda _x: (None,)).element_spec,
        ).unbatch(),
        ValueError,
        "`unbatch()` is only supported for elements with at least one tensor. Received: elements "
        "(NoneTensorSpec(),).",
    ),
    "sparse_none": (
        lambda: Dataset.range(2).map(lambda _x: None).sparse_batch(2, [2]).element_spec,
        TypeError,
        "sparse_batch: elements must be single tensors. Received: NoneTensorSpec().",
    ),
    "unbatch_uneven": (
        lambda: to_list(Dataset.from_tensors(([1, 2], [1, 2, 3])).unbatch()),
        ValueError,
        "`unbatch()` is only supported for datasets of elements whose components have a matching "
        "leading dimension. Encountered [2, 3].",
    ),
    "predicate": (
        lambda: to_list(Dataset.range(2).filter(lambda x: x)),
        ValueError,
        "Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but its return "
        f"type is {INT64}.",
    ),
    "flat_map": (
        lambda: to_list(Dataset.range(2).flat_map(lambda _x: 1)),
        TypeError,
        "Invalid `map_func`. `map_func` must return a `tf.data.Dataset` object. Got <class 'int'>.",
    ),
    "map": (
        lambda: Dataset.range(2).map(3),
        ValueError,
        "`map_func` must be callable. Received: 3.",
    ),
    "parallel": (
        lambda: Dataset.range(2).map(abs, 0),
        tf.errors.InvalidArgumentError,
        "num_parallel_calls must be greater than zero. Received: 0.",
    ),
    "interleave": (
        lambda: Dataset.range(2).interleave(Dataset.range, 0),
        tf.errors.InvalidArgumentError,
        "interleave: cycle_length must be greater than zero. Received: 0.",
    ),
    "zip_nothing": (
        lambda: Dataset.zip(),
        TypeError,
        "Must pass at least one dataset to `zip`.",
    ),
    "zip_twice": (
        lambda: Dataset.zip(Dataset.range(1), datasets=Dataset.range(1)),
        TypeError,
        "Both `*args` and `datasets` cannot be set.",
    ),
    "zip_list": (
        lambda: Dataset.zip([Dataset.range(1)]),
        TypeError,
        "Invalid input to `zip`. Expected datasets, in tuples and dicts but not in lists.",
    ),
    "concatenate": (
        lambda: Dataset.range(1).concatenate(Dataset.from_tensors(1.0)),
        TypeError,
        f"Incompatible dataset elements:\n  {INT64} vs.   {tf.TensorSpec([])}",
    ),
    "scan": (
        lambda: to_list(Dataset.range(2).scan(0.0, lambda _s, x: (x, x))),
        TypeError,
        "Invalid `scan_func`. The element types for the new state must match the initial state. "
        f"Expected {tf.TensorSpec([])}, got {INT64}.",
    ),
    "scan_pair": (
        lambda: to_list(Dataset.range(2).scan(0.0, lambda _s, _x: None)),
        TypeError,
        "Invalid `scan_func`. `scan_func` should return a pair consisting of new state and the "
        "output value but it returned None.",
    ),
    "unique": (
        lambda: to_list(Dataset.from_tensor_slices([1.0]).unique()),
        TypeError,
        "`tf.data.Dataset.unique` does not support type tf.float32 -- only `tf.int32`, "
        "`tf.int64`, and `tf.string` are supported.",
    ),
    "unique_tuple": (
        lambda: to_list(Dataset.range(1).enumerate().unique()),
        tf.errors.InvalidArgumentError,
        "unique: elements must be single tensors.",
    ),
    "range": (
        lambda: Dataset.range(),
        ValueError,
        "Invalid `args`. The length of `args` should be between 1 and 3 but was 0.",
    ),
    "range_step": (
        lambda: Dataset.range(1, 2, 0),
        tf.errors.InvalidArgumentError,
        "range: step must be a non-zero integer. Received: 0.",
    ),
    "generator": (
        lambda: Dataset.from_generator([1], tf.int32),
        TypeError,
        "`generator` must be a Python callable.",
    ),
    "generator_twice": (
        lambda: Dataset.from_generator(list, tf.int32, output_signature=INT64),
        TypeError,
        "The `output_types` argument can not be used together with the `output_signature` "
        "argument.",
    ),
    "generator_untyped": (
        lambda: Dataset.from_generator(list),
        TypeError,
        "To specify the output signature you need to provide either the `output_signature` "
        "argument or the `output_types` argument.",
    ),
    "generator_list": (
        lambda: Dataset.from_generator(list, output_signature=[INT64]),
        TypeError,
        "`output_signature` must contain objects that are subclass of `tf.TypeSpec` but found "
        "<class 'list'> which is not.",
    ),
    "generator_type": (
        lambda: to_list(Dataset.from_generator(lambda: iter(["a"]), tf.int32)),
        tf.errors.InvalidArgumentError,
        "`generator` yielded an element that could not be converted to the expected type. The "
        "expected type was int32, but the yielded element was 'a'.",
    ),
    "generator_shape": (
        lambda: to_list(Dataset.from_generator(lambda: iter([[1, 2]]), tf.int32, [3])),
        tf.errors.InvalidArgumentError,
        "`generator` yielded an element of shape (2,) where an element of shape (3,) was expected.",
    ),
    "generator_structure": (
        lambda: to_list(Dataset.from_generator(lambda: iter([1]), (tf.int32, tf.int32))),
        tf.errors.InvalidArgumentError,
        "`generator` yielded an element that did not match the expected structure. The expected "
        "structure was (tf.int32, tf.int32), but the yielded element was 1.",
    ),
    "padding_type": (
        lambda: to_list(Dataset.range(2).map(tf.range).padded_batch(2, padding_values=0)),
        TypeError,
        "Invalid `padding_values`. `padding_values` values type tf.int32 does not match type "
        "tf.int64 of the corresponding input component.",
    ),
    "padding_rank": (
        lambda: to_list(Dataset.range(2).padded_batch(2, [2])),
        ValueError,
        "The padded shape (2,) is not compatible with the shape () of the corresponding input "
        "component.",
    ),
    "padding_small": (
        lambda: to_list(Dataset.range(4).map(tf.range).padded_batch(4, [2])),
        tf.errors.DataLossError,
        "Attempted to pad to a smaller size than the input element. The padded shape is (2,), but "
        "elements have sizes up to (3,).",
    ),
    "apply": (
        lambda: Dataset.range(1).apply(lambda _d: 1),
        TypeError,
        "`transformation_func` must return a `tf.data.Dataset` object. Got <class 'int'>.",
    ),
    "asserted_more": (
        lambda: to_list(Dataset.range(3).apply(tf.data.experimental.assert_cardinality(2))),
        tf.errors.FailedPreconditionError,
        "Input dataset was expected to contain 2 elements but contained at least 3 elements.",
    ),
    "asserted_fewer": (
        lambda: to_list(Dataset.range(3).apply(tf.data.experimental.assert_cardinality(4))),
        tf.errors.FailedPreconditionError,
        "Input dataset was expected to contain 4 elements but contained only 3 elements.",
    ),
    "asserted_infinite": (
        lambda: to_list(Dataset.range(3).apply(tf.data.experimental.assert_cardinality(-1))),
        tf.errors.FailedPreconditionError,
        "Input dataset was expected to contain an infinite number of elements but contained only 3 "
        "elements.",
    ),
    "asserted_unknown": (
        lambda: tf.data.experimental.assert_cardinality(tf.data.UNKNOWN_CARDINALITY),
        ValueError,
        "assert_cardinality: expected a number of elements or tf.data.INFINITE_CARDINALITY. "
        "Received: -2.",
    ),
    "numpy": (
        lambda: to_list(Dataset.range(3).window(2)),
        TypeError,
        "as_numpy_iterator() does not support values of type Dataset.",
    ),
    "batch_of_slices": (
        lambda: list(Dataset.from_tensors(tf.IndexedSlices([[1.0]], [0])).batch(2)),
        TypeError,
        "Elements of type IndexedSlices cannot be batched.",
    ),
    "choose_type": (
        lambda: Dataset.choose_from_datasets([Dataset.range(1)], Dataset.from_tensor_slices([0])),
        TypeError,
        "Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar `tf.int64` tensors "
        f"but are {tf.TensorSpec([], tf.int32)}.",
    ),
    "choose_range": (
        lambda: to_list(Dataset.choose_from_datasets([Dataset.range(1)], Dataset.range(1, 2))),
        tf.errors.InvalidArgumentError,
        "Selector index out of range: 1 >= 1.",
    ),
    "choose_nothing": (
        lambda: Dataset.choose_from_datasets([], Dataset.range(1)),
        ValueError,
        "Invalid `datasets`. `datasets` should not be empty.",
    ),
    "sample_weights": (
        lambda: Dataset.sample_from_datasets([Dataset.range(1)], [1.0, 2.0]),
        ValueError,
        "Invalid `weights`. `weights` should have the same length as `datasets` but got "
        "`len(weights)=2` vs. `len(datasets)=1`.",
    ),
    "sample_types": (
        lambda: (
            Dataset.sample_from_datasets(
                [Dataset.range(1), Dataset.from_tensors(1.0), Dataset.range(1)]
            ).element_spec
        ),
        TypeError,
        "Invalid `datasets`. `datasets` must have compatible element specs. Received: "
        f"{INT64}, {tf.TensorSpec([])}, {INT64}.",
    ),
    "group_size": (
        lambda: Dataset.range(1).group_by_window(abs, abs),
        ValueError,
        "Either the `window_size` argument or the `window_size_func` argument must be specified, "
        "and not both.",
    ),
    "bucket_sizes": (
        lambda: Dataset.range(1).bucket_by_sequence_length(tf.size, [3, 5], [2, 2]),
        ValueError,
        "`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but "
        "`len(bucket_batch_sizes)=2` and `len(bucket_boundaries)=2`.",
    ),
    "bucket_boundary": (
        lambda: to_list(
            Dataset.range(1, 7)
            .map(tf.range)
            .bucket_by_sequence_length(tf.size, [3, 5], [2, 2, 2], pad_to_bucket_boundary=True)
        ),
        tf.errors.InvalidArgumentError,
        "When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries), "
        "which is 5.",
    ),
    "sparse_tuple": (
        lambda: list(Dataset.range(3).enumerate().sparse_batch(2, [3])),
        TypeError,
        "sparse_batch: elements must be single tensors. Received: an element of type tuple.",
    ),
    "sparse_rank": (
        lambda: list(Dataset.range(3).map(tf.range).sparse_batch(2, [3, 4])),
        tf.errors.InvalidArgumentError,
        "Input element had shape ([0]) that is incompatible with the row shape ([3, 4]).",
    ),
    "sparse_large": (
        lambda: list(Dataset.range(6).map(tf.range).sparse_batch(6, [3])),
        tf.errors.DataLossError,
        "Input element had shape ([4]) that is larger than the row shape ([3]).",
    ),
    "class_type": (
        lambda: list(Dataset.range(1).rejection_resample(lambda _x: 1.0, [0.5, 0.5])),
        TypeError,
        f"`class_func` must return a scalar integer. Received: {tf.constant(1.0)!r}.",
    ),
    "class_range": (
        lambda: list(Dataset.range(3, 4).rejection_resample(lambda x: x, [0.5, 0.5])),
        tf.errors.InvalidArgumentError,
        "`class_func` returned 3, but `target_dist` has 2 classes.",
    ),
    "class_target": (
        lambda: Dataset.range(1).rejection_resample(lambda x: x, 0.5),
        ValueError,
        "target_dist: expected a vector. Received: shape ().",
    ),
    "class_initial": (
        lambda: Dataset.range(1).rejection_resample(lambda x: x, [0.5, 0.5], [1.0]),
        ValueError,
        "initial_dist: expected 2 numbers, the length of target_dist. Received: shape (1,).",
    ),
    "list_files": (
        lambda: Dataset.list_files(["/nowhere/*.a", "/nowhere/*.b"]),
        tf.errors.InvalidArgumentError,
        "No files matched pattern: /nowhere/*.a, /nowhere/*.b",
    ),
    "load": (
        lambda: Dataset.load("/nowhere"),
        tf.errors.NotFoundError,
        "There is no saved dataset in /nowhere: /nowhere/dataset.json does not exist.",
    ),
    "save_checkpoints": (
        lambda: Dataset.range(1).save("/nowhere", checkpoint_args={}),
        NotImplementedError,
        "save: `checkpoint_args` is not supported. Omit it.",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error_messages(name):
    assert_raises(*ERRORS[name])
