"""The machine: tensors, variables, recorders, the tape. It defines no operation."""
