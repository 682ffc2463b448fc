"""Draws a social card for each page: the image that chat programs show for a link.

The theme has a plugin for this, but it downloads its fonts. These cards use the fonts that
Matplotlib contains, so the site builds without a network.
"""

import io
import pathlib
import textwrap

import matplotlib
from mkdocs.structure.files import File
from PIL import Image, ImageDraw, ImageFont

SIZE = (1200, 630)
BACKGROUND, INK, FAINT, ACCENT = "#17384d", "#ffffff", "#b8cbd6", "#f4a259"
FONTS = pathlib.Path(matplotlib.get_data_path(), "fonts", "ttf")


def on_files(files, config):
    """Adds one image for each page. mkdocs calls this function."""
    for page in list(files.documentation_pages()):
        card = File.generated(config, card_of(page.src_uri), content=b"")
        files.append(card)
    return files


def on_page_content(html, page, config, files):
    """Draws the card when the title of the page is known. mkdocs calls this function."""
    page.social_card = card_of(page.file.src_uri)
    title = config.site_description if page.is_homepage else page.title
    files.get_file_from_path(page.social_card).content_bytes = draw(str(title), config)
    return html


def card_of(src_uri):
    """Returns the path of the card of a page."""
    return "cards/" + src_uri.removesuffix(".md") + ".png"


def draw(title, config):
    """Returns the card as the bytes of a PNG file."""
    image = Image.new("RGB", SIZE, BACKGROUND)
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, SIZE[1] - 14, *SIZE), fill=ACCENT)
    pen.text((80, 70), config.site_name, font=font("DejaVuSans-Bold", 52), fill=ACCENT)
    lines = textwrap.wrap(title.replace("`", ""), 30)[:4]
    text = "\n".join(lines)
    pen.multiline_text((80, 200), text, INK, font("DejaVuSans-Bold", 62), spacing=18)
    version = f"version {config.extra['version']}"
    pen.text((80, 540), version, font=font("DejaVuSans", 32), fill=FAINT)
    file = io.BytesIO()
    image.quantize(32).save(file, "png", optimize=True)
    return file.getvalue()


def font(name, size):
    return ImageFont.truetype(str(FONTS / f"{name}.ttf"), size)
