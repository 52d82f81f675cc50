"""A small site on this machine: ordinary pages, a long one, a slow one, and ones that go wrong."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sift_batch.cli.demo_pdf import pdf

LONG = "".join(f"<p>Paragraph {n} of a page that is long: {'word ' * 40}</p>\n" for n in range(400))


def page(title: str, text: str) -> bytes:
    """A page as a site has it."""
    return (
        f"<!doctype html><html><head><title>{title}</title></head><body><main><h1>{title}</h1>"
        f"<p>{text} {'It says a few more words, so that there is something to read. ' * 4}</p></main></html>"
    ).encode()


class Site:
    """The site: where it is, what was asked of it; `/hold` answers once `let_go` is set."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.held, self.let_go = threading.Event(), threading.Event()
        self.port = 0

    def url(self, path: str) -> str:
        """The URL of a path."""
        return f"http://127.0.0.1:{self.port}{path}"

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of a path."""
        self.asked.append(path)
        html = {"Content-Type": "text/html; charset=utf-8"}
        match path:
            case "/robots.txt" | "/missing":
                return 404, html, page("Not found", "There is nothing here.")
            case "/moved":
                return 302, {"Location": "/one"}, b""
            case "/busy" if self.asked.count(path) == 1:
                return 429, {"Retry-After": "1"}, b""
            case "/broken":
                return 500, html, b""
            case "/login":
                return 401, {"WWW-Authenticate": "Basic"}, b""
            case "/report.pdf":
                lines = [[f"Line {n} of page {number}." for n in range(20)] for number in (1, 2, 3)]
                return 200, {"Content-Type": "application/pdf"}, pdf("Report", *lines)
            case "/data.json":
                return 200, {"Content-Type": "application/json"}, b'{"items": [{"price": 5}, {"price": 7}]}'
            case "/long":
                return 200, html, page("Long", "Begins.").replace(b"</main>", LONG.encode() + b"</main>")
            case "/empty":
                return 200, html, b"<!doctype html><title>App</title><div id=app></div><script>go()</script>"
            case "/hold":
                self.held.set()
                self.let_go.wait(20)
        return 200, html, page(path.strip("/").title(), f"This is the page at {path.strip('/')}.")


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        return  # a client that went away is what some tests are about


@contextmanager
def served() -> Iterator[Site]:
    """Serve the site on a free port of 127.0.0.1."""
    site = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer."""
            status, headers, body = site.answer(self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = _Server(("127.0.0.1", 0), Handler)
    site.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield site
    finally:
        site.let_go.set()
        server.shutdown()
        thread.join()
        server.server_close()
