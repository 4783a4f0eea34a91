"""Titles as they are shown: without the marks of systems that make pages of Markdown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.files.titles import shown_title


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("Ports {#ports}", "Ports"),
        ("ポート{#port}", "ポート"),
        ("Ports {#ports .new key=value}", "Ports"),
        ("Ports {: #ports }", "Ports"),
        ("Ports {ports}", "Ports"),
        ("Ports ## {: #ports }", "Ports"),
        ("C# {#c}", "C#"),
        ("Ports {/*ports*/}", "Ports"),
        ("Ports /files{/*path} in Express", "Ports /files{/*path} in Express"),
        ("`{/* ports */}` in MDX", "`{/* ports */}` in MDX"),
        ('<a id="ports"></a>Ports', "Ports"),
        ('<a name="ports">Ports</a>', "Ports"),
        ('Ports <img src="x.png"> and <span class="new">gates</span>', "Ports and gates"),
        ("Ports<br/>and <b>gates</b>", "Ports and gates"),
        ("Ports <!-- do not rename -->", "Ports"),
        ("[Ports](#ports) and `[a](b)`", "Ports and `[a](b)`"),
        ("[`npm ci`](/commands/npm-ci)", "`npm ci`"),
        ("Ports[](#ports)", "Ports"),
        ("[![build](b.svg)](https://ci.example) Wi-Fi", "build Wi-Fi"),
        (r"\[x\](y)", "[x](y)"),
        (r"The \_init\_ method", "The _init_ method"),
        (r"C\+\+ on C:\Users and `\_`", r"C++ on C:\Users and `\_`"),
        ("Ports { #ports }", "Ports"),
        ("Ports { .new #ports key='a b' }", "Ports"),
        ("{% raw %}Ports{% endraw %}", "Ports"),
        ("[](#ports)", "[](#ports)"),
        ("f[a](b c)", "f[a](b c)"),
        ("Ports", "Ports"),
        ("The <a> element", "The <a> element"),
        ("<br>: the line break", "<br>: the line break"),
        ("std::vector<int> and a < b", "std::vector<int> and a < b"),
        ("`<a href=x>` and `{#x}`", "`<a href=x>` and `{#x}`"),
        ("GET /users/{id}/mail", "GET /users/{id}/mail"),
        ("{#only}", "{#only}"),
        ("", ""),
    ],
)
def test_a_title_is_shown_without_marks_that_are_not_its_words(written: str, shown: str) -> None:
    assert shown_title(written) == shown


@given(st.text("ab {}#.:=<>/!-`[]()\n", max_size=300))
def test_a_title_never_becomes_longer_or_empty(title: str) -> None:
    shown = shown_title(title)
    assert len(shown) <= len(title)
    assert bool(shown) == bool(title)
