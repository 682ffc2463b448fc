"""What a tape can tell: what it recorded, what it holds, and where a value went wrong."""
