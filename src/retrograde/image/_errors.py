"""What the formats of image files have in common."""


class DecodeError(ValueError):
    """What is wrong with the contents of a file."""
