# SPDX-License-Identifier: Apache-2.0
"""Files of .slm whose checksum has another form than reading M1's: invalid by default, usable on request."""
import json
import struct
from pathlib import Path

import pytest
from conftest import weighbridge

CORPUS = Path(__file__).resolve().parents[2] / "corpus/slm"


@pytest.fixture
def other(tmp_path):
    """A valid file, sealed in the form "xor"."""
    data = bytearray((CORPUS / "valid-tied.slm").read_bytes())
    data[100:108] = bytes(8)
    h, mask = 0x9E3779B97F4A7C15, 2**64 - 1
    for i, byte in enumerate(data):
        h ^= byte ^ i
        h = (h << 7 | h >> 57) & mask
        h = h * 0x100000001B3 & mask
    data[100:108] = struct.pack("<Q", h)
    path = tmp_path / "other.slm"
    path.write_bytes(data)
    return path


def test_a_file_of_another_form_is_invalid_and_the_message_says_what_opens_it(other):
    for verb in "verify", "inspect", "hash":
        done = weighbridge(verb, other, status=1)
        assert "try --checksum-form xor" in done.stdout + done.stderr
    weighbridge("verify", other, "--checksum-form", "sum", status=1)


def test_every_verb_opens_it_on_request(other, tmp_path):
    form = "--checksum-form", "xor"
    for command in (["verify", other], ["inspect", other], ["hash", other], ["tokenize", other, "a"],
                    ["extract", other, "norm.weight", "-o", tmp_path / "n.npy"],
                    ["generate", other, "--prompt", "a", "--max-tokens", "2"],
                    ["convert", other, tmp_path / "out.zt"], ["convert", other, tmp_path / "ours.slm"]):
        weighbridge(*command, *form)
    weighbridge("verify", tmp_path / "ours.slm")  # written in the form that this project reads
    assert weighbridge("hash", other, *form).stdout.split()[0] == weighbridge("hash", tmp_path / "ours.slm").stdout.split()[0]


def test_json_has_the_form(other):
    for verb in "inspect", "verify":
        assert json.loads(weighbridge(verb, other, "--json", "--checksum-form", "xor").stdout)["files"][0]["checksum_form"] == "xor"
    assert json.loads(weighbridge("inspect", CORPUS / "valid-tied.slm", "--json").stdout)["files"][0]["checksum_form"] == "add"


def test_an_unknown_form_is_a_usage_error(other):
    weighbridge("verify", other, "--checksum-form", "crc", status=2)
