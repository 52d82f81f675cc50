"""What may anybody read without a key? The dashboard, the documentation, the description, agents' page."""

import re

import pytest
from api_rig import serving

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-ancestors 'none'"
)
OPEN = {
    "/": "text/html; charset=utf-8",
    "/?dashboard.js": "text/javascript; charset=utf-8",
    "/?dashboard.css": "text/css; charset=utf-8",
    "/docs": "text/html; charset=utf-8",
    "/docs?docs.css": "text/css; charset=utf-8",
    "/openapi.json": "application/json",
    "/llms.txt": "text/plain; charset=utf-8",
}


@pytest.mark.parametrize("path", OPEN)
async def test_an_open_path_is_the_same_for_everybody(path):
    """Without a key, with one, and with a wrong one, an open path gives the same bytes and headers."""
    async with serving() as api:
        replies = [await client.get(path) for client in (api.nobody, api.ann, api.eve)]
        replies.append(await api.nobody.get(path, Authorization="Bearer " + "x" * 40))
    assert {reply.status for reply in replies} == {200}
    assert len({reply.body for reply in replies}) == 1
    assert len({tuple(reply.raw_headers) for reply in replies}) == 1
    assert replies[0].headers["content-type"] == OPEN[path]
    assert replies[0].headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["/", "/docs"])
async def test_a_page_may_load_and_run_what_is_its_own(path):
    """The two pages have the policy that lets them use this service's files, and nothing else."""
    async with serving() as api:
        reply = await api.nobody.get(path)
    policies = [value for name, value in reply.raw_headers if name == b"content-security-policy"]
    assert policies == [PAGE_POLICY.encode()]


@pytest.mark.parametrize("path", ["/?dashboard.js", "/openapi.json", "/llms.txt"])
async def test_a_file_of_a_page_may_run_nothing_by_itself(path):
    """Opened by itself, what is no page is under the policy of every other answer."""
    async with serving() as api:
        reply = await api.nobody.get(path)
    assert reply.headers["content-security-policy"].endswith("sandbox")


@pytest.mark.parametrize("path", ["/", "/docs"])
async def test_what_a_page_loads_is_open_and_there(path):
    """Every file that a page names is one of the open paths, and nothing comes from elsewhere."""
    async with serving() as api:
        page = (await api.nobody.get(path)).body.decode()
        named = re.findall(r'(?:src|href)="([^"#][^"]*)"', page)
        loaded = [name for name in named if "?" in name]
        for name in loaded:
            assert name in OPEN
    assert loaded
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script>", page)


async def test_an_unknown_query_of_a_page_gives_the_page():
    """A query that names no file changes nothing, whatever it says."""
    async with serving() as api:
        plain = await api.nobody.get("/")
        odd = await api.nobody.get("/?../../key")
    assert (odd.status, odd.body) == (200, plain.body)


async def test_an_open_path_is_only_read():
    """Another method than GET and HEAD is refused, with or without a key."""
    async with serving() as api:
        for client in (api.nobody, api.ann):
            problem = await client.post("/", {})
            assert problem.problem(405, "method_not_allowed")
            assert problem.headers["allow"] == "GET, HEAD"
