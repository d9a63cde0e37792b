# SPDX-License-Identifier: Apache-2.0
"""docs/conformance.md against what the published packages do with the corpus: each section, where the package is installed in the version that the
page is about."""
import importlib.util
import re

import pytest

from interop_tools import ROOT

spec = importlib.util.spec_from_file_location("conform", ROOT / "corpus/conform.py")
conform = importlib.util.module_from_spec(spec)
spec.loader.exec_module(conform)
PAGE = (ROOT / conform.PAGE).read_text()


@pytest.mark.parametrize("reader", conform.PUBLIC)
def test_the_page_says_what_the_package_does(reader):
    anchor = reader.replace(".", "")
    version = re.search(rf"^\| \[\S+ (\S+)\]\(#{re.escape(anchor)}\)", PAGE, re.M)[1]
    try:
        python = conform.interpreter(reader, None)
        result = conform.run(reader, conform.HERE, python, 10, version=version)
    except conform.Missing as error:
        pytest.skip(str(error))
    assert conform.put_into(PAGE, result) == PAGE, f"python3 corpus/conform.py --against {reader} --write {conform.PAGE}"
