# SPDX-License-Identifier: Apache-2.0
"""Tests the bill of materials that is installed beside the command: valid by SPDX's own tool, and true of the command."""
import json
import pathlib

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
