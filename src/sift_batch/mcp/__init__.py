"""How does an agent use this? A server of the Model Context Protocol over standard input and output.

One more client of the HTTP API: each tool is a request or two to a service, which runs elsewhere or in
this very process. Nothing is fetched, stored or decided here. Read `_tools` (what there is), then `_calls`
(which requests a tool makes), then `_serve`. Needs the extra `mcp`; importing this package loads nothing.
"""
