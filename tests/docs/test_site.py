"""Opens the built site in a headless browser: wide and narrow, light and dark, and searches it.

Debian's packages `chromium` and `chromium-driver` have the browser. Without it, the test is
skipped.
"""

import functools
import http.server
import os
import pathlib
import subprocess
import sys
import threading
import urllib.parse

import pytest

from tests.docs import browser, questions

ROOT = pathlib.Path(__file__).parents[2]

LINKS_AND_IDS = """
return [[...document.querySelectorAll('a[href]')].map(a => a.href),
        [...document.querySelectorAll('[id]')].map(e => e.id)]
"""
WIDTH = "return document.documentElement.scrollWidth - window.innerWidth"
SET_SCHEME = "document.body.setAttribute('data-md-color-scheme', arguments[0])"
SEARCH = """
const [query, done] = arguments;
const input = document.querySelector('[data-md-component=search-query]');
const meta = document.querySelector('.md-search-result__meta');
const type = text => {
  input.value = text;
  input.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}));
};
const until = (ready, then) => ready() ? then() : setTimeout(() => until(ready, then), 20);
document.querySelector('#__search').checked = true;
input.focus();
type('');
until(() => meta.textContent.includes('Type to start'), () => {
  type(query);
  until(() => !meta.textContent.includes('Type to start'), () => {
    const first = document.querySelector('.md-search-result__list li');
    done(first ? [...first.querySelectorAll('a')].slice(0, 2).map(a => a.href) : []);
  });
});
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, *args):
        pass


def build(folder):
    """Builds the site into a folder."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def problems_of_pages(window, base, pages):
    """Opens every page, and returns errors, overflowing pages and broken links."""
    problems, links, ids = [], {}, {}
    for page in pages:
        window.resize(1300)
        window.open(base + page)
        found, names = window.run(LINKS_AND_IDS)
        ids[base + page] = set(names)
        for link in found:
            links.setdefault(link, page)
        for width in (1300, 400):
            window.resize(width)
            if window.run(WIDTH) > 0:
                problems.append(f"{page} is wider than {width} pixels")
        for scheme in ("default", "slate"):
            window.run(SET_SCHEME, scheme)
            for text in sorted(set(window.run(browser.UNREADABLE, 60)))[:3]:
                problems.append(f"{page}: {text!r} is hard to read in the scheme {scheme}")
        problems += [
            f"{page}: {entry['message']}"
            for entry in window.log()
            if entry["level"] in ("SEVERE", "WARNING")
        ]
    return problems + broken_links(base, links, ids)


def broken_links(base, links, ids):
    """Returns the links to pages, files and headings of the site that do not exist."""
    broken = []
    for link, page in links.items():
        if not link.startswith(base):
            if urllib.parse.urlsplit(link).scheme not in ("https", "javascript"):
                broken.append(f"{page}: {link} is not an https link")
            continue
        target, _, fragment = link.partition("#")
        target = target.partition("?")[0]
        target = target + "index.html" if target.endswith("/") else target
        if target not in ids:
            broken += [f"{page}: {link} is missing"] if not exists(base, target) else []
        elif fragment and urllib.parse.unquote(fragment) not in ids[target]:
            broken.append(f"{page}: {link} has no such heading")
    return broken


def exists(base, target):
    path = urllib.parse.unquote(target.removeprefix(base))
    return (exists.folder / path).is_file()


def wrong_answers(window, base, pages_of_questions):
    """Returns the questions whose first search result is another page."""
    window.resize(1300)
    window.open(base + "index.html")
    wrong = []
    for question, page in pages_of_questions.items():
        # The first result has links to a page and to the section of it that fits best.
        found = [urllib.parse.urlsplit(link) for link in window.run_async(SEARCH, question)]
        sections = [f"{link.path.lstrip('/')}#{link.fragment}" for link in found]
        if page not in sections and not any(s.startswith(f"{page}#") for s in sections[:1]):
            wrong.append(f"{question!r} finds {sections[:1]}, not {page}")
    return wrong


@pytest.mark.skipif(
    not (browser.DRIVER and browser.BROWSER),
    reason="there is no browser: install Debian's chromium and chromium-driver",
)
def test_the_site_works_in_a_browser(tmp_path):
    build(tmp_path)
    check(tmp_path)


def check(folder):
    """Raises an `AssertionError` if a page, a link or an answer of the search is wrong."""
    exists.folder = folder
    pages = sorted(
        str(p.relative_to(folder)) for p in folder.rglob("*.html") if p.name != "404.html"
    )
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}/"
        try:
            with browser.browser() as window:
                assert len(pages) > 80
                assert wrong_answers(window, base, questions.WORDS) == []
                assert len(wrong_answers(window, base, questions.FORUM)) <= 2
                assert problems_of_pages(window, base, pages) == []
        finally:
            server.shutdown()
