"""Every primitive: kernel, vjp rules and batch rule side by side."""
