# SPDX-License-Identifier: Apache-2.0
"""wb.explain: what is at a byte, and where an element is."""
import json
import struct

import pytest

import weighbridge as wb


def content():
    header = json.dumps({"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + struct.pack("<6f", *range(6))


def test_a_byte_a_range_and_an_element(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(content())
    start = len(content()) - 24
    found = wb.explain(path, start + 17)
    assert [span.kind for span in found.spans] == ["file", "tensor", "element"]
    assert found.spans[-1].what == "[1, 1]" and (found.offset, found.length) == (start + 17, 1)
    assert content()[found.bytes_at:].startswith(found.data) and "[1, 1]" in str(found)
    there = wb.explain(path, "w[1, 1]")
    assert (there.offset, there.length, there.spans) == (start + 16, 4, found.spans)
    assert [span.what for span in wb.explain(path, slice(start, start + 8)).spans[2:]] == ["[0, 0]", "[0, 1]"]
    assert wb.explain(content(), 3).spans[-1].what == "length of the header"


def test_places_that_are_none(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(content())
    for where in (-1, slice(5, 5), slice(None, 3), slice(0, 8, 2), ""):
        with pytest.raises(ValueError):
            wb.explain(path, where)
    with pytest.raises(wb.Error):
        wb.explain(path, 10**9)
    with pytest.raises(wb.Error):
        wb.explain(path, "w[2, 0]")
    with pytest.raises(TypeError):
        wb.explain(None, 0)
