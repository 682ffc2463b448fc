"""The backend-specific base class of layers."""

from __future__ import annotations

from typing import Any


class RetrogradeLayer:
    """A mixin of every Keras layer that defines its children in a `tf.train.Checkpoint`."""

    def _trackable_children(self) -> dict[str, Any]:
        """Returns the trackable attributes by name.

        Keras's lists of layers, metrics and seed generators are left out: they contain the same
        objects again, in an order that may change. Building a `Sequential` adds its input layer
        to `_layers`, but not to `layers`.
        """
        from keras.src.models.sequential import Sequential

        from retrograde.train._object_graph import is_trackable

        lists = ("_layers", "_metrics", "_seed_generators")
        parts = {name: part for name, part in vars(self).items() if name not in lists}
        if isinstance(self, Sequential):
            parts["layers"] = self.layers
        return {name: part for name, part in parts.items() if is_trackable(part)}

    def __saved_module__(self) -> Any:
        """Returns a `tf.Module` that `tf.saved_model.save` saves in place of a model.

        Its default signature calls the model.
        """
        from keras.src.export.export_utils import get_input_signature

        from retrograde.keras_backend.export import RetrogradeExportArchive

        archive = RetrogradeExportArchive()
        archive.track_and_add_endpoint("serve", self, get_input_signature(self))
        return archive.module()
