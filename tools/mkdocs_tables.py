"""Keeps wide tables within a page: their headings may break, and they scroll by themselves."""

import re

HEADING = re.compile(r"<th\b.*?</th>", re.DOTALL)


def on_page_content(html, **_):
    """Called by mkdocs with what a page was made into."""
    html = HEADING.sub(lambda heading: heading[0].replace("_", "_<wbr>"), html)
    html = html.replace("<table>", '<div class="table-responsive"><table>')
    return html.replace("</table>", "</table></div>")
