"""tf.debugging: assertions about values, shapes and dtypes, and watching for what is not finite."""

from typing import TYPE_CHECKING

from retrograde._api.lazy import lazily
from retrograde._api.names import HOMES

if TYPE_CHECKING:
    from retrograde.debugging.comparisons import (
        Assert,
        assert_equal,
        assert_greater,
        assert_greater_equal,
        assert_less,
        assert_less_equal,
        assert_near,
        assert_negative,
        assert_non_negative,
        assert_non_positive,
        assert_none_equal,
        assert_positive,
    )
    from retrograde.debugging.descriptions import (
        assert_integer,
        assert_proper_iterable,
        assert_rank,
        assert_rank_at_least,
        assert_rank_in,
        assert_same_float_dtype,
        assert_scalar,
        assert_shapes,
        assert_type,
        is_numeric_tensor,
    )
    from retrograde.debugging.growth import no_growth
    from retrograde.debugging.numerics import (
        assert_all_finite,
        check_numerics,
        disable_check_numerics,
        enable_check_numerics,
        nonfinite,
    )
    from retrograde.debugging.settings import (
        disable_traceback_filtering,
        enable_traceback_filtering,
        get_log_device_placement,
        is_traceback_filtering_enabled,
        record_lines,
        set_log_device_placement,
    )

__getattr__, __dir__ = lazily(__name__, HOMES[__name__])

__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_shapes",
    "assert_type",
    "check_numerics",
    "disable_check_numerics",
    "disable_traceback_filtering",
    "enable_check_numerics",
    "enable_traceback_filtering",
    "get_log_device_placement",
    "is_numeric_tensor",
    "is_traceback_filtering_enabled",
    "no_growth",
    "nonfinite",
    "record_lines",
    "set_log_device_placement",
]
