"""Registers the methods and functions that packages above `core` add to it."""

from __future__ import annotations

from retrograde.core.hooks import FUNCTIONS, TAPE_METHODS, VARIABLE_METHODS

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
_NOTES = ["_keep", "_keep_nonfinite", "_miss", "_note", "_skip", "create", "escape", "store"]
TAPE_METHODS |= dict.fromkeys(_NOTES, "retrograde.diagnose.tape_notes")
_AT_INDICES = """
    sparse_read gather_nd batch_scatter_update scatter_add scatter_sub scatter_mul scatter_div
    scatter_min scatter_max scatter_update scatter_nd_add scatter_nd_sub scatter_nd_update
    scatter_nd_max scatter_nd_min _assign_part
"""
VARIABLE_METHODS |= dict.fromkeys(_AT_INDICES.split(), "retrograde.ops.variable_scatter")
FUNCTIONS |= {
    "apply_on_device": "retrograde.devices.placement",
    "place": "retrograde.devices.placement",
    "current_device": "retrograde.devices.scopes",
    "device_name": "retrograde.devices.scopes",
    "device_scope": "retrograde.devices.scopes",
    "report_none": "retrograde.diagnose.missing_gradients.explain",
    "per_example_gradient": "retrograde.derivatives.tape_methods",
    "set_options": "retrograde.diagnose.tape_options",
    "advice_for": "retrograde.diagnose.missing_gradients.query",
    "fused_gradient": "retrograde.fusion.fused_gradient",
}
