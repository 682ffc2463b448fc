"""Rejects exporting models: retrograde does not write export formats."""


class RetrogradeExportArchive:
    """Raises an error in every method. Use `model.save` instead."""

    def track(self, resource):
        raise NotImplementedError(_MESSAGE)

    def add_endpoint(self, name, fn, input_signature=None, **kwargs):
        raise NotImplementedError(_MESSAGE)

    def track_and_add_endpoint(self, name, resource, input_signature, **kwargs):
        raise NotImplementedError(_MESSAGE)

    def write_out(self, filepath, options=None, verbose=True):
        raise NotImplementedError(_MESSAGE)


_MESSAGE = (
    "`export_saved_model` only currently supports the tensorflow, jax and torch backends. Save the "
    "model with model.save('name.keras'), and load it with Keras on one of these to export it."
)
