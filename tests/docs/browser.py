"""A client for Chromium's WebDriver, with the standard library alone."""

import base64
import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

DRIVER = shutil.which("chromedriver")
BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_FLAGS = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]

# Returns the texts whose brightness differs from the background by less than the argument. A
# translucent background is mixed with the one below it. Labels on bars of charts are ignored: their
# background is another shape.
UNREADABLE = """
const numbers = color => color.match(/[\\d.]+/g).map(Number);
const luminance = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
const background = element => {
  const own = numbers(getComputedStyle(element).backgroundColor);
  const alpha = own.length > 3 ? own[3] : 1;
  if (alpha === 1 || element === document.body) return own;
  const below = background(element.parentElement);
  return [0, 1, 2].map(i => alpha * own[i] + (1 - alpha) * below[i]);
};
document.head.insertAdjacentHTML('beforeend', '<style>* { transition: none !important }</style>');
const ignored = 'title, style, script, .share';
const leaves = [...document.querySelectorAll('body *')].filter(
  e => !e.matches(ignored) && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()));
return leaves.filter(e => {
  const style = getComputedStyle(e);
  if (!e.getClientRects().length || style.visibility === 'hidden') return false;
  const ink = numbers(e instanceof SVGElement ? style.fill : style.color);
  return Math.abs(luminance(ink) - luminance(background(e))) < arguments[0];
}).map(e => e.textContent.trim());
"""


class Browser:
    """One window of a headless browser."""

    def __init__(self, address):
        self._address = address
        options = {"binary": BROWSER, "args": [*_FLAGS, "--hide-scrollbars"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = self._request("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._address += f"/session/{session['sessionId']}"

    def _request(self, method, path, body=None):
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self._address + path, data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from None

    def open(self, url):
        """Loads a page and waits until it is complete."""
        self._request("POST", "/url", {"url": url})

    def resize(self, width, height=900):
        """Sets the size of the page, like a device of this size."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        body = {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics}
        self._request("POST", "/goog/cdp/execute", body)

    def run(self, script, *args):
        """Runs the body of a JavaScript function and returns its result."""
        return self._request("POST", "/execute/sync", {"script": script, "args": list(args)})

    def run_async(self, script, *args):
        """Runs JavaScript that passes its result to the function in its last argument."""
        return self._request("POST", "/execute/async", {"script": script, "args": list(args)})

    def type(self, selector, text):
        """Types text into an element."""
        body = {"using": "css selector", "value": selector}
        element = self._request("POST", "/element", body)[_ELEMENT]
        self._request("POST", f"/element/{element}/value", {"text": text})

    def log(self):
        """Returns and clears the messages of the console."""
        return self._request("POST", "/se/log", {"type": "browser"})

    def screenshot(self, path):
        """Saves what the window shows."""
        path.write_bytes(base64.b64decode(self._request("GET", "/screenshot")))

    def quit(self):
        self._request("DELETE", "")


@contextlib.contextmanager
def browser():
    """Starts a browser and stops it at the end."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        window = _connect(f"http://127.0.0.1:{port}", process)
        try:
            yield window
        finally:
            window.quit()
    finally:
        process.terminate()
        process.wait()


def _connect(address, process):
    deadline = time.monotonic() + 60
    while True:
        try:
            return Browser(address)
        except urllib.error.URLError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
