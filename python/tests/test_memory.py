# SPDX-License-Identifier: Apache-2.0
"""Memory: what ten thousand openings, views, errors and conversions leave behind. With an extension built with the address sanitizer, it looks
for leaks and for uses after free at once (make check-long)."""
import gc
import io
import pathlib

import pytest

import weighbridge as wb

np = pytest.importorskip("numpy", reason="needs numpy")
STATUS = pathlib.Path("/proc/self/statm")
pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="needs /proc/self/statm")


def resident():
    gc.collect()
    return int(STATUS.read_text().split()[1]) * 4096


def mappings():
    return len(pathlib.Path("/proc/self/maps").read_text().splitlines())


def flat(job, times, most=6 << 20):
    """The job may leave no memory: what is resident after `times` more runs is what it was after a first tenth."""
    for _ in range(times // 10):
        job()
    before, maps = resident(), mappings()
    for _ in range(times):
        job()
    grown = resident() - before
    assert grown < most, f"{grown / times:.0f} bytes a run stay"
    assert mappings() - maps < 50


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("memory") / "a.zt"
    wb.save(path, {f"layers.{i}.weight": np.full((64, 64), i, "f4") for i in range(20)}, {"k": "v", "n": 1})
    return path


def test_ten_thousand_openings_with_views(file):
    def job():
        with wb.open(file) as m:
            views = [m["layers.3.weight"].numpy(), m["layers.4.weight"].numpy(copy=True), m.metadata, m.keys()]
            assert views[0][0, 0] == 3

    flat(job, 10_000)


def test_views_that_outlive_their_model(file):
    kept = []

    def job():
        kept[:] = [wb.open(file)["layers.5.weight"].numpy(), *kept[:3]]
        assert kept[-1][63, 63] == 5

    flat(job, 2_000)


def test_a_cycle_of_handles_is_collected(file):
    def job():
        m = wb.open(file)
        tensors = [m["layers.1.weight"]]
        tensors.append(tensors)
        m.loop = tensors

    flat(job, 1_000)


def test_errors_leave_nothing(file):
    broken = bytearray(file.read_bytes())
    broken[-30] ^= 1

    def job():
        with pytest.raises(wb.Error):
            wb.open(bytes(broken))
        with pytest.raises(KeyError):
            wb.open(file)["nope"]

    flat(job, 1_000)


def test_jobs_on_file_objects(file):
    data = file.read_bytes()

    def job():
        assert wb.verify(io.BytesIO(data)).valid
        assert wb.hash(data)
        assert len(wb.open(io.BytesIO(data)).numpy()) == 20

    flat(job, 300)


def test_saving_and_converting(tmp_path):
    array = np.ones((64, 64), "f4")

    def job():
        wb.save(tmp_path / "x.safetensors", {"w": array}, overwrite=True)
        wb.convert(tmp_path / "x.safetensors", tmp_path / "x.zt", overwrite=True)

    flat(job, 100)


def test_vectors_and_columns(embedder):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    column = pa.array(["a truck", None])

    def job():
        embedder.encode(["a truck", "a lorry"])
        pa.array(embedder.embed_arrow(column))
        embedder.embed_arrow(column).__arrow_c_stream__()

    flat(job, 500)
