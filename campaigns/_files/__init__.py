"""Creates, damages and reads files of every supported format."""
