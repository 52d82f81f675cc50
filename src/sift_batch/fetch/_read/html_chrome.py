"""What on a page is furniture: navigation, notices, buttons, adverts, and what is not shown?

Told by tags, roles, styles and the names that sites give to such parts. A name alone proves little, so
whoever asks weighs it with what else is known. Next: `html_main`.
"""

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from .html_names import HEADINGS

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_ROLES_TEXT: Final = """
    navigation banner contentinfo search dialog alertdialog menu menubar toolbar tooltip complementary
    doc-pagebreak
    """
_ROLES: Final = frozenset(_ROLES_TEXT.split())
_TAGS: Final = frozenset({"nav", "aside", "footer"})
# An aside that belongs to the text around it.
_NOTES: Final = re.compile(
    r"(?:^|[\s_-])(?:note|notes|tip|hint|warning|caution|danger|important|info|admonition|callout|alert|"
    r"notecard|example|definition|footnotes?)(?=$|[\s_-])",
    re.IGNORECASE,
)
_NAMES: Final = re.compile(
    r"(?:^|[\s_-])(?:"
    r"cookies?(?:-?(?:banner|notice|bar|consent|policy|law|popup|message))?|consent|gdpr|"
    r"share|shar(?:e|ing)[_-]?\w*|social\w*|sharedaddy|addthis\w*|addtoany\w*|"
    r"newsletter\w*|subscri(?:be|ption)\w*|sign-?up\w*|paywall\w*|"
    r"bread[_-]?crumbs?|side-?bar\w*|nav|navigation|navbar|navbox|menu|submenu|topbar|navfooter|navheader|"
    r"related\w*|recommend\w*|recirc\w*|more-(?:from|on|stories|news|articles)|most-\w+|popular\w*|trending|"
    r"promo\w*|advert\w*|ads?|ad-\w+|sponsor\w*|outbrain|taboola\w*|teasers?|"
    r"footer|site-?header|masthead|"
    r"modal|popup|overlay|lightbox|tooltip|"
    r"pagination|pager|next-?prev|post-nav\w*|prev-next|"
    r"skip-?(?:link|to)\w*|screen-?reader-?text|visually-?hidden|sr-only|noprint|print-?only|"
    r"author-?(?:bio|box|info|card|profile)|about-author|byline|"
    r"(?:post-?|message-?|comment-?)?(?:buttons|actions|controls)|(?:post-?|user-?)?signature|"
    r"votes?|vote-?\w+|likes?|reactions?|(?:sort|filter)(?:s|ing|-?by|-?bar)?|facets?|"
    r"log-?in(?:-?\w+)?|copyright|(?:reply|comment)-?form|"
    r"tags?|tag-?list|post-?tags|entry-?meta|post-?meta|"
    r"widgets?|toolbar|toc|table-of-contents|edit-?(?:link|this|section)|mw-editsection|jump-?links?"
    r")(?=$|[\s_-])",
    re.IGNORECASE,
)
# What writers of documentation call the sections of a text.
_SECTIONS_TEXT: Final = "section level1 level2 level3 level4 sect1 sect2 sect3"
_SECTIONS: Final = frozenset(_SECTIONS_TEXT.split())
_MOST_IN_HEADING: Final = 20  # elements; more are no heading to look into
_SMALL_FORM: Final = 200
_TYPED: Final = frozenset({"text", "search", "email", "password", "tel", "url"})
_WORD: Final = re.compile(r"[^\W\d_]")
_COMMENTS: Final = re.compile(
    r"(?:^|[\s_-])(?:comments?|commentlist|disqus\w*|respond)(?=$|[\s_-])", re.IGNORECASE
)
# What may be furniture by its name. A cell, a heading or a table row of that name is none.
_NAMED_TEXT: Final = "a aside details div dl figure footer form header nav ol p section span table ul"
_NAMED: Final = frozenset(_NAMED_TEXT.split())


def is_hidden(element: "HtmlElement") -> bool:
    """Tell whether the page does not show an element, as far as the element itself says."""
    if element.get("hidden") is not None or element.get("aria-hidden") == "true":
        return True
    style = element.get("style")
    if not style:
        return False
    style = style[:500].replace(" ", "").lower()
    return "display:none" in style or "visibility:hidden" in style


def is_navigation(element: "HtmlElement") -> bool:
    """Tell whether the page itself says that an element is a part of the site and none of the text."""
    return element.tag == "nav" or element.get("role") in _ROLES


def is_furniture(element: "HtmlElement") -> bool:
    """Tell whether an element looks like a part of the site and none of the text."""
    tag = element.tag
    if element.get("role") in _ROLES:
        return True
    inline = tag in ("a", "span")
    if inline and _in_a_sentence(element):
        return False
    names = _names(element) if tag in _NAMED else ""
    if tag in _TAGS:
        return not (tag == "aside" and _NOTES.search(names))
    if not names or _NAMES.search(names) is None:
        return False
    return not (inline and _says_heading(element))


def _in_a_sentence(element: "HtmlElement") -> bool:
    """Tell whether words stand right beside an element, so that it is a part of what they say."""
    before = element.getprevious()
    above = element.getparent()
    left = above.text if before is None and above is not None else before.tail if before is not None else ""
    return any(_WORD.search(beside or "") for beside in (left, element.tail))


def _says_heading(element: "HtmlElement") -> bool:
    """Tell whether an element says what the heading round it says: a link back to the contents, say."""
    above = element.getparent()
    if above is not None and above.tag in ("a", "span") and not _holds_many(above):
        above = above.getparent()
    if above is None or above.tag not in HEADINGS or _holds_many(above):
        return False
    return 2 * len("".join(element.itertext()).strip()) > len("".join(above.itertext()).strip())


def _holds_many(element: "HtmlElement") -> bool:
    return next(islice(element, _MOST_IN_HEADING, None), None) is not None


def is_small_form(element: "HtmlElement", text: int) -> bool:
    """Tell whether an element of so much text is a form that is there to be filled in, not to be read."""
    if element.tag != "form" or text > _SMALL_FORM:
        return False
    fields = [*element.iter("textarea", "select")]
    fields += [field for field in element.iter("input") if (field.get("type") or "text") in _TYPED]
    return bool(fields) and next(element.iter("pre", "table", *HEADINGS), None) is None


def is_comments(element: "HtmlElement") -> bool:
    """Tell whether an element holds what readers wrote below a text."""
    return element.tag in _NAMED and _COMMENTS.search(_names(element)) is not None


def _names(element: "HtmlElement") -> str:
    name = element.get("id") or ""
    if name and _is_topic(element, name):
        name = ""
    return f"{element.get('class') or ''} {name}"[:500].strip()


def _is_topic(element: "HtmlElement", name: str) -> bool:
    """Tell whether the id of an element is the topic of a section of a text: "tags", "copyright"."""
    if element.tag not in ("section", "div"):
        return False
    if not _SECTIONS.isdisjoint((element.get("class") or "").split()):
        return True
    heading = next(element.iterchildren(*HEADINGS), None)
    return heading is not None and any(link.get("href") == f"#{name}" for link in heading.iter("a"))
