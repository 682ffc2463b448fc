"""The callbacks of a loop over batches."""

from keras.src.callbacks import CallbackList as KerasCallbackList
from keras.src.utils.python_utils import is_default


def _if_heard(*names):
    """Keras's method of the first name, called if a callback has its own method of any name."""
    method = getattr(KerasCallbackList, names[0])

    def call(self, batch, logs=None):
        for callback in self.callbacks:
            for name in names:
                if not is_default(getattr(callback, name)):
                    method(self, batch, logs)
                    return

    return call


class CallbackList(KerasCallbackList):
    """Keras's list of callbacks, called in the thread of the loop, and only if they listen.

    To read the metrics of a batch is to wait for its step. What no callback looks at is not read,
    so that a compiled step runs while Python prepares the next one.
    """

    def _configure_async_dispatch(self, callbacks):
        """Does without the threads in which Keras would call callbacks."""

    on_train_batch_begin = _if_heard("on_train_batch_begin", "on_batch_begin")
    on_train_batch_end = _if_heard("on_train_batch_end", "on_batch_end")
    on_test_batch_begin = _if_heard("on_test_batch_begin")
    on_test_batch_end = _if_heard("on_test_batch_end")
    on_predict_batch_begin = _if_heard("on_predict_batch_begin")
    on_predict_batch_end = _if_heard("on_predict_batch_end")
