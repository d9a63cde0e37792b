# SPDX-License-Identifier: Apache-2.0
"""Tests the bill of materials that is installed beside the command: valid by SPDX's own tool, and true of the command."""
import json
import pathlib
import re

import pytest

from interop_tools import COMMAND, weighbridge

SBOM = pathlib.Path(COMMAND).resolve().parent / "pages/weighbridge.spdx.json"


@pytest.fixture(scope="module")
def document():
    tool = pytest.importorskip("spdx_tools.spdx.parser.parse_anything", reason="spdx-tools is not installed")
    if not SBOM.exists():
        pytest.skip("this build has no bill of materials: it is made for what is installed")
    return tool.parse_file(str(SBOM))


def test_is_valid_as_the_tool_of_the_specification_reads_it(document):
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
    assert [message.validation_message for message in validate_full_spdx_document(document)] == []


def test_names_every_library_of_the_command_with_its_version(document):
    said = json.loads(weighbridge("--version", "--json"))
    assert {package.name: package.version for package in document.packages} == {"weighbridge": said["version"], **said["libraries"]}
    assert all(str(package.license_concluded) for package in document.packages)
    linked = {relation.related_spdx_element_id for relation in document.relationships if relation.relationship_type.name.endswith("_LINK")}
    assert len(linked) == len(said["libraries"])


def bill():
    if not SBOM.exists():
        pytest.skip("this build has no bill of materials: it is made for what is installed")
    return {package["name"]: package["versionInfo"] for package in json.loads(SBOM.read_text())["packages"]}


# What each library writes about itself into a program that holds it.
OWN_WORDS = {"OpenSSL": rb"\0OpenSSL (\d+\.\d+\.\d+) ", "zlib": rb"\0 (?:de|in)flate (\d+\.\d+[.\d]*) Copyright", "glibc": rb"GNU C Library [^\0]*?release version (\d+\.\d+)",
             "libstdc++": rb"\0GCC: [^\0]*?\) (\d+)\."}


@pytest.mark.parametrize("name", OWN_WORDS)
def test_versions_are_those_that_the_libraries_inside_state_themselves(name):
    said = bill()
    found = set(re.findall(OWN_WORDS[name], pathlib.Path(COMMAND).read_bytes()))
    if not found:
        pytest.skip(f"{name} is not linked into this command statically")
    assert said[name].encode() in found


def test_every_library_of_the_link_line_is_named():
    ninja = pathlib.Path(COMMAND).resolve().parent / "build.ninja"
    if not ninja.exists():
        pytest.skip("the command is not in a build folder of Ninja")
    said = bill()
    rule = re.search(r"^build weighbridge: .*\n((?:  .*\n)+)", ninja.read_text(), re.M)[1]
    linked = re.search(r"LINK_LIBRARIES = (.*)", rule)[1].split()
    names = {"libzstd": "zstd", "libz": "zlib", "libcrypto": "OpenSSL", "libwb_fmt": "fmt", "libfmt": "fmt", "-ldl": "glibc", "-lpthread": "glibc",
             "-lm": "glibc"}
    own = {"libwb_command", "libweighbridge", "libweighbridge_chain"}
    for library in linked:
        stem = pathlib.Path(library).name.split(".")[0]
        assert stem in own or names[stem] in said, f"{library} is linked, and the bill of materials does not name it"
    assert {"zstd", "zlib", "fmt"} <= {names.get(pathlib.Path(library).name.split(".")[0]) for library in linked}
