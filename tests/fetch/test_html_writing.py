"""How the finer parts of a page are written: signs, formulas, code of highlighters, odd lists."""

import pytest

from sift_batch.fetch._read import html

URL = "https://site.example/docs/page.html?v=1"


def full(body: str) -> str:
    """Return a body as Markdown."""
    return html.full(f"<!doctype html><html><body>{body}</body></html>", URL)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("a *word* of **two**", r"a \*word\* of \*\*two\*\*"),
        ("2*3*4", r"2\*3\*4"),
        ("*args, **kwargs", "*args, **kwargs"),
        ("price*, note", "price*, note"),
        ("snake_case_name and _private", "snake_case_name and _private"),
        ("an _old_ habit, __init__", r"an \_old\_ habit, \_\_init\_\_"),
        ("one ` only", "one ` only"),
        ("`two` of them", r"\`two\` of them"),
        ("about ~ 5, ~~gone~~", r"about ~ 5, \~~gone\~~"),
        ("a[0] and [1], [x] (y)", "a[0] and [1], [x] (y)"),
        ("[x](y)", r"\[x](y)"),
        ("a | b", "a | b"),
        ("#tag and # 1", "#tag and # 1"),
        ("# 1", r"\# 1"),
        ("1. one", "1. one"),
        ("- one", "- one"),
        ("a<br>---", "a\n\\---"),
        ("a<br>===", "a\n\\==="),
        ("a | b<br>---|---", "a | b\n\\---|---"),
        ("-5 degrees -- or so", "-5 degrees -- or so"),
    ],
)
def test_words_never_become_marks(words: str, expected: str) -> None:
    """Signs that would be read as marks are escaped, and those that would not are left alone."""
    assert full(f"<p>{words}</p>") == expected


def test_nothing_is_escaped_in_code_and_plain_text() -> None:
    """Code, and the text without markup, have the signs of the page."""
    assert full("<p><code>*a* _b_</code></p><pre>*a*\n---</pre>") == "`*a* _b_`\n\n```\n*a*\n---\n```"
    assert html.text("<p>*a* [x](y) _b_</p><p># c</p>", URL) == "*a* [x](y) _b_\n\n# c"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p>10<sup>6</sup>, e<sup>-x</sup>, <i>n</i><sup>2</sup>, 4<sup>th</sup></p>",
         "10^6, e^-x, *n*^2, 4th"),
        ("<p>H<sub>2</sub>O, a<sub>i</sub>, x<sub>max</sub></p>", "H2O, a_i, x_max"),
        ("<p>said<sup><a href='#n1'>1</a></sup></p>", "said[1](https://site.example/docs/page.html?v=1#n1)"),
        ("<math><mi>x</mi><mo>=</mo><mfrac><mn>1</mn><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow></mfrac></math>",
         "x = 1/(a+b)"),
        ("<math><msqrt><msup><mi>a</mi><mn>2</mn></msup></msqrt></math>", "√(a^2)"),
        ("<p>so <math><mi>E</mi><annotation encoding='application/x-tex'>E = mc^2</annotation></math></p>",
         "so $E = mc^2$"),
        ("<p><ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</rt></ruby>です</p>", "漢字(かんじ)です"),
        ("<p dir=rtl>مرحبا <bdi>abc</bdi></p>", "مرحبا abc"),
        ("<p><abbr title='x'>HTML</abbr> <mark>m</mark> <u>u</u></p>", "HTML m u"),
    ],
)  # fmt: skip
def test_formulas_and_readings(body: str, expected: str) -> None:
    """Raised and lowered letters, formulas and readings keep on one line what they mean on the page."""
    assert full(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<ol reversed><li>a<li>b</ol>", "2. a\n1. b"),
        ("<ol><li>a<li value=7>b<li>c</ol>", "1. a\n7. b\n8. c"),
        ("<ol><li>a<p>b</p><pre>c\n d</pre><li>e<ul><li>f<ol start=5><li>g</ol></ul></ol>",
         "1. a\n\n   b\n\n   ```\n   c\n    d\n   ```\n2. e\n   - f\n     5. g"),
        ("<ul><ul><li>a<li>b</ul></ul>", "- a\n- b"),
        ("<ol><li>a</li><ul><li>b</ul><li>c</ol>", "1. a\n   - b\n2. c"),
        ("<dl><dt>a<dt>b<dd>c<dd>d</dl>", "a\nb\n: c\n: d"),
        ("<figure><img src=/a.png alt=A><figcaption>The <b>lid</b></figcaption></figure>",
         "![A](https://site.example/a.png)\n\nThe **lid**"),
        ("<details><summary>More</summary><p>Inside</p></details>", "More\n\nInside"),
        ("<table><tr><th>r<td>1<tr><td><td><tr><th>s<td>2</table>", "| r | 1 |\n| --- | --- |\n| s | 2 |"),
        ("<a href=/y><h3>T</h3><p>x</p></a>", "### [T](https://site.example/y)\n\n[x](https://site.example/y)"),
        ("<p>a\u00a0b\u202fc</p>", "a b c"),
        ("<p>See <a href='#z'>link</a></p>", "See [link](https://site.example/docs/page.html?v=1#z)"),
        ("<h2>A <a href='#a'>link</a></h2><p>x</p>", "## A\n\nx"),
        ("<h2>A<span>[<a href='/w?action=edit'>edit</a>]</span></h2><p>x</p>", "## A\n\nx"),
        ("<table><tr><td rowspan=2><img src=/w.png alt='(!)'><th>Warning<tr><td>Hot.</table>",
         "![(!)](https://site.example/w.png)\n\nWarning\n\nHot."),
        ("<svg><svg><text>axis</text><p>the end", "axis\n\nthe end"),
    ],
)  # fmt: skip
def test_lists_tables_and_links(body: str, expected: str) -> None:
    """Numbers, nesting, terms that were never closed, captions and links round blocks are kept."""
    assert full(body) == expected


ROW = "<tr><td class=blob-num data-line-number={n}></td><td class=blob-code>{code}</td></tr>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<table>" + ROW.format(n=1, code="if a:") + ROW.format(n=2, code="    b") + "</table>",
         "```\nif a:\n    b\n```"),
        ("<table><tr><td class=gutter>1<br>2<td><p><code>a</code></p><p><code>&nbsp;b</code></p></table>",
         "```\na\n b\n```"),
        ("<table class=highlighttable><tr><td class=linenos><pre>1\n2</pre><td><pre>a\nb</pre></table>",
         "```\na\nb\n```"),
        ("<table><tr><td>1<td>Ann<tr><td>2<td>Bo</table>", "| 1 | Ann |\n| --- | --- |\n| 2 | Bo |"),
        ("<p>Run <code>a<br>&nbsp;b</code> twice</p>", "Run\n\n```\na\n b\n```\n\ntwice"),
        ("<div class=highlighter-rouge><pre>x</pre></div>", "```\nx\n```"),
        ("<div class='language-ruby highlighter-rouge'><pre>x</pre></div>", "```ruby\nx\n```"),
    ],
)  # fmt: skip
def test_code_of_highlighters(body: str, expected: str) -> None:
    """Code in tables comes out as code without its numbers; a numbered table of data stays a table."""
    assert full(body) == expected
