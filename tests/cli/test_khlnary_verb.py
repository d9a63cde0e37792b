# SPDX-License-Identifier: Apache-2.0
import json
import os
import struct

import pytest

from conftest import floats, safetensors, validated, weighbridge
from tables import actions

SUM = "FUNC_DEF 1\nCONST_I8 2\nADD_I32\nRET\nFUNC_END\nCONST_I8 40\nCALL 1\nRET\n"
SUM_SIDECAR = {"schema": 1, "files": [], "functions": [{"id": 1, "offset": 0}]}


def module(folder, text, sidecar=None, name="m"):
    """A module of these lines, with its sidecar."""
    (folder / f"{name}.txt").write_text(text)
    path = folder / f"{name}.knu"
    weighbridge("khlnary", "assemble", folder / f"{name}.txt", "-o", path, "--force")
    if sidecar is not None:
        (folder / f"{name}.khm.json").write_text(json.dumps(sidecar))
    return path


@pytest.fixture
def packed(tmp_path):
    """A module of 18 tensors in two files."""
    model = tmp_path / "model.safetensors"
    model.write_bytes(safetensors({f"layer.{i}": ("F32", [1, i + 1], floats(*range(i, 2 * i + 1))) for i in range(18)},
                                  {"format": "pt"}))
    weighbridge("khlnary", "pack", model, "-o", tmp_path / "out")
    return tmp_path / "out" / "model.knu"


def test_run_prints_the_result(tmp_path):
    path = module(tmp_path, SUM, SUM_SIDECAR)
    assert weighbridge("khlnary", "run", path).stdout == f"{path}: 42 after 7 steps, 0 tensors loaded\n"
    value = validated(weighbridge("khlnary", "run", path, "--json").stdout, "khlnary")
    assert value["result"] == {"kind": "integer", "value": 42} and value["steps"] == 7


def test_trace_prints_each_step(tmp_path):
    path = module(tmp_path, SUM, SUM_SIDECAR)
    lines = weighbridge("khlnary", "run", path, "--trace").stdout.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == [f"{4 * at:08x}" for at in (0, 5, 6, 1, 2, 3, 7)]
    assert lines[4].split(maxsplit=1)[1].startswith("ADD_I32 ") and lines[4].endswith("[40, 2]")
    value = validated(weighbridge("khlnary", "run", path, "--trace", "--json").stdout, "khlnary")
    assert [step["glyph"] for step in value["trace"]][:3] == ["FUNC_DEF 1", "CONST_I8 40", "CALL 1"]
    assert value["trace"][4]["stack"] == [{"kind": "integer", "value": 40}, {"kind": "integer", "value": 2}]


def test_endless_module_ends(tmp_path):
    path = module(tmp_path, "JUMP8 +0\n")
    done = weighbridge("khlnary", "run", path, status=1)
    assert "khlnary/step-limit" in done.stderr and "--max-steps" in done.stderr and done.stdout == ""
    assert "at most 7 steps" in weighbridge("khlnary", "run", path, "--max-steps", 7, status=1).stderr
    failure = validated(weighbridge("khlnary", "run", path, "--json", status=1).stdout, "failure")
    assert failure["findings"][0]["rule"] == "khlnary/step-limit" and failure["findings"][0]["offset"] == 0
    growing = module(tmp_path, "CONST_I8 1\nJUMP8 -1\n", name="growing")
    assert "at most 3 values" in weighbridge("khlnary", "run", growing, "--max-stack", 3, status=1).stderr


def test_authority(tmp_path):
    path = module(tmp_path, "CONST_I8 5 authority=3\n")
    weighbridge("khlnary", "run", path)
    assert "khlnary/authority" in weighbridge("khlnary", "run", path, "--authority", 2, status=1).stderr
    assert "khlnary/authority" in weighbridge("khlnary", "verify", path, "--authority", 2, status=1).stdout
    assert "from 1 to 7" in weighbridge("khlnary", "run", path, "--authority", 8, status=2).stderr


