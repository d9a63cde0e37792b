# SPDX-License-Identifier: Apache-2.0
"""What the self tests of the witnesses share: where the real files are."""
import json
import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEST_DATA = pathlib.Path(os.environ.get("WEIGHBRIDGE_TEST_DATA") or ROOT.parent / "shared/data")


def manifest(folder, prefix=""):
    """The files that MANIFEST.json lists, or one parameter that skips."""
    path = TEST_DATA / folder / "MANIFEST.json"
    if not path.is_file():
        reason = f"{path} is missing: WEIGHBRIDGE_TEST_DATA can name the folder of the test data"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason), id="absent")]
    files = [entry for entry in json.loads(path.read_text("utf-8"))["files"] if entry["file"].startswith(prefix)]
    return [pytest.param(entry, id=entry["file"]) for entry in files]
