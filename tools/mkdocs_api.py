"""Completes the API pages: members of `tf` by group, full names, links to source and TensorFlow.

A page of `tf` lists what it documents in a comment. `<!-- names: toplevel.creation -->` stands for
the names of `tf` that this module defines, and `<!-- names: rest -->` for the names that no other
page documents. `<!-- index -->` stands for a table of all names.
"""

import ast
import functools
import pathlib
import re

import retrograde
from retrograde._api import missing

DOCS = pathlib.Path(__file__).parents[1] / "docs"
PACKAGE = pathlib.Path(retrograde.__file__).parent
TENSORFLOW = "https://www.tensorflow.org/api_docs/python/"
NAMES = re.compile(r"<!-- names:([\w. ]*)-->")
HEADING = re.compile(
    r'<h[2-6] id="retrograde\.(?P<path>[\w.]+)" class="doc doc-heading">'
    r'(?P<before>.*?<span class="doc doc-object-name[^"]*">)(?P<name>\w+)</span>'
    r"(?P<after>.*?</h[2-6]>)",
    re.DOTALL,
)


@functools.cache
def origins(stub):
    """Maps the names that a stub exports to the modules that define them, and their names there."""
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    return {
        alias.asname: (node.module, alias.name)
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def exports(stub):
    """Returns the names that a stub exports, with the modules that define them."""
    return {name: module for name, (module, _) in origins(stub).items()}


def stub_of(module):
    """Returns the stub of a public namespace, or `None`."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    stubs = [path / "__init__.pyi", path.with_suffix(".pyi")]
    return next((stub for stub in stubs if stub.exists()), None)


@functools.cache
def locations():
    """Maps the names of `tf` to the namespaces that document them: `retrograde` or another."""
    result = {}
    for name, module in exports(PACKAGE / "__init__.pyi").items():
        if module == "retrograde" or name.startswith("__"):
            continue  # a namespace
        public = ".".join(module.split(".")[:2])
        stub = stub_of(public) if public != "retrograde.keras" else None
        result[name] = public if stub and name in exports(stub) else "retrograde"
    result["GradientTape"] = "retrograde.autodiff"
    return {n: m for n, m in result.items() if exports(PACKAGE / "__init__.pyi")[n] != KERAS}


KERAS = "retrograde.keras"


@functools.cache
def groups():
    """Maps the modules that the pages of `tf` name to the names that they define."""
    defined = exports(PACKAGE / "__init__.pyi")
    here = [name for name, namespace in locations().items() if namespace == "retrograde"]
    markers = [NAMES.findall(p.read_text(encoding="utf-8")) for p in (DOCS / "api").glob("*.md")]
    modules = {module for page in markers for marker in page for module in marker.split()}
    by_module = {
        module: [n for n in here if f"{defined[n]}.".startswith(f"retrograde.{module}.")]
        for module in modules
    }
    claimed = {name for names in by_module.values() for name in names}
    by_module["rest"] = [name for name in here if name not in claimed]
    return by_module


def members(match):
    """Returns the directive for the names of the modules in a comment."""
    names = sorted(name for module in match[1].split() for name in groups()[module])
    if not names:
        raise ValueError(f"no names of tf for {match[0]}")
    return f"::: retrograde\n    options:\n      members: [{', '.join(names)}]"


def table():
    """Returns a table of the names of `tf`, with links and summaries."""
    rows = ["| name | summary |", "| --- | --- |"]
    for name, namespace in sorted(locations().items(), key=lambda item: item[0].lower()):
        rows.append(f"| [`tf.{name}`][{namespace}.{name}] | {summary(name)} |")
    return "\n".join(rows)


def summary(name):
    """Returns the first line of the docstring of a name of `tf`."""
    value = getattr(retrograde, name)
    if not callable(value):
        return "dtype" if type(value).__name__ == "DType" else ""
    return ((value.__doc__ or "").strip().splitlines() or [""])[0].replace("|", "\\|")


def on_page_markdown(markdown, page, **_):
    """Replaces the comments of the API pages. mkdocs calls this function."""
    if not page.file.src_uri.startswith("api/"):
        return markdown
    markdown = NAMES.sub(members, markdown)
    return markdown.replace("<!-- index -->", table()) if "<!-- index -->" in markdown else markdown


def on_page_content(html, page, config, **_):
    """Writes full names and links into the headings. mkdocs calls this function."""
    if not page.file.src_uri.startswith("api/"):
        return html
    return HEADING.sub(lambda match: heading(match, config.repo_url), html)


def heading(match, repository):
    """Returns a heading with the full name, and links to its source and to TensorFlow's page."""
    path, name = match["path"], match["name"]
    owner = path.rpartition(".")[0]
    prefix = f"tf.{owner}." if owner else "tf."
    if path.startswith("diagnose."):  # reports have no public module
        prefix = "".join(f"{part}." for part in owner.split(".") if part[0].isupper())
    full = f'<span class="api-prefix">{prefix}</span>{name}</span>'
    opening = match[0][: match[0].index(">") + 1]
    url = tensorflow_url(f"tf.{path}")
    link = f'<a class="api-peer" href="{url}">TensorFlow</a>' if url else ""
    source = source_of(path)
    if source:
        link = f'<a class="api-peer" href="{repository}/blob/main/src/{source}">source</a>{link}'
    aliases = "" if owner != "math" or name not in locations() else f"tf.{name}"
    also = f'<span class="api-alias">{aliases}</span>' if aliases else ""
    return f"{opening}{match['before']}{full}{also}{link}{match['after']}"


def tensorflow_url(path):
    """Returns the address of a name, or of a method, in TensorFlow's documentation."""
    if missing.is_tensorflow_name(path):
        return TENSORFLOW + path.replace(".", "/")
    owner, _, name = path.rpartition(".")
    if missing.is_tensorflow_name(owner) and owner.rpartition(".")[2][0].isupper():
        return f"{TENSORFLOW}{owner.replace('.', '/')}#{name}"
    return None


def source_of(path):
    """Returns the file and line of a function, a class or a method, or `None`."""
    parts = path.split(".")
    for i in reversed(range(len(parts))):
        owner = ".".join(["retrograde", *parts[:i]])
        stub = stub_of(owner)
        module, name = origins(stub).get(parts[i], (None, None)) if stub else (owner, parts[i])
        file = module and PACKAGE.parent.joinpath(*module.split(".")).with_suffix(".py")
        if file and file.exists():
            line = lines_of(file).get(".".join([name, *parts[i + 1 :]]))
            return line and f"{file.relative_to(PACKAGE.parent).as_posix()}#L{line}"
    return None


@functools.cache
def lines_of(file):
    """Maps the functions, classes and methods of a file to their lines."""
    lines = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            lines[node.name] = node.lineno
            methods = node.body if isinstance(node, ast.ClassDef) else []
            for method in methods:
                if isinstance(method, ast.FunctionDef):
                    lines[f"{node.name}.{method.name}"] = method.lineno
    return lines
