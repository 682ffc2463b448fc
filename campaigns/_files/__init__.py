"""Files of every format that is read: made, damaged and read."""
