"""A headless Chromium under test: started once, one fresh profile for each page, spoken to over two pipes.

The browser's own debugging protocol is used as it is, so tests run on Trio beside the service they look at
and can hold it in any state. Whatever a page asks of the network, says on its console or runs into is kept.
"""

import base64
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import trio

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--lang=en-GB",
    "--remote-debugging-pipe",
)
CHROMIUM = shutil.which("chromium")

# The browser reads its commands from descriptor 3 and writes to descriptor 4.
_EXEC = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Chromium:
    """A browser that runs. What was read of a message that is not whole yet outlives a connection."""

    def __init__(self, to_it: int, from_it: int) -> None:
        self.to_it, self.from_it = to_it, from_it
        self.rest = b""
        self.calls = 0


def _pipe() -> tuple[int, int]:
    """A pipe whose ends keep clear of the browser's two descriptors."""
    ends = os.pipe()
    clear = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return clear[0], clear[1]


@contextmanager
def started() -> Iterator[Chromium]:
    """Run a browser with an empty profile round a block."""
    assert CHROMIUM is not None
    theirs_in, to_it = _pipe()
    from_it, theirs_out = _pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [sys.executable, "-S", "-c", _EXEC, str(theirs_in), str(theirs_out)]
        process = subprocess.Popen(
            [*command, CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "TZ": "UTC", "HOME": profile},
        )
        os.close(theirs_in)
        os.close(theirs_out)
        for end in (to_it, from_it):
            # For good: a stream on a copy of an end gives it back as it was, perhaps while the next page
            # reads from it, and a read that blocks would stop the loop with all its deadlines.
            os.set_blocking(end, False)
        try:
            yield Chromium(to_it, from_it)
        finally:
            with suppress(OSError):
                os.write(to_it, b'{"id":0,"method":"Browser.close"}\0')
            os.close(to_it)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(5)
            os.close(from_it)


class _Wire:
    """Sends commands and takes answers and events."""

    def __init__(self, browser: Chromium) -> None:
        self._browser = browser
        self._to = trio.lowlevel.FdStream(os.dup(browser.to_it))
        self._from = trio.lowlevel.FdStream(os.dup(browser.from_it))
        self._answers: dict[int, Any] = {}
        self._asked: dict[int, trio.Event] = {}
        self.on_event: Callable[[str, dict[str, Any]], None] = lambda name, data: None
        self.session = ""

    async def send(self, method: str, *, root: bool = False, **params: Any) -> Any:
        """Send a command and return its result."""
        self._browser.calls += 1
        number = self._browser.calls
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self.session and not root:
            message["sessionId"] = self.session
        arrived = self._asked[number] = trio.Event()
        with trio.fail_after(20):
            await self._to.send_all(json.dumps(message).encode() + b"\0")
            await arrived.wait()
        del self._asked[number]
        answer = self._answers.pop(number)
        assert "error" not in answer, (method, answer)
        return answer["result"]

    async def listen(self) -> None:
        """Take what comes, for ever."""
        while True:
            data = await self._from.receive_some(2**20)
            assert data, "the browser is gone"
            *whole, self._browser.rest = (self._browser.rest + data).split(b"\0")
            for raw in whole:
                message = json.loads(raw)
                if message.get("id") in self._asked:
                    self._answers[message["id"]] = message
                    self._asked[message["id"]].set()
                elif "method" in message and message.get("sessionId") == self.session:
                    self.on_event(message["method"], message["params"])

    async def aclose(self) -> None:
        """Let go of the pipes; the browser goes on."""
        await self._to.aclose()
        await self._from.aclose()


