"""Creates the cards of the gallery, and a page and a notebook for each example.

`examples/gallery.toml` lists the examples in order, with their titles, figures, run times and the
words that people search for. The descriptions are the docstrings of the programs. The outputs are
those that `tools/notebooks.py` recorded.
"""

import ast
import pathlib
import re

import notebooks
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
MARKER = re.compile(r"<!-- gallery:([\w ]*)-->")

CARD = """
<a class="gallery-card" href="gallery/{name}.html" markdown>
![{alt}](images/{name}.png){{loading=lazy}}
**{title}**
<span>{teaches}</span>
</a>
"""

PAGE = """# {title}

![{alt}](../images/{name}.png)

{description}

| | |
| --- | --- |
| what it teaches | {teaches} |
| also known as | {keywords} |
| run time | {seconds} s on one CPU core; a few seconds with `--small` |
| source | [`examples/{name}.py`]({repo}/blob/main/examples/{name}.py){helpers} |
| notebook | [`{name}.ipynb`]({name}.ipynb), with its outputs |

## Run it

In a clone of the repository:

```
pip install '.[keras,xla,demo]'
retrograde run examples/{name}.py
```

The figure is saved as `demo/{name}.png`. `--small` runs a short version without a plot, and
`--help` lists the options. The program imports TensorFlow, so `python examples/{name}.py` runs it
on TensorFlow. The notebook needs no other file: `pip install jupyterlab`, then
`jupyter lab {name}.ipynb`.

{output}

## Source {{ data-search-exclude }}

```python title="examples/{name}.py"
{source}
```
"""


def examples():
    """Returns the entries of the gallery, with the docstrings and sources of the programs."""
    entries = notebooks.gallery()
    for name, entry in entries.items():
        source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
        tree = ast.parse(source)
        summary, _, rest = ast.get_docstring(tree).partition("\n")
        body, teaches = re.split(r"\bShows\s", rest)
        imported = {
            node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module
        }
        entry |= {
            "name": name,
            "source": source.strip(),
            "description": f"{summary}\n{body}",
            "teaches": capitalized(" ".join(teaches.split())),
            "helpers": sorted(m for m in imported if (EXAMPLES / f"{m}.py").exists()),
            "output": output_section(notebooks.recorded(name)[0].strip()),
        }
    return entries


def output_section(text):
    """Returns a section with what a program printed, if it is recorded."""
    return f"## Output {{ data-search-exclude }}\n\n```text\n{text}\n```" if text else ""


def capitalized(text):
    return text[:1].upper() + text[1:]


def on_config(config):
    """Adds the pages to the navigation. mkdocs calls this function."""
    (gallery,) = (item["Gallery"] for item in config.nav if "Gallery" in item)
    for name, entry in examples().items():
        page = {entry["title"]: f"gallery/{name}.md"}
        if page not in gallery:  # `mkdocs serve` builds several times
            gallery.append(page)
    return config


def on_files(files, config):
    """Creates the pages. mkdocs calls this function."""
    entries = examples()
    for name, entry in entries.items():
        links = [
            f"[`{helper}.py`]({config.repo_url}/blob/main/examples/{helper}.py)"
            for helper in entry["helpers"]
        ]
        helpers = "; uses " + ", ".join(links) if links else ""
        fields = entry | {"helpers": helpers, "repo": config.repo_url}
        text = PAGE.format(**fields)
        files.append(File.generated(config, f"gallery/{name}.md", content=text))
        notebook = notebooks.notebook(name)
        files.append(File.generated(config, f"gallery/{name}.ipynb", content=notebook))
    return files


def on_page_markdown(markdown, **_):
    """Replaces `<!-- gallery: gan vae -->` by the cards of these examples, or of all."""
    return MARKER.sub(lambda marker: cards(marker[1].split()), markdown)


def cards(names):
    """Returns a grid of cards with figures."""
    entries = examples()
    grid = "".join(CARD.format(**entries[name]) for name in names or entries)
    return f'<div class="gallery" markdown>\n{grid}\n</div>'


def on_page_context(context, page, config, **_):
    """Points "edit this page" to the source of the example. mkdocs calls this function."""
    if re.fullmatch(r"gallery/\w+\.md", page.file.src_uri):
        name = page.file.name
        page.edit_url = f"{config.repo_url}/edit/main/examples/{name}.py"
    return context
