"""Opens the HTML that notebooks show for reports, light and dark, in a headless browser."""

import pytest

import retrograde as tf
from tests.docs import browser

PAGE = """<!doctype html><meta charset="utf-8">
<style>body {{ font: 14px sans-serif; color: {ink}; background: {paper} }}</style>
<body>{outputs}</body>"""
THEMES = {"light": ("#111111", "#ffffff"), "dark": ("#dddddd", "#111111")}

# Returns the words that are broken over two lines, except after a dot, an underscore or a slash.
BROKEN = """
const broken = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode;
  for (const word of node.data.matchAll(/[\\w]+/g)) {
    const range = document.createRange();
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map(r => Math.round(r.top))).size > 1)
      broken.push(word[0]);
  }
}
return broken;
"""
WIDTH = "return document.documentElement.scrollWidth - window.innerWidth"


def reports():
    """Returns the HTML of each kind of report, with a long variable name."""
    name = "encoder_block_12_multi_head_attention_query_projection/kernel"
    w = tf.Variable([[3.0, 4.0], [0.0, 0.0]], name=name)
    unused_scale_of_the_attention_scores_of_the_decoder = tf.Variable(1.0)
    with tf.GradientTape(persistent=True, lines=True) as tape:
        loss = tf.reduce_sum(tf.norm(w, axis=1)) + float(w[0, 0])
    tape.gradient(loss, w)
    return {
        "tape": tape,
        "explain": tape.explain(loss, [w, unused_scale_of_the_attention_scores_of_the_decoder]),
        "autopsy": tape.autopsy(),
        "profile": tape.profile(loss),
        "memory": tape.memory(loss),
        "graph": tape.graph(loss),
        "verify": tape.verify(loss, w),
    }


@pytest.mark.skipif(
    not (browser.DRIVER and browser.BROWSER),
    reason="there is no browser: install Debian's chromium and chromium-driver",
)
def test_reports_can_be_read_in_light_and_dark_notebooks(tmp_path):
    outputs = "<hr>".join(report._repr_html_() for report in reports().values())

    with browser.browser() as window:
        for theme, (ink, paper) in THEMES.items():
            page = tmp_path / f"{theme}.html"
            page.write_text(PAGE.format(ink=ink, paper=paper, outputs=outputs), encoding="utf-8")
            for width in (1300, 400):
                window.resize(width)
                window.open(page.as_uri())

                assert window.run(browser.UNREADABLE, 100) == []
                assert window.run(BROKEN) == []
                assert window.run(WIDTH) <= 0


def test_long_names_have_places_to_break():
    html = {name: report._repr_html_() for name, report in reports().items()}

    assert "query_<wbr>projection/<wbr>kernel" in html["tape"]
    assert "unused_<wbr>scale_<wbr>of_" in html["explain"]
    assert "overflow-wrap: anywhere" not in "".join(html.values())
