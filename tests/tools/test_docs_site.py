# SPDX-License-Identifier: Apache-2.0
"""Tests tools/docs_site.py, which makes the site of `make site`, as far as that needs no MkDocs."""
import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def site(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("docs_site", ROOT / "tools/docs_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("SITE", "REFERENCE"):
        monkeypatch.setattr(module, name, tmp_path / name)
        (tmp_path / name).mkdir()
    return module


def test_a_list_right_behind_a_paragraph_is_a_list(site):
    """Python-Markdown made one paragraph of both."""
    assert site.lists("words:\n- one\n- two\n\nmore\n") == "words:\n\n- one\n- two\n\nmore\n"


def test_what_belongs_to_an_item_stays_in_it(site):
    assert site.lists("- one\n  goes on\n  - inner\n- two\n") == "- one\n    goes on\n\n    - inner\n- two\n"
    assert site.lists("- one\n\n  more\n- two\n- three\n") == "- one\n\n    more\n\n- two\n- three\n"
    assert site.lists("1. one\n   goes on\n\nend\n  kept\n") == "1. one\n    goes on\n\nend\n  kept\n"


def test_code_is_left_alone(site):
    code = "```console\n$ printf '- a\\n'\nx\n- a\n  - b\n```\n"
    assert site.lists(code) == code
    page = pathlib.PurePath("docs/a.md")
    assert site.relink(page, "```\n[a](b.h)\n```\n`[a](b.h)`\n", set()) == "```\n[a](b.h)\n```\n`[a](b.h)`\n"


def test_links_to_sources_lead_to_the_reference_or_become_text(site):
    (site.REFERENCE / "json__writer_8h.html").touch()
    page = pathlib.PurePath("docs/a.md")
    text = "[w](../include/weighbridge/json_writer.h) [o](../include/weighbridge/open.h) [b](b.md#c) [f](schemas/) [n](https://example.org)\n"
    assert site.relink(page, text, {"docs/b.md", "docs/schemas/README.md"}) == (
        "[w](../reference/json__writer_8h.html) o [b](b.md#c) [f](schemas/README.md) [n](https://example.org)\n")


def test_a_site_that_needs_a_network_or_leads_nowhere_is_refused(site):
    (site.SITE / "a.html").write_text('<a href="b.html#c">b</a><script src="https://example.org/x.js"></script><a href="https://example.org">e</a>')
    (site.SITE / "a.css").write_text("@font-face { src: url(https://example.org/font.woff2) }")
    assert list(site.wrong_in_site()) == ["a.html leads to b.html#c, which is not there", "a.html loads https://example.org/x.js",
                                          "a.css loads from a network"]
    (site.SITE / "b.html").touch()
    (site.SITE / "a.html").write_text('<a href="b.html#c">b</a><!-- <img src="//example.org"> --><a href="https://example.org">e</a>')
    (site.SITE / "a.css").write_text("p { background: url(a.svg) }")
    assert list(site.wrong_in_site()) == []
