# SPDX-License-Identifier: Apache-2.0
# Memory that does not grow with the payload: a 3 GiB model under a limit of 512 MiB of address space.
import pathlib
import shutil
import tempfile

import pytest

from robustness import MIB, Measured, write_sparse_file

LIMIT = 512 * MIB
PEAK = 300 * MIB
PAYLOAD = 3 << 30


def available_memory():
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


@pytest.fixture
def roomy():
    """A folder for the 3 GiB that convert writes: in memory where there is plenty, which spares the disk, else on the disk."""
    shm = pathlib.Path("/dev/shm")
    in_memory = shm.is_dir() and shutil.disk_usage(shm).free > 2 * PAYLOAD and available_memory() > 4 * PAYLOAD
    parent = shm if in_memory else pathlib.Path(tempfile.gettempdir())
    if shutil.disk_usage(parent).free < 8 << 30:
        pytest.skip("less than 8 GiB free for a 3 GiB model and its copy")
    with tempfile.TemporaryDirectory(dir=parent) as name:
        yield pathlib.Path(name)


def within_the_limit(*words):
    done = Measured(*words, address_space=LIMIT)
    assert done.status == 0, (words, done.stderr)
    assert done.peak < PEAK, f"{words}: {done.peak / MIB:.0f} MiB at the peak"
    return done


def test_3_gib_in_512_mib_of_address_space(roomy):
    model = write_sparse_file(roomy / "model.safetensors", "BF16", 2, PAYLOAD)
    target = roomy / "model.zt"
    within_the_limit("convert", model, target, "--digest", "sha256")
    assert target.stat().st_size > PAYLOAD
    within_the_limit("verify", target)
    within_the_limit("verify", model)
    hashes = {within_the_limit("hash", path).stdout.split()[0] for path in (model, target)}
    assert len(hashes) == 1 and len(hashes.pop()) == 64


def test_compressed_and_back(roomy):
    model = write_sparse_file(roomy / "model.safetensors", "BF16", 2, PAYLOAD // 3)
    target = roomy / "model.zt"
    within_the_limit("convert", model, target, "--encoding", "zstd")
    assert target.stat().st_size < MIB, "zeros compress well"
    within_the_limit("verify", target)
    within_the_limit("convert", target, roomy / "back.safetensors")
    within_the_limit("extract", target, "w", "-o", roomy / "w.npy")
    within_the_limit("inspect", target, "--stats")


def test_the_limit_is_in_force():
    """A job that needs more than the limit is stopped by it: else the tests above would show nothing."""
    done = Measured("--version", address_space=4 * MIB)
    assert done.status != 0
