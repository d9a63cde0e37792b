# SPDX-License-Identifier: Apache-2.0
"""Tests what protects the command from the files that it reads: how it is built, and what the kernel refuses to it."""
import json
import re
import shutil
import subprocess

import pytest

from conftest import COMMAND, weighbridge
from waiting import until_it_reads

SANDBOX = json.loads(weighbridge("--version", "--json").stdout)["sandbox"]


def status_of(*arguments):
    """NoNewPrivs and Seccomp of a command that reads its standard input: it is confined before it opens it."""
    run = subprocess.Popen([COMMAND, *arguments], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_it_reads(run)
        return dict(re.findall(r"^(NoNewPrivs|Seccomp):\s+(\d)$", open(f"/proc/{run.pid}/status").read(), re.M))
    finally:
        run.kill()
        run.communicate()


@pytest.mark.skipif("seccomp" not in SANDBOX, reason=f"this build or kernel filters no calls: {SANDBOX}")
def test_a_running_command_is_confined_unless_told_otherwise():
    assert status_of("verify", "-") == {"NoNewPrivs": "1", "Seccomp": "2"}
    assert status_of("verify", "-", "--no-sandbox") == {"NoNewPrivs": "0", "Seccomp": "0"}


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not installed")
def test_the_command_is_built_with_the_usual_defenses():
    said = subprocess.run(["readelf", "--wide", "--file-header", "--program-headers", "--dynamic", "--symbols", COMMAND],
                          capture_output=True, text=True, check=True).stdout
    if "__asan_init" in said or "__tsan_init" in said:
        pytest.skip("a sanitizer takes the place of these defenses")
    assert re.search(r"Type:\s+DYN", said)  # loaded at another address each time
    assert "GNU_RELRO" in said and re.search(r"BIND_NOW|\bNOW\b", said)
    assert re.search(r"GNU_STACK.* RW ", said)
    assert "__stack_chk_fail" in said