class Page:
    """A page in a tab of its own."""

    def __init__(self, wire: _Wire, origin: str) -> None:
        self._wire, self.origin = wire, origin
        self.requests: list[dict[str, Any]] = []
        """What it asked of the network: url, method, headers."""
        self.statuses: list[tuple[str, int]] = []
        self.complaints: list[str] = []
        """Errors on its console, exceptions nobody caught, and whatever its policy blocked."""
        wire.on_event = self._heard

    def _heard(self, name: str, data: dict[str, Any]) -> None:
        if name == "Network.requestWillBeSent":
            self.requests.append(data["request"])
        elif name == "Network.responseReceived":
            self.statuses.append((data["response"]["url"], data["response"]["status"]))
        elif name == "Runtime.exceptionThrown":
            details = data["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif name == "Runtime.consoleAPICalled" and data["type"] in ("error", "warning", "assert"):
            self.complaints.append(f"console: {data['args']}")
        elif name == "Log.entryAdded" and data["entry"]["level"] in ("error", "warning"):
            # A refusal of the service is no fault of the page, and a browser logs each.
            if data["entry"]["source"] != "network":
                self.complaints.append(f"{data['entry']['source']}: {data['entry']['text']}")
        elif name == "Audits.issueAdded":
            self.complaints.append(f"issue: {json.dumps(data['issue'])}")

    # ---- what a user does

    async def visit(self, path: str = "/") -> None:
        """Open a path of the service as one types it."""
        await self._wire.send("Page.navigate", url=self.origin + path)
        await self.until("document.readyState === 'complete'")

    async def reload(self) -> None:
        """Load the page again."""
        await self.run("window.seen = true")
        await self._wire.send("Page.reload")
        await self.until("!window.seen && document.readyState === 'complete'")

    async def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key: `Tab`, `Enter`, `Escape`, ` `."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}
        text = {"Enter": "\r", " ": " "}.get(key, "")
        event = {"key": key, "code": key.strip() or "Space", "windowsVirtualKeyCode": codes[key]}
        event["modifiers"] = 8 if shift else 0
        await self._wire.send("Input.dispatchKeyEvent", type="keyDown", text=text, **event)
        await self._wire.send("Input.dispatchKeyEvent", type="keyUp", **event)

    async def type(self, text: str) -> None:
        """Type a text where the focus is."""
        await self._wire.send("Input.insertText", text=text)

    async def click(self, name: str, role: str = "button") -> None:
        """Click what a screen reader calls so."""
        with trio.fail_after(20):
            while not (found := await self.nodes(role, name)):  # noqa: ASYNC110 - the page tells nobody
                await trio.sleep(0.03)
        node = found[0]["backendDOMNodeId"]
        await self._wire.send("DOM.scrollIntoViewIfNeeded", backendNodeId=node)
        quad = (await self._wire.send("DOM.getContentQuads", backendNodeId=node))["quads"][0]
        x, y = sum(quad[0::2]) / 4, sum(quad[1::2]) / 4
        for kind in ("mousePressed", "mouseReleased"):
            await self._wire.send(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    # ---- what a user sees

    async def run(self, script: str) -> Any:
        """Return what a script in the page gives."""
        result = await self._wire.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def until(self, script: str) -> None:
        """Return once a script in the page gives something true; twenty seconds at most."""
        with trio.move_on_after(20) as waited:
            while not await self.run(f"Boolean({script})"):  # noqa: ASYNC110 - the page tells nobody
                await trio.sleep(0.03)
        assert not waited.cancelled_caught, f"not seen: {script}\n{await self.text()}\n{self.complaints}"

    async def text(self) -> str:
        """The text that is on the screen."""
        return str(await self.run("document.body.innerText"))

    async def see(self, *texts: str) -> None:
        """Return once all these are on the screen."""
        for text in texts:
            await self.until(f"document.body.innerText.includes({json.dumps(text)})")

    async def not_see(self, text: str) -> None:
        """Return once this is not on the screen."""
        await self.until(f"!document.body.innerText.includes({json.dumps(text)})")

    async def nodes(self, role: str = "", name: str | None = None) -> list[dict[str, Any]]:
        """What a screen reader finds, of a role and with a name."""
        tree = (await self._wire.send("Accessibility.getFullAXTree"))["nodes"]
        return [
            node
            for node in tree
            if not node.get("ignored")
            and (not role or role_of(node) == role)
            and (name is None or name_of(node) == name)
        ]

    async def focus_is_on(self, name: str) -> None:
        """Return once what has this name has the focus; a screen reader hears of it a little later."""
        found = ""
        with trio.move_on_after(20):
            while (found := await self.focused()) != name:  # noqa: ASYNC110 - it tells nobody
                await trio.sleep(0.05)
        assert found == name

    async def focused(self) -> str:
        """The name of what has the focus."""
        found = [node for node in await self.nodes() if property_of(node, "focused")]
        inner = [node for node in found if role_of(node) != "RootWebArea"]
        return name_of(inner[0]) if inner else ""

    async def alert(self) -> str:
        """What the live regions of the page say now."""
        regions = "[...document.querySelectorAll('[role=status], [role=alert]')]"
        return str(
            await self.run(f"{regions}.filter(e => e.checkVisibility()).map(e => e.innerText).join(' ')")
        )

    # ---- how it is shown

    async def show(self, *, width: int = 1100, dark: bool = False, scale: float = 1) -> None:
        """Give the window a width, a scheme and a zoom."""
        await self._wire.send(
            "Emulation.setDeviceMetricsOverride",
            width=round(width / scale),
            height=round(900 / scale),
            deviceScaleFactor=scale,
            mobile=False,
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        features.append({"name": "prefers-reduced-motion", "value": "reduce"})
        await self._wire.send("Emulation.setEmulatedMedia", features=features)

    async def offline(self, is_offline: bool) -> None:
        """Take the network away, or give it back."""
        await self._wire.send(
            "Network.emulateNetworkConditions",
            offline=is_offline,
            latency=0,
            downloadThroughput=-1,
            uploadThroughput=-1,
        )

    async def picture(self, path: Path) -> None:
        """Write a screenshot of the whole page."""
        shot = await self._wire.send("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        await trio.Path(path).write_bytes(base64.b64decode(shot["data"]))


def role_of(node: dict[str, Any]) -> str:
    """The role of a node."""
    return str(node.get("role", {}).get("value", ""))


def name_of(node: dict[str, Any]) -> str:
    """The name of a node."""
    return str(node.get("name", {}).get("value", ""))


def property_of(node: dict[str, Any], name: str) -> Any:
    """A property of a node."""
    return next(
        (item["value"].get("value") for item in node.get("properties", []) if item["name"] == name), None
    )


@asynccontextmanager
async def page_of(browser: Chromium, origin: str) -> AsyncIterator[Page]:
    """Open a blank tab with a profile of its own round a block."""
    wire = _Wire(browser)
    async with aclosing(wire), trio.open_nursery() as tasks:
        tasks.start_soon(wire.listen)
        context = (await wire.send("Target.createBrowserContext"))["browserContextId"]
        target = await wire.send("Target.createTarget", url="about:blank", browserContextId=context)
        attached = await wire.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        wire.session = attached["sessionId"]
        page = Page(wire, origin)
        for domain in ("Page", "Network", "Runtime", "Log", "DOM", "Audits"):
            await wire.send(f"{domain}.enable")
        await page.show()
        try:
            yield page
        finally:
            with trio.move_on_after(5, shield=True):
                await wire.send("Target.disposeBrowserContext", root=True, browserContextId=context)
            tasks.cancel_scope.cancel()
