"""Calls the callbacks of a loop over batches."""

from keras.src.callbacks import CallbackList as KerasCallbackList
from keras.src.utils.python_utils import is_default


def _if_overridden(*names):
    """Returns Keras's method `names[0]`, skipped if no callback overrides any of `names`."""
    method = getattr(KerasCallbackList, names[0])

    def call(self, batch, logs=None):
        for callback in self.callbacks:
            for name in names:
                if not is_default(getattr(callback, name)):
                    method(self, batch, logs)
                    return

    return call


class CallbackList(KerasCallbackList):
    """Keras's callback list without threads, which skips hooks that no callback overrides.

    Reading the metrics of a batch waits for its step. Metrics that no callback reads are not
    read, so a compiled step runs while Python prepares the next one.
    """

    def _configure_async_dispatch(self, callbacks):
        """Disables the threads in which Keras would call callbacks."""

    on_train_batch_begin = _if_overridden("on_train_batch_begin", "on_batch_begin")
    on_train_batch_end = _if_overridden("on_train_batch_end", "on_batch_end")
    on_test_batch_begin = _if_overridden("on_test_batch_begin")
    on_test_batch_end = _if_overridden("on_test_batch_end")
    on_predict_batch_begin = _if_overridden("on_predict_batch_begin")
    on_predict_batch_end = _if_overridden("on_predict_batch_end")
