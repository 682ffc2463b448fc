"""What the formats of image files have in common."""


class Unreadable(ValueError):
    """What is wrong with the contents of a file."""
