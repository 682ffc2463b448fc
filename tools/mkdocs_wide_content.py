"""Adapts wide content to narrow screens: tables scroll, and images link to their full size."""

import re

HEADING = re.compile(r"<th\b.*?</th>", re.DOTALL)
IMAGE = re.compile(r'<img [^>]*src="([^"]+)"[^>]*>')


def on_page_content(html, **_):
    """Rewrites the HTML of a page. mkdocs calls this function."""
    html = HEADING.sub(lambda heading: heading[0].replace("_", "_<wbr>"), html)
    html = html.replace("<table>", '<div class="table-responsive"><table>')
    html = html.replace("</table>", "</table></div>")
    return IMAGE.sub(r'<a href="\1">\g<0></a>', html)
