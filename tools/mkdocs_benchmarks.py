"""Draws bar charts from the tables of docs/benchmarks.md, which `benchmarks/run.py` writes.

`<!-- benchmarks: small_mlp -->` stands for a chart of the ratios to retrograde in eager mode, and
`<!-- compiled benchmarks: rnn_step -->` for a chart of compiled functions.
"""

import math
import pathlib
import re

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "benchmarks.md"
MARKER = re.compile(r"<!-- (compiled )?benchmarks:([\w ]*)-->")
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "MB": 1e6, "GB": 1e9}
EAGER = {"tensorflow": "TensorFlow", "torch": "PyTorch", "jax": "JAX"}
COMPILED = {
    "retrograde_function": "tf.function",
    "tensorflow_function": "TensorFlow tf.function",
    "tensorflow_xla": "TensorFlow XLA",
    "jax_jit": "jax.jit",
    "torch_compile": "torch.compile",
}
COLORS = ("#2a6f97", "#c05a10", "#5b8c3a", "#8a6bb0", "#6b7a83")


def tables():
    """Returns the rows of the tables of the page: workload -> column -> value."""
    rows, columns = {}, []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip(" `") for cell in line.strip("|").split("|")]
        if line.startswith("## Method"):
            break
        if not line.startswith("|") or set(line) <= set("|-: "):
            continue
        if cells[0] in ("workload", "compiled", "Keras", "models"):
            columns = cells
        elif columns:
            values = zip(columns[1:], cells[1:], strict=True)
            parsed = {name: number(text) for name, text in values if name != "ratio"}
            rows[cells[0]] = parsed | rows.get(cells[0], {})
    return rows


def number(text):
    """Returns the number in a cell, in seconds or bytes, or `None`."""
    match = re.fullmatch(r"([\d.]+) (\w+)", text)
    return float(match[1]) * UNITS[match[2]] if match and match[2] in UNITS else None


def on_page_markdown(markdown, **_):
    """Replaces the comments by charts. mkdocs calls this function."""
    return MARKER.sub(chart, markdown)


def chart(match):
    """Returns a chart of ratios on a logarithmic axis."""
    base, peers = ("retrograde_xla", COMPILED) if match[1] else ("retrograde", EAGER)
    rows = tables()
    groups = {
        name: {
            label: rows[name][peer] / rows[name][base]
            for peer, label in peers.items()
            if rows[name].get(peer)
        }
        for name in match[2].split()
    }
    reference = "retrograde, jit_compile=True" if match[1] else "retrograde"
    return f'<figure class="drawing">{draw(groups, list(peers.values()), reference)}</figure>'


def draw(groups, labels, reference):
    """Returns the chart as one line of SVG: Markdown would read indented lines as code."""
    values = [ratio for group in groups.values() for ratio in group.values()]
    low, high = min(0.4, *values) * 0.9, max(2.0, *values) * 1.6
    scale = 600 / math.log(high / low)

    def x(ratio):
        return 150 + scale * math.log(ratio / low)

    parts, y = [], 34
    for name, group in groups.items():
        middle = y + 7 * len(group)
        parts.append(f'<text x="142" y="{middle + 4}" text-anchor="end" class="code">{name}</text>')
        for label, ratio in group.items():
            left, right = sorted((x(1.0), x(ratio)))
            color = COLORS[labels.index(label)]
            parts.append(
                f'<rect x="{left:.1f}" y="{y}" width="{right - left:.1f}" height="11" '
                f'fill="{color}"><title>{label}: {ratio:.3g}</title></rect>'
                f'<text x="{right + 5:.1f}" y="{y + 10}" class="small">{ratio:.3g}</text>'
            )
            y += 14
        y += 12
    axis = f'<line x1="{x(1):.1f}" x2="{x(1):.1f}" y1="24" y2="{y}" class="axis"/>'
    caption = (
        f'<text x="{x(1):.1f}" y="16" text-anchor="middle" class="small">1 = {reference}; '
        "to the right: slower</text>"
    )
    legend, left = [], 150
    for label in labels:
        color = COLORS[labels.index(label)]
        legend.append(f'<rect x="{left}" y="{y + 10}" width="11" height="11" fill="{color}"/>')
        legend.append(f'<text x="{left + 16}" y="{y + 20}">{label}</text>')
        left += 34 + 7 * len(label)
    title = "Time relative to retrograde; longer bars to the right are slower"
    opening = f'<svg class="chart" role="img" aria-label="{title}" viewBox="0 0 800 {y + 30}">'
    return "".join([opening, caption, *parts, axis, *legend, "</svg>"])
