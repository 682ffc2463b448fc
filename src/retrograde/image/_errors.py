"""The error that all image decoders raise."""


class DecodeError(ValueError):
    """Reports why the contents of an image file cannot be decoded."""
