"""Registers what the packages above `core` add to tapes."""

from __future__ import annotations

from retrograde.core.hooks import FUNCTIONS, TAPE_METHODS

_DERIVATIVES = ["batch_jacobian", "derivatives", "hessian", "hvp", "jacobian", "jvp", "laplacian"]

TAPE_METHODS |= dict.fromkeys(_DERIVATIVES, "retrograde.derivatives.tape_methods")
TAPE_METHODS |= {
    "explain": "retrograde.diagnose.missing_gradients.explain",
    "autopsy": "retrograde.diagnose.nonfinite.autopsy",
    "memory": "retrograde.diagnose.memory",
    "verify": "retrograde.diagnose.verify",
    "graph": "retrograde.diagnose.graph.tape_graph",
    "profile": "retrograde.diagnose.profile",
    "__str__": "retrograde.diagnose.listing",
    "_repr_html_": "retrograde.diagnose.listing",
}
FUNCTIONS |= {
    "answer_none": "retrograde.diagnose.missing_gradients.explain",
    "per_example_gradient": "retrograde.derivatives.tape_methods",
    "bytes_from": "retrograde.derivatives.checkpointing",
    "limited_entries": "retrograde.derivatives.checkpointing",
}
