# SPDX-License-Identifier: Apache-2.0
"""The package without any other: models, errors, findings, digests, conversions, buffers."""
import array
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import threading
import unicodedata

import pytest

import weighbridge as wb


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.zt"
    wb.save(path, {"ints": array.array("i", range(6)), "bytes": b"abc"}, {"n": 3, "text": "é", "none": None, "yes": True, "real": 0.5})
    return path


def test_a_tensor_that_is_missing_is_listed_without_a_shape(tmp_path):
    shards = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    wb.save(tmp_path / shards[0], {"a": array.array("f", [1, 2])})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": shards[0], "b": shards[1]}}))
    with pytest.raises(wb.MalformedError, match=shards[1]):
        wb.open(index)
    with wb.open(index, list_incomplete=True) as m:
        assert {name: t.supported for name, t in m.items()} == {"a": True, "b": False}
        missing = m["b"]
        assert missing.shape is None and missing.unsupported.rule == "safetensors/shard-missing" and "unknown shape" in repr(missing)
        assert "<td>b</td>" in m._repr_html_() and m["a"].shape == (2,)
        for attribute in ("ndim", "size"):
            with pytest.raises(wb.UnsupportedError, match="missing"):
                getattr(missing, attribute)


def test_a_model_is_a_mapping(file):
    with wb.open(file) as m:
        assert list(m) == list(m.keys()) == ["bytes", "ints"] and len(m) == 2
        assert "ints" in m and "other" not in m and 3 not in m
        assert [t.name for t in m.values()] == ["bytes", "ints"]
        assert m.metadata == {"n": 3, "text": "é", "none": None, "yes": True, "real": 0.5}
        assert m.format == "zt" and m.file_size == file.stat().st_size and m.files == [str(file)]
        t = m["ints"]
        assert (t.name, t.shape, t.dtype, t.layout, t.nbytes, t.ndim, t.size, len(t)) == ("ints", (6,), "i32", "dense", 24, 1, 6, 6)
        assert t.tobytes() == array.array("i", range(6)).tobytes()
        assert repr(t) == "<weighbridge.Tensor 'ints' i32 6, 24 B>" and "ints" in t._repr_html_()
        assert repr(m).startswith("<weighbridge.Model") and "<table>" in m._repr_html_()
    assert m.closed and "closed" in repr(m)
    with pytest.raises(ValueError, match="closed"):
        m["ints"]
    assert t.tobytes()[:4] == b"\0\0\0\0", "a tensor outlives close()"


def test_names_that_are_absent_suggest_similar_ones(file):
    for other in (3, None, 1.5):
        with pytest.raises(KeyError, match="by their names"):
            wb.open(file)[other]
        assert wb.open(file).get(other) is None
    with pytest.raises(KeyError) as caught:
        wb.open(file)["int"]
    assert isinstance(caught.value, wb.Error) and "'ints'" in str(caught.value)


@pytest.mark.parametrize("make", [lambda p: str(p), lambda p: p, lambda p: p.read_bytes(), lambda p: io.BytesIO(p.read_bytes()),
                                  lambda p: open(p, "rb"), lambda p: bytearray(p.read_bytes()), lambda p: memoryview(p.read_bytes())])
def test_paths_buffers_and_file_objects(file, make):
    assert wb.open(make(file))["bytes"].tobytes() == b"abc"
    assert wb.verify(make(file)).valid


def test_the_error_of_a_limit_that_is_a_count_asks_for_a_count(tmp_path):
    wb.save(tmp_path / "two.safetensors", {"a": b"1", "b": b"2"})
    with pytest.raises(wb.LimitError, match=r"limits=\{'tensors': COUNT\} raises it"):
        wb.open(tmp_path / "two.safetensors", limits={"tensors": 1})


