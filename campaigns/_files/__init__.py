"""Creates, corrupts and reads files of every supported format."""
