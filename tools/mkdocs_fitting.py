"""Fits what is wide into narrow windows: tables scroll, and pictures open in their full size."""

import re

HEADING = re.compile(r"<th\b.*?</th>", re.DOTALL)
PICTURE = re.compile(r'<img [^>]*src="([^"]+)"[^>]*>')


def on_page_content(html, **_):
    """Called by mkdocs with what a page was made into."""
    html = HEADING.sub(lambda heading: heading[0].replace("_", "_<wbr>"), html)
    html = html.replace("<table>", '<div class="table-responsive"><table>')
    html = html.replace("</table>", "</table></div>")
    return PICTURE.sub(r'<a href="\1">\g<0></a>', html)
