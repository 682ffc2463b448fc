"""Adapts content to all screens: long code wraps, images link to their full size.

Drawings in `figures/` become part of the page, so that their colors follow the color scheme.
"""

import pathlib
import re

DOCS = pathlib.Path(__file__).parents[1] / "docs"
HEADING = re.compile(r"<th\b.*?</th>", re.DOTALL)
CELL = re.compile(r"<td\b.*?</td>", re.DOTALL)
CODE = re.compile(r"<code>([^<]{25,})</code>")
SHORT = re.compile(r"<code>([^<]{1,24})</code>")
IMAGE = re.compile(r'<img [^>]*src="([^"]+)"[^>]*>')
CARD = re.compile(r'(<a class="gallery-card".*?</a>)', re.DOTALL)
DRAWING = re.compile(r'<p><img alt="([^"]*)" src="(?:\.\./)*(figures/\w+\.svg)"[^>]*></p>')


def on_page_content(html, **_):
    """Rewrites the HTML of a page. mkdocs calls this function."""
    html = HEADING.sub(lambda heading: heading[0].replace("_", "_<wbr>"), html)
    html = CODE.sub(with_breaks, html)
    html = CELL.sub(lambda cell: SHORT.sub(r'<code class="short">\1</code>', cell[0]), html)
    html = DRAWING.sub(inline, html)
    parts = CARD.split(html)  # cards are links already
    parts[::2] = [IMAGE.sub(r'<a href="\1">\g<0></a>', part) for part in parts[::2]]
    return "".join(parts)


def with_breaks(match):
    """Allows breaks between the names in long code, but not inside a name."""
    code = re.sub(r"(?<=[a-z0-9])[./(=](?=[a-z])", r"\g<0><wbr>", match[1])
    return f"<code>{code}</code>"


def inline(match):
    """Returns a drawing as inline SVG."""
    alt, path = match.groups()
    svg = (DOCS / path).read_text(encoding="utf-8").strip()
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{alt}" ', 1)
    return f'<figure class="drawing">{svg}</figure>'
