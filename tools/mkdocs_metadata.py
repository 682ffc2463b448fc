"""Adds the version and descriptions to the pages, and removes white space from their HTML."""

import pathlib
import re
import tomllib

# Lowers the search rank of pages that few people look for.
BOOSTS = {
    ("decisions/", "releasing", "benchmarks", "parity", "reliability", "adding_a"): 0.2,
    ("api/",): 0.5,
}
ROOT = pathlib.Path(__file__).parents[1]


def on_config(config):
    """Sets the version and the footer. mkdocs calls this function."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    config.extra["version"] = project["version"]
    config.extra["generator"] = False
    config.copyright = (
        f"retrograde {project['version']} · "
        f'<a href="{config.repo_url}/blob/main/CHANGELOG.md">Changelog</a> · '
        f'<a href="{config.repo_url}/blob/main/LICENSE">{project["license"]}</a>'
    )
    return config


def on_page_markdown(markdown, page, **_):
    """Sets descriptions and ranks in the search. mkdocs calls this function."""
    for prefixes, boost in BOOSTS.items():
        if page.file.src_uri.startswith(prefixes):
            page.meta.setdefault("search", {"boost": boost})
    paragraph = re.search(r"^[A-Z`][^\n|]+(?:\n[^\n]+)*", markdown, re.MULTILINE)
    if paragraph and "description" not in page.meta:
        text = re.sub(r"\[([^]]*)\]\([^)]*\)|[`*]", r"\1", paragraph[0])
        page.meta["description"] = " ".join(text.split())
    return markdown


def on_post_page(output, **_):
    """Removes indentation and empty lines outside of code. mkdocs calls this function."""
    parts = re.split(r"(<pre\b.*?</pre>|<script\b.*?</script>)", output, flags=re.DOTALL)
    parts[::2] = [re.sub(r"\s*\n\s*", "\n", part) for part in parts[::2]]
    return "".join(parts)
