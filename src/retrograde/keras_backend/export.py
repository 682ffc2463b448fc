"""Exporting models, which needs a compiler's format that retrograde does not write."""


class RetrogradeExportArchive:
    """Refuses to export: Keras files (`model.save`) are the way to keep a model."""

    def track(self, resource):
        raise NotImplementedError(_MESSAGE)

    def add_endpoint(self, name, fn, input_signature=None, **kwargs):
        raise NotImplementedError(_MESSAGE)


_MESSAGE = (
    "Exporting a SavedModel is not possible with the retrograde backend. Save the model with "
    "model.save('name.keras'), and load it with Keras on TensorFlow or JAX to export it there."
)
