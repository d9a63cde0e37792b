# SPDX-License-Identifier: Apache-2.0
"""The processes of the tests: the command, and those that Ray starts, of which none may be left. Not in conftest.py, whose name python/tests has too."""
import os
import pathlib
import subprocess
import sys
import time


def left_running():
    """Processes of Ray that belong to this test run."""
    out = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
            mark = f"WEIGHBRIDGE_RAY_TESTS={os.getpid()}".encode()
            if (b"raylet" in words or b"gcs_server" in words or words.startswith(b"ray::")) and mark in (entry / "environ").read_bytes():
                out.append((int(entry.name), words[:60]))
        except OSError:
            pass
    return out


def stop():
    """Stops the Ray of this process. No process of it is left."""
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        ray.shutdown()
    end = time.monotonic() + 60
    while left := left_running():
        assert time.monotonic() < end, left
        time.sleep(0.1)


def command(*words, **more):
    return subprocess.run([sys.executable, "-m", "weighbridge.ray", *map(str, words)], capture_output=True, text=True, **more)