def test_verify(tmp_path, packed):
    path = module(tmp_path, SUM, SUM_SIDECAR)
    assert weighbridge("khlnary", "verify", path).stdout == f"{path}: ok (KHLNARY module, 8 words, 32 bytes)\n"
    weighbridge("khlnary", "verify", packed)
    broken = module(tmp_path, "JUMP8 -1\nCALL 3\nLOAD_BIN_TENSOR file=9 tensor=0\nRET\n.word 0x20000003\n", name="broken")
    out = weighbridge("khlnary", "verify", broken, status=1).stdout
    assert out.count(": error: ") == 1 and "khlnary/parity at byte 16" in out
    other = module(tmp_path, "JUMP8 -1\nCALL 3\nLOAD_BIN_TENSOR file=9 tensor=0\nRET\n", name="other")
    value = validated(weighbridge("khlnary", "verify", other, "--sidecar", tmp_path / "m.khm.json", "--json", status=1).stdout, "verify")["files"][0]
    assert value["format"] == "khlnary" and not value["valid"]
    assert [(f["rule"], f["offset"]) for f in value["findings"]] == [("khlnary/function-table", 0)]
    (tmp_path / "m.khm.json").unlink()
    alone = validated(weighbridge("khlnary", "verify", other, "--json", status=1).stdout, "verify")["files"][0]
    assert [(f["rule"], f["offset"]) for f in alone["findings"]] == [
        ("khlnary/jump", 0), ("khlnary/function", 4), ("khlnary/file-id", 8)]
    assert weighbridge("khlnary", "verify", broken, "--quiet", status=1).stdout == ""


def test_verify_and_run_agree_on_a_shape_above_rank_3(tmp_path):
    """A sidecar beside the STB file adds it; verify ends with 3 where nothing does."""
    tensor = struct.pack("<BBBBQQ3I", 0, 0, 4, 0, 64, 16, 0, 0, 0)
    (tmp_path / "w.stb").write_bytes(struct.pack("<4sBBHIIQQ", b"STB0", 1, 0, 1, 0, 0, 64, 80) + tensor + floats(1, 2, 3, 4))
    path = module(tmp_path, "LOAD_BIN_TENSOR file=0 tensor=0\n", {"schema": 1, "files": [{"id": 0, "path": "w.stb"}]})
    assert "khlnary/unsupported-tensor" in weighbridge("khlnary", "verify", path, status=3).stdout
    assert "unknown shape" in weighbridge("khlnary", "run", path).stdout
    weighbridge("verify", tmp_path / "w.stb", status=3)
    own = {"schema": 1, "files": [{"id": 0, "path": "w.stb"}], "shapes": [[1, 1, 2, 2]]}
    (tmp_path / "w.khm.json").write_text(json.dumps(own))
    weighbridge("khlnary", "verify", path)
    assert "[1, 1, 2, 2]" in weighbridge("khlnary", "run", path).stdout
    weighbridge("verify", tmp_path / "w.stb")


def test_a_prefetch_of_a_missing_file_is_no_error(tmp_path):
    path = module(tmp_path, "G_PREFETCH_BIN file=0\nG_CONST_I8 4\nRET\n", {"schema": 1, "files": [{"id": 0, "path": "none.stb"}]})
    assert ": 4 after 3 steps" in weighbridge("khlnary", "run", path).stdout


