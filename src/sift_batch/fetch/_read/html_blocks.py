"""How does a tree of a page become blocks of text?

Headings, paragraphs, lists, tables, quotes and code in the order of the page. The same walk gives
Markdown and plain text, so that both have the same blocks. What of the page is main content has been
decided before: what is in `dropped` is passed over. Next: `html_tables` for tables, `clean` for the
text's last rules.
"""

from typing import TYPE_CHECKING

from .html_code import code_text, fenced, language
from .html_escape import escaped_lines
from .html_inline import Inline
from .html_names import BLOCKS, FENCED, HEADINGS, LISTS, SILENT
from .html_pieces import Block, close_list, in_line, without_repeats
from .html_tables import code_cells, is_layout, layout_cells, table_lines

if TYPE_CHECKING:
    from collections.abc import Container

    from lxml.html import HtmlElement

    from .html_links import Links


class Blocks:
    """Renders the blocks of one page. `marks` tells whether it is Markdown or plain text."""

    def __init__(self, links: "Links", dropped: "Container[HtmlElement]", *, marks: bool) -> None:
        self._marks = marks
        self._dropped = dropped
        self._inline = Inline(links, dropped, marks=marks)
        self._plain = Inline(links, dropped, marks=False)
        self._holders: set[HtmlElement] = set()
        self._href: list[str] = []  # the links round blocks, innermost last

    def render(self, roots: "list[HtmlElement]") -> str:
        """Return the blocks of `roots`, in their order, as one text."""
        blocks: list[Block] = []
        for root in roots:
            self._find_holders(root)
            blocks += self._element(root)
        return "\n\n".join(block.text for block in without_repeats(blocks))

    def _find_holders(self, root: "HtmlElement") -> None:
        """Note the inline elements that hold blocks: they are read as containers."""
        for element in root.iter(*BLOCKS):
            above = element.getparent()
            while above is not None and above.tag not in BLOCKS and above not in self._holders:
                self._holders.add(above)
                above = above.getparent()

    def inside(self, element: "HtmlElement") -> list[Block]:
        """Return the blocks in an element."""
        blocks: list[Block] = []
        run: list[str] = [self._inline.words(element.text)]
        for child in element:
            tag = child.tag
            if not isinstance(tag, str) or child in self._dropped or tag in SILENT:
                pass
            elif tag in ("code", "tt") and child.find(".//br") is not None:
                # Code of several lines whose author knew no `pre`: the source's own line ends show nothing.
                self._flush(run, blocks)
                for end in child.iter("br"):
                    end.tail = (end.tail or "").removeprefix("\n")
                blocks += self._code(child)
            elif tag in BLOCKS or child in self._holders:
                self._flush(run, blocks)
                blocks += self._element(child)
            else:
                run.append(self._inline.element(child))
            run.append(self._inline.words(child.tail))
        self._flush(run, blocks)
        return blocks

    def _flush(self, run: list[str], blocks: list[Block]) -> None:
        raw = "".join(run)
        run.clear()
        if not raw or raw.isspace():
            return
        if self._href:
            raw = self._inline.linked(raw, self._href[-1])
        for text in self._inline.tidy(raw).split("\n\n"):
            text = text.strip("\n")
            if text:
                blocks.append(Block("text", escaped_lines(text) if self._marks else text))

    def _element(self, element: "HtmlElement") -> list[Block]:
        tag = element.tag
        if element in self._dropped or tag in SILENT:
            return []
        if tag in HEADINGS:
            return self._heading(element, HEADINGS[tag])
        if tag in FENCED:
            return self._code(element)
        if tag in LISTS:
            return self._list(element)
        if tag == "table":
            return self._table(element)
        if tag == "dl":
            return self._definitions(element)
        if tag == "blockquote":
            return self._quote(element)
        if tag == "hr":
            return [Block("rule", "---")] if self._marks else []
        if tag == "a" and element.get("href"):
            self._href.append(element.get("href"))
            blocks = self.inside(element)
            self._href.pop()
            return blocks
        if tag == "div" and element.get("role") == "heading":
            level = element.get("aria-level") or "2"
            return self._heading(element, int(level) if level in "123456" and len(level) == 1 else 2)
        return self.inside(element)

    def _heading(self, element: "HtmlElement", level: int) -> list[Block]:
        raw = self._inline.of(element)
        if self._href:
            raw = self._inline.linked(raw, self._href[-1])
        text = self._inline.tidy(raw).replace("\n", " ")
        if text.startswith("**") and text.endswith("**") and text.count("**") == 2:
            text = text[2:-2].strip()
        if not text:
            return []
        return [Block("heading", f"{'#' * level} {text}" if self._marks else text)]

    def _code(self, element: "HtmlElement") -> list[Block]:
        text = code_text(element, self._dropped)
        if not text:
            return self.inside(element) if element.find(".//img") is not None else []
        return [Block("code", fenced(text, language(element)) if self._marks else text)]

    def _quote(self, element: "HtmlElement") -> list[Block]:
        blocks = self.inside(element)
        if len(blocks) == 1 and blocks[0].kind in ("table", "code"):
            # The quote is there for its indentation only.
            return blocks
        text = "\n\n".join(block.text for block in blocks)
        if not text or not self._marks:
            return [Block("quote", text)] if text else []
        return [Block("quote", "\n".join(f"> {line}".rstrip() for line in text.split("\n")))]

    def _list(self, element: "HtmlElement") -> list[Block]:
        blocks: list[Block] = []
        items: list[str] = []
        mark = "- "
        step = -1 if element.get("reversed") is not None else 1
        number = _whole(element.get("start"), 1 if step > 0 else len(element.findall("li")))
        self._flush([self._inline.words(element.text)], blocks)
        for child in element:
            if child.getprevious() is not None and (stray := child.getprevious().tail) and stray.strip():
                close_list(items, blocks)
                self._flush([self._inline.words(stray)], blocks)
            if not isinstance(child.tag, str) or child in self._dropped or child.tag in SILENT:
                continue
            inner = self._element(child) if child.tag != "li" else self.inside(child)
            if not inner:
                continue
            if child.tag != "li" and inner[0].kind == "list":
                # A list right in a list: nested below the item before, or there for its indentation only.
                if items:
                    items[-1] += "\n" + self._indented(inner.pop(0).text, mark)
                if inner:
                    close_list(items, blocks)
                    blocks += inner
                continue
            if inner[0].kind not in ("text", "list", "quote"):
                # A heading or code at the start: the list is how the page is laid out, and no list.
                close_list(items, blocks)
                blocks += inner
                continue
            number = _whole(child.get("value"), number)
            mark = f"{number}. " if element.tag == "ol" else "- "
            number += step
            items.append(self._item(inner, mark))
        close_list(items, blocks)
        return blocks

    def _item(self, inner: list[Block], mark: str) -> str:
        text = inner[0].text
        for block in inner[1:]:
            text += ("\n" if block.kind == "list" else "\n\n") + block.text
        if not self._marks:
            return text
        return mark + self._indented(text, mark).lstrip(" ")

    def _indented(self, text: str, mark: str) -> str:
        if not self._marks:
            return text
        pad = " " * len(mark)
        return "\n".join(pad + line if line else "" for line in text.split("\n"))

    def _definitions(self, element: "HtmlElement") -> list[Block]:
        pairs: list[tuple[str, list[Block]]] = []
        for child in _entries(element, self._dropped):
            if child.tag == "dt":
                pairs.append(("dt", self._signature(child) or self.inside(child)))
            else:
                pairs.append(("dd", self._element(child) if child.tag != "dd" else self.inside(child)))
        short = all(len(inner) <= 1 and all(block.kind == "text" for block in inner) for _tag, inner in pairs)
        blocks: list[Block] = []
        lines: list[str] = []
        for tag, inner in pairs:
            if short and inner:
                if tag == "dt" and lines and lines[-1].startswith(": "):
                    blocks.append(Block("text", "\n".join(lines)))
                    lines = []
                text = inner[0].text
                lines.append(text if tag == "dt" or not self._marks else ": " + text.replace("\n", "\n  "))
            elif tag == "dt":
                blocks += self._term(inner)
            else:
                blocks += inner
        if lines:
            blocks.append(Block("text", "\n".join(lines)))
        return blocks

    def _signature(self, element: "HtmlElement") -> list[Block]:
        """Return a term that is a piece of an interface as code; [] for other terms."""
        classes = (element.get("class") or "").split()
        if "sig" not in classes and not element.get("id", "").startswith(("method.", "fn.")):
            return []
        text = self._plain.line(element)
        return [Block("text", f"`{text}`" if self._marks and "`" not in text else text)] if text else []

    def _term(self, inner: list[Block]) -> list[Block]:
        if len(inner) != 1 or inner[0].kind != "text" or not self._marks:
            return inner
        text = inner[0].text
        if any(mark in text for mark in ("**", "`", "\n", "*")):
            return inner
        return [Block("text", f"**{text}**")]

    def _table(self, element: "HtmlElement") -> list[Block]:
        if cells := code_cells(element):
            text = "\n".join(code_text(cell, self._dropped) for cell in cells)
            return [Block("code", fenced(text, language(cells[0])) if self._marks else text)] if text else []
        blocks: list[Block] = []
        for caption in element.iterchildren("caption"):
            blocks += self._element(caption)
        if is_layout(element, self._dropped):
            for cell in layout_cells(element, self._dropped):
                blocks += self.inside(cell)
            return blocks
        lines = table_lines(element, self._cell, self._dropped, marks=self._marks)
        if lines:
            blocks.append(Block("table", "\n".join(lines)))
        return blocks

    def _cell(self, element: "HtmlElement") -> str:
        parts = [
            block.text if block.kind != "code" else in_line(block.text, marks=self._marks)
            for block in self.inside(element)
        ]
        text = " ".join(" ".join(parts).split())
        # At the start of a cell nothing is taken for a heading or a fence.
        return text[1:] if text.startswith(("\\#", "\\-", "\\=")) else text


def _entries(element: "HtmlElement", dropped: "Container[HtmlElement]") -> "list[HtmlElement]":
    """Return the terms and definitions of a list; it may wrap them in `div`."""
    found: list[HtmlElement] = []
    for child in element:
        if not isinstance(child.tag, str) or child in dropped or child.tag in SILENT:
            continue
        if child.tag == "div" and (child.find("dt") is not None or child.find("dd") is not None):
            found += [entry for entry in child if isinstance(entry.tag, str) and entry not in dropped]
        else:
            found.append(child)
    return found


def _whole(text: str | None, otherwise: int) -> int:
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else otherwise
