"""What on a page is furniture: navigation, notices, buttons, adverts, and what is not shown?

Told by tags, roles, styles and the names that sites give to such parts. A name alone proves little, so
whoever asks weighs it with what else is known. Next: `html_main`.
"""

import re
from typing import TYPE_CHECKING, Final

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
    r"tags?|tag-?list|post-?tags|entry-?meta|post-?meta|"
    r"widgets?|toolbar|toc|table-of-contents|edit-?(?:link|this|section)|mw-editsection|jump-?links?"
    r")(?=$|[\s_-])",
    re.IGNORECASE,
)
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
    names = _names(element) if tag in _NAMED else ""
    if tag in _TAGS:
        return not (tag == "aside" and _NOTES.search(names))
    return bool(names) and _NAMES.search(names) is not None


def is_comments(element: "HtmlElement") -> bool:
    """Tell whether an element holds what readers wrote below a text."""
    return element.tag in _NAMED and _COMMENTS.search(_names(element)) is not None


def _names(element: "HtmlElement") -> str:
    return f"{element.get('class') or ''} {element.get('id') or ''}"[:500].strip()
