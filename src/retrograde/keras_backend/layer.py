"""What layers have of this backend."""

from __future__ import annotations

from typing import Any


class RetrogradeLayer:
    """Mixed into every Keras layer: says what is saved of it in a `tf.train.Checkpoint`."""

    def _trackable_children(self) -> dict[str, Any]:
        """What its attributes hold, by their names.

        The lists that Keras keeps of layers, metrics and seeds would name them a second time, by
        an order that may change: a `Sequential` that is built has its input among them. That is
        not among its `layers`.
        """
        from keras.src.models.sequential import Sequential

        from retrograde.train._objects import is_trackable

        lists = ("_layers", "_metrics", "_seed_generators")
        parts = {name: part for name, part in vars(self).items() if name not in lists}
        if isinstance(self, Sequential):
            parts["layers"] = self.layers
        return {name: part for name, part in parts.items() if is_trackable(part)}