def test_pack_and_run(packed):
    out = weighbridge("khlnary", "run", packed).stdout
    assert out.startswith(f"{packed}: tensor 1/1 after 19 steps, 18 tensors loaded\n")
    value = validated(weighbridge("khlnary", "run", packed, "--json").stdout, "khlnary")
    assert [(t["file"], t["id"], t["name"], t["shape"]) for t in value["loaded"]] == [
        (i // 16, i % 16, f"layer.{i}", [1, i + 1]) for i in range(18)]
    assert value["loaded"][3]["first"] == [3.0, 4.0, 5.0, 6.0]
    assert sorted(os.listdir(packed.parent)) == ["model-0.khm.json", "model-0.stb", "model-1.khm.json", "model-1.stb",
                                                 "model.khm.json", "model.knu"]
    sidecar = validated((packed.parent / "model.khm.json").read_text(), "khm.schema")
    assert sidecar["module"] == "model.knu" and len(sidecar["tensors"]) == 18
    # Each file opens alone, with its names.
    alone = json.loads(weighbridge("inspect", "--json", packed.parent / "model-1.stb").stdout)["files"][0]
    assert [t["name"] for t in alone["tensors"]] == ["layer.16", "layer.17"]


def test_pack_says_what_it_did(sample, tmp_path):
    done = weighbridge("khlnary", "pack", sample, "-o", tmp_path / "out", status=1)
    assert "khlnary/pack-tensor" in done.stderr and "embedding" in done.stderr and "--without" in done.stderr
    assert not (tmp_path / "out").exists()
    value = validated(weighbridge("khlnary", "pack", sample, "-o", tmp_path / "out", "--without", "steps", "--cast", "f16",
                                  "--json").stdout, "khlnary")
    assert value["tensors"] == 3 and len(value["files"]) == 1
    assert value["left_out"] == ["tensor steps", "attribute format", "attribute note"]
    assert "exists" in weighbridge("khlnary", "pack", sample, "-o", tmp_path / "out", "--without", "steps", "--cast", "f16",
                                   status=2).stderr
    weighbridge("khlnary", "pack", sample, "-o", tmp_path / "out", "--without", "steps", "--cast", "f32", "--force")
    run = json.loads(weighbridge("khlnary", "run", tmp_path / "out/sample.knu", "--json").stdout)
    assert {t["dtype"] for t in run["loaded"]} == {"f32"}


def test_pack_takes_stb_files(tmp_path, packed):
    weighbridge("convert", tmp_path / "model.safetensors", tmp_path / "same.stb", "--allow", "attribute")
    weighbridge("khlnary", "pack", tmp_path / "same.stb", "-o", tmp_path / "again", "--without", "layer.0")
    out = weighbridge("khlnary", "run", tmp_path / "again/same.knu").stdout
    assert "17 tensors loaded" in out
    weighbridge("khlnary", "verify", tmp_path / "again/same.knu")


def test_pack_refuses_its_inputs_sidecar_and_a_link_to_nothing(tmp_path, packed):
    weighbridge("convert", tmp_path / "model.safetensors", tmp_path / "same.stb", "--allow", "attribute")
    before = (tmp_path / "same.khm.json").read_bytes()
    said = weighbridge("khlnary", "pack", tmp_path / "same.stb", "-o", tmp_path, "--force", status=2).stderr
    assert "same.khm.json: this is the input" in said and (tmp_path / "same.khm.json").read_bytes() == before
    (tmp_path / "link").symlink_to("nothing")
    for spelled in ("link", "link/"):
        said = weighbridge("khlnary", "pack", tmp_path / "same.stb", "-o", f"{tmp_path}/{spelled}", status=2).stderr
        assert "it is a broken symbolic link" in said


def test_pack_refuses_more_than_256(tmp_path):
    model = tmp_path / "many.safetensors"
    model.write_bytes(safetensors({str(i): ("F32", [], floats(i)) for i in range(257)}))
    assert "found 257" in weighbridge("khlnary", "pack", model, "-o", tmp_path / "out", status=1).stderr
    weighbridge("khlnary", "pack", model, "-o", tmp_path / "out", "--without", "256")
    assert len(json.loads(weighbridge("khlnary", "run", tmp_path / "out/many.knu", "--json").stdout)["loaded"]) == 256


def test_text_and_words_are_exact_both_ways(tmp_path):
    path = tmp_path / "odd.knu"
    path.write_bytes(struct.pack("<6I", 0x20000002, 0x20000003, 0, 0xffffffff, 0x23002133, 0x2110 << 16 | 0x3ff2))
    text = weighbridge("khlnary", "disassemble", path).stdout
    assert text.splitlines()[:3] == ["NOP", ".word 0x20000003 ; parity", ".word 0x00000000 ; version"]
    weighbridge("khlnary", "disassemble", path, "-o", tmp_path / "odd.txt")
    assert (tmp_path / "odd.txt").read_text() == text
    weighbridge("khlnary", "assemble", tmp_path / "odd.txt", "-o", tmp_path / "again.knu")
    assert (tmp_path / "again.knu").read_bytes() == path.read_bytes()
    assert validated(weighbridge("khlnary", "disassemble", path, "--json").stdout, "khlnary")["text"] == text
    value = validated(weighbridge("khlnary", "assemble", tmp_path / "odd.txt", "-o", tmp_path / "again.knu", "--force",
                                  "--json").stdout, "khlnary")
    assert value["words"] == 6
    assert "exists" in weighbridge("khlnary", "assemble", tmp_path / "odd.txt", "-o", tmp_path / "again.knu", status=2).stderr
    (tmp_path / "bad.txt").write_text("NOP\nNOPE 1\n")
    assert "line 2: 'NOPE' is not a glyph" in weighbridge("khlnary", "assemble", tmp_path / "bad.txt", "-o", tmp_path / "bad.knu",
                                                       status=1).stderr
    assert not (tmp_path / "bad.knu").exists()


def test_files_stay_beneath_the_folder(tmp_path, packed):
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "link.stb").symlink_to(packed.parent / "model-0.stb")
    load = "LOAD_BIN_TENSOR file=0 tensor=0\n"
    for name, rule in {"link.stb": "khlnary/path", "none.stb": "khlnary/file-missing", "../out/model-0.stb": "stb/sidecar-path",
                       str(packed.parent / "model-0.stb"): "stb/sidecar-path"}.items():
        path = module(inside, load, {"schema": 1, "files": [{"id": 0, "path": name}]})
        assert rule in weighbridge("khlnary", "run", path, status=1).stderr
        assert rule in weighbridge("khlnary", "verify", path, status=1).stdout
    # Paths in a sidecar elsewhere are relative to its own folder.
    weighbridge("khlnary", "run", path, "--sidecar", packed.parent / "model.khm.json")
    assert weighbridge("khlnary", "run", path, "--sidecar", inside / "absent.json", status=4).stdout == ""


def test_flags_belong_to_actions(tmp_path):
    path = module(tmp_path, "NOP\n")
    assert "takes no --trace" in weighbridge("khlnary", "verify", path, "--trace", status=2).stderr
    assert "needs -o" in weighbridge("khlnary", "assemble", path, status=2).stderr
    assert "did you mean 'verify'?" in weighbridge("khlnary", "verfy", path, status=2).stderr
    assert "needs MODULE" in weighbridge("khlnary", "run", status=2).stderr
    assert weighbridge("khlnary", "run", tmp_path / "absent.knu", status=4).stdout == ""
    (tmp_path / "cut.knu").write_bytes(b"12345")
    for action in ("run", "disassemble"):
        assert "khlnary/truncated" in weighbridge("khlnary", action, tmp_path / "cut.knu", status=1).stderr


def test_completion_knows_the_actions():
    offered = weighbridge("__complete", "khlnary", "").stdout
    assert all(f"\n{words[0]}\t" in offered for words in actions("khlnary"))


def test_standard_output_does_not_take_two_things(tmp_path):
    path = module(tmp_path, SUM, SUM_SIDECAR)
    weighbridge("khlnary", "disassemble", path, "-o", "-")
    assert "--json" in weighbridge("khlnary", "disassemble", path, "-o", "-", "--json", status=2).stderr


def test_no_action_replaces_what_it_reads(tmp_path):
    path, text, link = module(tmp_path, "NOP\n"), tmp_path / "m.txt", tmp_path / "link"
    os.link(text, link)
    before = path.read_bytes(), text.read_bytes()
    for action, source, output in (("assemble", text, text), ("assemble", text, link), ("disassemble", path, path)):
        done = weighbridge("khlnary", action, source, "-o", output, "--force", "--json", status=2)
        assert validated(done.stdout, "failure")["findings"][0]["rule"] == "misuse/output-is-input"
    assert (path.read_bytes(), text.read_bytes()) == before


def test_what_cannot_be_told_is_written_all_the_same(tmp_path):
    path, text = module(tmp_path, "NOP\n"), tmp_path / "m.txt"
    with open("/dev/full", "wb") as full:
        for arguments in (["assemble", text, "-o", tmp_path / "a.knu"], ["disassemble", path, "--json", "-o", tmp_path / "b.txt"]):
            said = weighbridge("khlnary", *arguments, stdout=full, status=4).stderr
            assert f"'{arguments[-1]}' is written all the same" in said and arguments[-1].exists()
