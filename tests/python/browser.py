"""Opens pages in Chromium and measures their layout.

    browser.py BROWSER FOLDER PAGE...

For each page and each width (400 and 1400 px, and paper) it writes a screenshot PAGE-WIDTH.png into FOLDER and prints one line of JSON: page,
width, width of the content, and elements that are wider than the window although nothing scrolls them. It speaks the DevTools
protocol over a WebSocket and needs no packages.
"""

import base64
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

WIDTHS = (400, 1400)
# A4 without margins, at 96 dots per inch
PAPER = 688
FLAGS = """--headless=shell --no-sandbox --no-zygote --single-process --in-process-gpu --hide-scrollbars --use-gl=angle
    --use-angle=swiftshader --disable-background-networking --disable-component-update --remote-debugging-port=0""".split()
MEASURE = """(() => {
    const scrolls = e => { for (; e; e = e.parentElement) { const o = getComputedStyle(e).overflowX;
        if (o === 'auto' || o === 'scroll' || o === 'hidden') return true; } return false; };
    const wide = [...document.querySelectorAll('body *')].filter(e => {
        const r = e.getBoundingClientRect();
        return r.width > 0 && r.right > innerWidth + 1 && !scrolls(e); });
    return JSON.stringify({ inner: innerWidth, content: document.documentElement.scrollWidth,
        wide: wide.slice(0, 5).map(e => e.tagName + ': ' + e.textContent.slice(0, 40)),
        ground: getComputedStyle(document.body).backgroundColor,
        height: document.documentElement.scrollHeight }); })()"""


class Page:
    """A tab of the browser."""

    def __init__(self, address):
        host, port, path = re.match(r"ws://([^:/]+):(\d+)(/.*)", address).groups()
        self.socket = socket.create_connection((host, int(port)), timeout=120)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self.stream = self.socket.makefile("rb")
        while self.stream.readline().strip():
            pass
        self.number = 0

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        head = struct.pack("!BB", 0x81, 0x80 | size) if size < 126 else struct.pack("!BBH", 0x81, 0xFE, size)
        self.socket.sendall(head + mask + bytes(b ^ mask[k % 4] for k, b in enumerate(data)))

    def receive(self):
        whole = b""
        while True:
            first, second = self.stream.read(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", self.stream.read(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", self.stream.read(8))
            whole += self.stream.read(size)
            if first & 0x80:
                return json.loads(whole)

    def call(self, method, **parameters):
        self.number += 1
        self.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def evaluate(self, expression):
        return self.call("Runtime.evaluate", expression=expression)["result"].get("value")


def look(page, path, width, folder, scheme, media="screen"):
    page.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    page.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
    for _ in range(300):
        if page.evaluate("document.readyState + location.protocol") == "completefile:":
            break
        time.sleep(0.1)
    else:
        sys.exit(f"{path} did not load")
    found = json.loads(page.evaluate(MEASURE))
    height = min(found["height"], 6000)
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    shot = page.call("Page.captureScreenshot", format="png")["data"]
    name = f"{pathlib.Path(path).name}-{scheme if media == 'screen' else media}-{width}.png"
    pathlib.Path(folder, name).write_bytes(base64.b64decode(shot))
    print(json.dumps({"page": str(path), "width": width, "scheme": scheme, "media": media, **found}), flush=True)


def main():
    browser, folder, *pages = sys.argv[1:]
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        try:
            port = None
            for line in process.stderr:
                if found := re.search(r"DevTools listening on ws://[^:]+:(\d+)/", line):
                    port = found.group(1)
                    break
            if port is None:
                sys.exit("the browser did not start")
            tabs = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=60))
            page = Page(next(t["webSocketDebuggerUrl"] for t in tabs if t["type"] == "page"))
            for path in pages:
                for width in WIDTHS:
                    look(page, path, width, folder, "light")
            look(page, pages[0], WIDTHS[1], folder, "dark")
            for path in pages:
                look(page, path, PAPER, folder, "dark", "print")
        finally:
            process.kill()
            process.wait()


main()
