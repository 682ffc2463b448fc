"""Protocol buffers: the wire format, messages and their text format, without generated code."""