def test_errors_are_those_of_python_too(tmp_path, file):
    with pytest.raises(FileNotFoundError) as caught:
        wb.open(tmp_path / "nope")
    assert isinstance(caught.value, (wb.InputOutputError, OSError)) and caught.value.rule == "io/open"
    with pytest.raises(ValueError) as caught:
        wb.open(b"not a tensor file at all")
    assert caught.value.kind == "malformed" and pickle.loads(pickle.dumps(caught.value)).rule == caught.value.rule
    with pytest.raises(wb.LimitError) as caught:
        wb.open(file, limits={"header": 10})
    assert (caught.value.hint.what, caught.value.hint.name) == ("limit", "header") and "limits={'header'" in str(caught.value)
    with pytest.raises(wb.UsageError):
        wb.convert(file, tmp_path / "b.safetensors", cast="nonsense")
    with pytest.raises(ValueError, match='no limit "heder"; the limits are memory, '):
        wb.open(file, limits={"heder": 1})
    with pytest.raises(wb.UsageError, match="depth is a whole number from 1 to 1024"):
        wb.open(file, limits={"depth": 1025})
    with pytest.raises(wb.UsageError, match="exists"):
        wb.convert(file, file.with_suffix(".safetensors"), allow="attribute-type")
        wb.convert(file, file.with_suffix(".safetensors"), allow="attribute-type")


def test_a_pickle_that_is_not_known_to_be_safe_is_said_by_name(tmp_path):
    path = tmp_path / "one.pkl"
    path.write_bytes(b"\x80\x02cmine\nThing\n0N.")
    found = wb.verify(path)
    assert found and found.valid and found.not_known_safe == ["mine.Thing"]
    assert [each.rule for each in found.findings] == ["pytorch/unknown-global"]
    diagnosis = wb.doctor(path)
    assert not diagnosis and diagnosis.condition == "unproven" and diagnosis.not_known_safe == ["mine.Thing"]
    path.write_bytes(b"\x80\x02N.")
    assert wb.verify(path).not_known_safe == [] and wb.doctor(path)


def test_verify_says_what_is_wrong(file):
    good = wb.verify(file)
    assert good and good.findings == [] and good.format == "zt" and good.tensors == 2
    broken = bytearray(file.read_bytes())
    broken[-20] ^= 0xFF
    bad = wb.verify(bytes(broken))
    assert not bad and bad.errors and bad.findings[0].severity == "error" and bad.findings[0].rule in str(bad.findings[0])
    with pytest.raises(wb.MalformedError):
        bad.raise_if_invalid()


def test_plans_say_what_a_conversion_loses(file, tmp_path):
    plan = wb.plan(file, "safetensors")
    assert not plan.possible and plan.refused[0].kind == "attribute-type" and "attribute" in str(plan.losses[0])
    with pytest.raises(wb.UsageError):
        plan.execute(tmp_path / "b.safetensors")
    plan = wb.plan(wb.open(file), "safetensors", allow=["attribute-type"])
    assert plan.possible and plan.execute(tmp_path / "b.safetensors").casts == []
    assert wb.hash(tmp_path / "b.safetensors") == wb.hash(file) == wb.open(file).hash() and wb.hash(file).startswith("wb2:")
    assert any(f.name == "zt" and f.writable for f in wb.formats())


def test_the_digest_that_the_text_of_zTensor_2_defines(tmp_path):
    path = tmp_path / "a.zt"
    wb.save(path, {"a": bytes(range(8))}, format="zt2")
    # SHA-256 of ["zt.content/1", objects] in deterministic CBOR, made with another encoder.
    assert wb.open(path).zt_hash() == "sha256:7a3411c5f6a8776fa0e942c92339f3b0227355132920294f9bc73821215e5628"
    wb.convert(path, tmp_path / "z.zt", format="zt2", encoding="zstd")
    assert wb.open(tmp_path / "z.zt").zt_hash() == wb.open(path).zt_hash()
    wb.convert(path, tmp_path / "n.zt", format="zt2", digest="none")
    for model in (wb.open(tmp_path / "n.zt"), wb.open(path).view(set={"k": "v"})):
        with pytest.raises(wb.UsageError):
            model.zt_hash()


def test_rename_takes_the_patterns_of_the_command(tmp_path):
    path = tmp_path / "m.zt"
    wb.save(path, {"m.a": b"1", "m.b": b"2", "c": b"3"})
    assert set(wb.open(path).view(rename="s/^m\\.(.)/$1.x/")) == {"a.x", "b.x", "c"}
    assert set(wb.open(path).view(rename=["s/^m\\.(.)/$1.x/", "c=d"])) == {"a.x", "b.x", "d"}
    wb.convert(path, tmp_path / "n.zt", rename="s/m\\.//")
    assert set(wb.open(tmp_path / "n.zt")) == {"a", "b", "c"}
    for wrong in ("s/(/x/", "s/nothing/x/", "s/[ab]$/z/", "m.a"):
        with pytest.raises(wb.UsageError):
            wb.open(path).view(rename=wrong)


