# SPDX-License-Identifier: Apache-2.0
"""What can be opened beside paths: file objects that count what is read of them, and addresses by fsspec."""
import array
import functools
import http.server
import io
import threading

import pytest

import weighbridge as wb


@pytest.fixture(scope="module", params=["zt", "safetensors"])
def file(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("sources") / f"a.{request.param}"
    wb.save(path, {f"w{i}": array.array("f", [i] * 100_000) for i in range(20)})
    return path


class Counted(io.BytesIO):
    bytes_read = calls = 0

    def read(self, size=-1):
        out = super().read(size)
        self.bytes_read += len(out)
        self.calls += 1
        return out


def test_opening_reads_the_header_and_a_tensor_reads_its_range(file):
    source = Counted(file.read_bytes())
    with wb.open(source) as m:
        assert len(m) == 20 and source.bytes_read < 100_000
        before = source.bytes_read
        assert m["w7"].tobytes()[:4] == array.array("f", [7]).tobytes()
        assert source.bytes_read - before < 500_000


def test_a_file_object_that_fails_says_so(file):
    class Failing(Counted):
        def read(self, size=-1):
            if self.calls > 0:
                raise OSError("the cable was pulled")
            return super().read(size)

    with pytest.raises(OSError, match="the cable was pulled") as caught:
        wb.open(Failing(file.read_bytes()))["w3"].tobytes()

    assert isinstance(caught.value, wb.InputOutputError)

    class Short(Counted):
        def read(self, size=-1):
            return super().read(min(size, 10_000))

    source = Short(file.read_bytes())
    assert wb.open(source)["w3"].tobytes()[:4] == array.array("f", [3]).tobytes(), "a read may give less at a time"


def test_a_file_object_whose_error_or_name_is_no_text(file):
    class Unspeakable(OSError):
        def __str__(self):
            return 7

    for error in (Unspeakable(), OSError("\udcff"), OSError("a\0b")):
        class Failing(Counted):
            def read(self, size=-1):
                raise error

        with pytest.raises(wb.InputOutputError, match="cannot be read"):
            wb.open(Failing(file.read_bytes()))
    named = Counted(file.read_bytes())
    named.name = "\udcff\0"
    assert len(wb.open(named)) == 20


def test_a_memory_map_is_a_file_object(file):
    import mmap

    with open(file, "rb") as opened:
        memory = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    assert wb.open(memory)["w3"].tobytes()[:4] == array.array("f", [3]).tobytes()


def test_an_address_of_fsspec(file):
    fsspec = pytest.importorskip("fsspec", reason="needs fsspec")
    with fsspec.open(f"memory://folder/{file.name}", "wb") as out:
        out.write(file.read_bytes())
    with wb.open(f"memory://folder/{file.name}") as m:
        assert m["w19"].shape == (100_000,) and m.name.startswith("memory://")
    assert wb.verify(f"memory://folder/{file.name}").valid
    assert wb.hash(f"memory://folder/{file.name}") == wb.hash(file)
    with pytest.raises(FileNotFoundError):
        wb.open("memory://folder/nope")


def test_ranges_far_apart_are_one_call_of_fsspec(tmp_path, monkeypatch):
    memory = pytest.importorskip("fsspec.implementations.memory", reason="needs fsspec").MemoryFileSystem
    wb.save(tmp_path / "a.npz", {f"w{i}": array.array("f", [i]) * 800_000 for i in range(6)})
    with memory().open("folder/a.npz", "wb") as out:
        out.write((tmp_path / "a.npz").read_bytes())
    calls = []
    together = memory.cat_ranges

    def cat_ranges(self, paths, *args, **options):
        calls.append(len(paths))
        return together(self, paths, *args, **options)

    monkeypatch.setattr(memory, "cat_ranges", cat_ranges)
    assert wb.open("memory://folder/a.npz")["w5"].tobytes()[:4] == array.array("f", [5]).tobytes()
    assert calls == [5], "the headers of all members but the first, which is in the file's head"


def test_http_is_read_in_ranges(file):
    pytest.importorskip("fsspec", reason="needs fsspec")
    pytest.importorskip("aiohttp", reason="needs aiohttp")
    served, ranges = [], []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            data = file.read_bytes()
            first, last = 0, len(data) - 1
            if (wanted := self.headers.get("Range")) and "ranges" in self.path:
                first, _, end = wanted.removeprefix("bytes=").partition("-")
                first, last = int(first), min(last, int(end or last))
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
            else:
                self.send_response(200)
            body = data[first:last + 1]
            served.append(len(body))
            ranges.append(wanted)
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_HEAD(self):
            self.send_response(200)
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(file.stat().st_size))
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(file.parent)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        m = wb.open(f"http://127.0.0.1:{server.server_address[1]}/ranges/{file.name}")
        assert len(served) <= 2
        assert m["w3"].tobytes()[:4] == array.array("f", [3]).tobytes()
        assert 0 < sum(served) < 600_000 and len(served) < 10 and None not in ranges
        served.clear()
        m = wb.open(f"http://127.0.0.1:{server.server_address[1]}/without/{file.name}")
        assert m["w3"].tobytes()[:4] == array.array("f", [3]).tobytes()
        assert len(served) == 1, "a server that ignores ranges is asked once"
    finally:
        server.shutdown()
        server.server_close()


def test_a_file_with_only_read_and_seek(tmp_path):
    wb.save(tmp_path / "a.safetensors", {"w": b"12345678"})

    class File:
        def __init__(self, file):
            self.read, self.seek = file.read, file.seek

    with open(tmp_path / "a.safetensors", "rb") as file:
        assert wb.open(File(file))["w"].tobytes() == b"12345678"


def test_a_path_of_bytes_is_a_path(tmp_path):
    import os
    wb.save(tmp_path / "a.safetensors", {"w": b"12345678"})
    assert [wb.verify(each).format for each in os.scandir(os.fsencode(tmp_path))] == ["safetensors"]


def test_a_sidecar_is_that_of_an_stb(tmp_path):
    wb.save(tmp_path / "a.safetensors", {"w": b"12345678"})
    with pytest.raises(wb.UsageError, match="a sidecar belongs to an .stb"):
        wb.open(tmp_path / "a.safetensors", sidecar=b"{}")


def test_a_tensor_without_dimensions_is_true_and_not_iterated(tmp_path):
    np = pytest.importorskip("numpy", reason="needs numpy")
    wb.save(tmp_path / "a.safetensors", {"w": np.float32(0), "f": memoryview(np.asfortranarray(np.arange(6, dtype="f4").reshape(2, 3)))})
    with wb.open(tmp_path / "a.safetensors") as model:
        assert model["w"]
        with pytest.raises(TypeError):
            list(model["w"])
        assert model["f"].numpy().tolist() == [[0, 1, 2], [3, 4, 5]] and [row.tolist() for row in model["f"]] == [[0, 1, 2], [3, 4, 5]]
        with pytest.raises(wb.UsageError, match="byte order"):
            model["f"].numpy(">f4")
