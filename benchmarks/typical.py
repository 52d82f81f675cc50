"""What does a typical article page look like to a reader? One of 80 KB, made of nothing but a number.

A news template: a cookie banner, a menu of eighty links, 1,600 words of story under four headings, forty
cards of other stories, thirty comments, and scripts and styles. No two numbers give the same story.
"""

_WORDS = tuple(
    """
    the boat crosses a sound where wind and tide have their own plans and people on either side wait for news
    of the harbour council with coffee in hand while gulls count the fish that nobody sold this morning
    """.split()  # noqa: SIM905 - a text, not a list
)

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Story {number} | Harbour Post</title>
<meta name="author" content="Ida Solberg"><style>{styles}</style><script>{script}</script></head>
<body><div class="cookie-banner"><p>{notice}</p><button>Accept</button></div>
<header><nav><ul>{menu}</ul></nav></header>
<main><article><h1>Story {number} of the harbour</h1><p class="byline">By Ida Solberg</p>
<div class="body">{story}</div></article>
<section class="related">{cards}</section>
<section class="comments"><ol>{comments}</ol></section></main>
<footer><ul>{menu}</ul></footer></body></html>
"""
_PART = "<h2>Part {part} of story {number}</h2>"
_PARAGRAPH = '<p>{first} <a href="/more/{place}">{linked}</a> {last}</p>'
_CARD = '<div class="card"><a href="/{place}"><img src="/{place}.jpg"><h3>{title}</h3></a><p>{text}</p></div>'
_COMMENT = '<li class="comment"><b>reader{place}</b><p>{text}</p><a href="#">Reply</a></li>'
_ITEM = '<li class="item"><a href="/section/{place}">{text}</a></li>'


def typical_page(number: int) -> str:
    """Return the source of the page."""
    return _PAGE.format(
        number=number,
        styles="".join(f".c{place}{{margin:{place}px;color:#{place:06x};}}" for place in range(500)),
        script="".join(f"window.q.push(['event',{place},'{_text(3, place)}']);" for place in range(500)),
        notice=_text(40, 5),
        menu="".join(_ITEM.format(place=place, text=_text(2, place)) for place in range(80)),
        story="".join(_paragraph(number, place) for place in range(18)),
        cards="".join(
            _CARD.format(place=place, title=_text(8, place), text=_text(18, place + 1)) for place in range(40)
        ),
        comments="".join(_COMMENT.format(place=place, text=_text(30, place + 2)) for place in range(30)),
    )


def told(number: int) -> str:
    """Return words that only a reading of this page has."""
    return f"Part 2 of story {number}"


def _paragraph(number: int, place: int) -> str:
    heading = _PART.format(part=place // 5, number=number) if place % 5 == 0 else ""
    return heading + _PARAGRAPH.format(
        place=place, first=_text(70, place + number), linked=_text(4, place), last=_text(14, place + 3)
    )


def _text(length: int, seed: int) -> str:
    chosen = (_WORDS[(seed * 7 + place * (seed % 5 + 3)) % len(_WORDS)] for place in range(length))
    return " ".join(chosen).capitalize() + "."