def test_progress_is_told_and_may_stop_the_job(tmp_path):
    big = {"w": bytes(64 << 20)}
    told = []
    wb.save(tmp_path / "a.zt", big, progress=lambda done, total: told.append((done, total)))
    assert told and told[-1][0] == told[-1][1] > 0

    def stop(done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        wb.save(tmp_path / "b.zt", {"w": bytes(1 << 30)}, digest="sha256", progress=stop)
    assert os.listdir(tmp_path) == ["a.zt"]


def test_ctrl_c_stops_a_job(tmp_path):
    code = """if True:
        import os, signal, threading, time, weighbridge as wb
        signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs the tests may ignore it
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        try:
            wb.save('out.zt', {str(i): bytes(256 << 20) for i in range(16)}, encoding='zstd', level=19)
        except KeyboardInterrupt:
            print('stopped', time.monotonic() - began < 3, os.listdir('.'))
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.stdout == "stopped True []\n", done.stderr


def test_a_pickled_model_opens_as_it_was_opened(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    m = wb.open(file.name, format="zt")
    data = pickle.dumps(m)
    monkeypatch.chdir("/")
    assert pickle.loads(data)["bytes"].tobytes() == b"abc"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(m.view(only="b*"))


def test_models_pickle_as_their_path(file):
    assert pickle.loads(pickle.dumps(wb.open(file)))["bytes"].tobytes() == b"abc"
    with pytest.raises(TypeError):
        pickle.dumps(wb.open(file.read_bytes()))


def test_eight_threads_share_a_model(file):
    m, wrong = wb.open(file), []

    def work():
        for _ in range(200):
            if m["ints"].tobytes()[4] != 1 or list(m) != ["bytes", "ints"]:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_child_of_fork_reads_on(file):
    m = wb.open(file)
    child = os.fork()
    if child == 0:
        os._exit(0 if m["bytes"].tobytes() == b"abc" and wb.hash(m) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_importing_imports_no_numpy():
    code = "import sys, weighbridge; sys.exit('numpy' in sys.modules or 'dataclasses' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}).returncode == 0


def test_what_a_caller_gets_wrong_is_said_in_words(tmp_path, file):
    for wrong in (None, 3, object()):
        with pytest.raises(TypeError, match="is expected, not"):
            wb.open(wrong)
        with pytest.raises(TypeError, match="is expected, not"):
            wb.verify(wrong)
    with pytest.raises(TypeError, match="a str, not 3"):
        wb.save(tmp_path / "x.zt", {3: b"a"})
    with pytest.raises(TypeError, match="a mapping from names to arrays, not a list"):
        wb.save(tmp_path / "x.zt", [b"a"])
    with pytest.raises(TypeError, match="cannot hold a value of type object"):
        wb.save(tmp_path / "x.zt", {"a": b"a"}, {"k": object()})
    for metadata in ({3: 1}, {"\udcff": 1}, {"k": "\udcff"}, {"k": {1: 2}}):
        with pytest.raises(TypeError, match="a str of valid Unicode is expected, not"):
            wb.save(tmp_path / "x.zt", {"a": b"a"}, metadata)
    with pytest.raises(TypeError, match="the name of a tensor"):
        wb.save(tmp_path / "x.zt", {"\udcff": b"a"})
    for limits in ({"memory": -1}, {"memory": "x"}):
        with pytest.raises(TypeError, match="memory: an int of 0 or more"):
            wb.open(file, limits=limits)
    for options in ({"level": "a"}, {"max_shard_size": -1}, {"encoding": "\udcff"}):
        with pytest.raises(TypeError, match="is expected, not"):
            wb.convert(file, tmp_path / "x.zt", **options)
    with wb.open(file) as m:
        assert "\udcff" not in m
        with pytest.raises(KeyError):
            m["\udcff"]
        with pytest.raises(UnicodeEncodeError):
            m.view(rename={"ints": "\udcff"})
        with pytest.raises(TypeError, match="not JSON serializable"):
            m.view(set={"a": object()})
    loop = []
    loop.append(loop)
    with pytest.raises(RecursionError):
        wb.save(tmp_path / "x.zt", {"a": b"a"}, {"k": loop})
    with pytest.raises(wb.UsageError, match="overwrite=True replaces it"):
        wb.plan(file, "zt").execute(file.with_name("a.zt").rename(tmp_path / "old.zt"))
    (tmp_path / "t.txt").write_text("This is a text about tensors, not tensors.")
    with pytest.raises(wb.MalformedError, match=f"^{tmp_path}/t.txt: the file is text") as caught:
        wb.hash(tmp_path / "t.txt")
    assert caught.value.file == str(tmp_path / "t.txt")


def test_a_refused_loss_says_what_would_accept_it(tmp_path, file):
    with pytest.raises(wb.UsageError, match="allow='attribute-type' accepts it") as caught:
        wb.convert(file, tmp_path / "b.safetensors")
    wb.convert(file, tmp_path / "b.safetensors", allow=caught.value.hint.value)


def test_a_view_selects_renames_and_edits(tmp_path, file):
    with wb.open(file) as m:
        assert list(m.view(only="b*")) == ["bytes"] and list(m.view(without=["b*"])) == ["ints"]
        assert list(m.view(rename=str.upper)) == ["BYTES", "INTS"]
        assert list(m.view(only="ints", rename={"ints": "bytes"})) == ["bytes"]
        edited = m.view(set={"text": "new", "more": "x"}, unset="n")
        assert edited.metadata["text"] == "new" and edited.metadata["more"] == "x" and "n" not in edited.metadata and m.metadata["n"] == 3
        assert edited["ints"].tobytes() == m["ints"].tobytes()
        with pytest.raises(wb.UsageError, match="no tensor matches"):
            m.view(only="z*")
    wb.convert(file, tmp_path / "c.zt", only="ints", rename={"ints": "numbers"})
    assert list(wb.open(tmp_path / "c.zt")) == ["numbers"]
    assert wb.plan(file, "zt", without="ints").possible


def test_a_model_is_equal_to_itself_and_can_be_a_key(file):
    one, two = wb.open(file), wb.open(file)
    assert one == one and one != two and len({one, two}) == 2


# Threads that are in a function of the module, or in Python code that it calls, when the interpreter ends.
@pytest.mark.parametrize("job", ["wb.hash('a.zt')", "wb.open('a.zt')['w'].tobytes()", "wb.open(io.BytesIO(data))", "wb.open(Slow(data))",
                                 "wb.verify(Slow(data), progress=slow)", "wb.hash('a.zt', progress=slow)", "wb.open(data).view(rename=slow)"])
def test_a_daemon_thread_does_not_abort_the_end_of_the_interpreter(tmp_path, job):
    wb.save(tmp_path / "a.zt", {"w": bytes(8 << 20)})
    code = f"""if True:
        import io, threading, time, weighbridge as wb
        data = open('a.zt', 'rb').read()
        def slow(*given):
            for _ in range(2000):
                pass
            return given[0]
        class Slow(io.BytesIO):
            def read(self, size):
                slow(size)
                return super().read(size)
        begun = threading.Barrier(4)
        def work():
            {job}
            begun.wait()
            while True:
                {job}
        kept = wb.open(io.BytesIO(data)), memoryview(data)
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        begun.wait()
    """
    for _ in range(2):
        # Side by side, so that threads wait for the GIL when the interpreter begins to end: the released wheel crashed there.
        jobs = [subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) for _ in range(4)]
        assert [(*one.communicate(timeout=60), one.returncode) for one in jobs] == [("", "", 0)] * 4


HOSTILE = ["\x1b]0;pwn\x07", "\x9b31m", "\u202egnp", "\u2028x", "a\nb", "\ufeff", "\x00n", "\u200b", "\U000e0041"]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_file_controls_a_terminal(tmp_path, text):
    """Messages, str() and repr() had the texts of files as they are."""
    path, other = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    for at, name in ((path, text), (other, text + "y")):
        header = json.dumps({"__metadata__": {name: name}, name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                             "odd": {"dtype": "E" + text, "shape": [1], "data_offsets": [4, 5]}}).encode()
        at.write_bytes(struct.pack("<Q", len(header)) + header + b"\1" * 5)

    class Named(io.BytesIO):
        name = text

    shown = []

    def show(thing):
        shown.extend((str(thing), repr(thing)))
        if hasattr(thing, "_repr_html_"):
            shown.append(thing._repr_html_())

    for given in (path, Named(path.read_bytes())):
        model = wb.open(given)
        plan = wb.plan(given, "gguf")
        for thing in (model, model[text], model["odd"], model.keys(), model.metadata, wb.verify(given), *wb.verify(given).findings, wb.doctor(given),
                      wb.explain(given, 40), wb.explain(given, 12), wb.diff(given, other), *wb.diff(given, other).tensors, plan, *plan.losses,
                      *plan.blockers, *plan.changes):
            show(thing)
        for call in (lambda: model[text + "!"], lambda: wb.plan(given, text), lambda: wb.open(given, limits={text: 1}),
                     lambda: wb.convert(given, tmp_path / "o.npz"), lambda: wb.convert(given, tmp_path / "o.zt", allow=[text]),
                     lambda: wb.open(Named(b"no model")), lambda: model.view(only=[text + "z"]), lambda: model["odd"].numpy(),
                     lambda: wb.verify(tmp_path / text.replace("\0", "")), lambda: wb.edit(path, unset=[text + "q"], in_place=True),
                     lambda: wb.convert([path, other], tmp_path / "o.zt", on_duplicate=text)):
            try:
                call()
            except Exception as error:
                show(error)
    assert len(shown) > 100
    for each in shown:
        # HTML, and records in lines of their own, whose first line is the name of their class.
        rest = each.replace("\n", "") if each.startswith("<p>") or each.split("\n")[0].isidentifier() else each
        assert not [c for c in rest if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")], ascii(each)


def test_values_of_a_config_are_values_of_python(tmp_path):
    """`bool(m.metadata["hf.tie_word_embeddings"])` was True for the text "false"."""
    path = tmp_path / "a.zt"
    given = {"hf.tie_word_embeddings": "false", "hf.layers": "2", "hf.rope": '{"theta": 1e4}', "hf.name": "true story", "hf.none": "null", "other": "false"}
    wb.save(path, {"a": b"a"}, given)
    with wb.open(path) as m:
        assert m.metadata == {"hf.tie_word_embeddings": False, "hf.layers": 2, "hf.rope": {"theta": 10000.0}, "hf.name": "true story", "hf.none": None,
                              "other": "false"}
        again = m.view(set={"hf.tie_word_embeddings": True, "hf.layers": [1, 2]})
        assert again.metadata["hf.tie_word_embeddings"] is True and again.metadata["hf.layers"] == [1, 2]


def test_statistics_are_in_double_precision(tmp_path):
    """`.numpy().std()` of bf16 sums in bf16, and is wrong."""
    values = [float(i % 7) for i in range(4096)]
    path = tmp_path / "a.safetensors"
    header = json.dumps({"w": {"dtype": "BF16", "shape": [64, 64], "data_offsets": [0, 8192]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"".join(struct.pack("<f", v)[2:] for v in values))
    found = wb.open(path)["w"].stats()
    mean = sum(values) / 4096
    assert found.elements == 4096 and found.min == 0 and found.max == 6 and found.zeros == values.count(0)
    assert found.mean == pytest.approx(mean, rel=1e-12)
    assert found.std == pytest.approx((sum((v - mean) ** 2 for v in values) / 4096) ** 0.5, rel=1e-9)


def test_names_complete_and_results_print_in_lines(file):
    with wb.open(file) as m:
        assert m._ipython_key_completions_() == list(m)
    lines = str(wb.verify(file)).split("\n")
    assert lines[0] == "Verdict" and "  valid: True" in lines and len(lines) > 4


def test_texts_for_people_keep_backslashes_and_letters():
    from weighbridge._shown import shown

    assert shown("C:\\new é 層 \\x1b") == "C:\\new é 層 \\x1b"
    assert shown("a\x1b\\\n\udc80\u202e") == "a\\x1b\\\\n\\x80\\u{202e}"


def test_verify_takes_every_model_beneath_a_folder_and_every_byte_if_asked(tmp_path):
    (tmp_path / "b").mkdir()
    wb.save(tmp_path / "b/two.zt", {"w": b"abc"})
    wb.save(tmp_path / "one.zt", {"w": b"abc"})
    (tmp_path / "notes.txt").write_text("words")
    found = wb.verify(tmp_path, recursive=True)
    assert list(found) == [str(tmp_path / "b/two.zt"), str(tmp_path / "one.zt")] and all(found.values())
    assert wb.verify(tmp_path / "one.zt", read_all=True).checked.endswith("every byte was read")
    with pytest.raises(TypeError, match="path of a file or folder"):
        wb.verify(b"x", recursive=True)
