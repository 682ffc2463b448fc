"""Shows what a notebook shows: `<!-- notebook: tape.profile(loss) -->` stands for its output.

The expression is evaluated after the examples above it on the page.
"""

import contextlib
import io
import linecache
import re

MARKER = re.compile(r"<!-- notebook: (.*?) -->")
EXAMPLE = re.compile(r"^(?:>>>|\.\.\.) ?(.*)$", re.MULTILINE)
FILE = "train.py"


def on_page_markdown(markdown, **_):
    """Replaces the comments by the outputs. mkdocs calls this function."""
    return MARKER.sub(lambda match: output(markdown[: match.start()], match[1]), markdown)


def output(text, expression):
    """Returns the HTML of an expression after the examples in a text, in one line."""
    source = "\n".join(EXAMPLE.findall(text)) + "\n"
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    names = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(source, FILE, "exec"), names)
    html = eval(expression, names)._repr_html_().replace("\n", " ")
    return f'<div class="notebook-output">{html}</div>'
