# SPDX-License-Identifier: Apache-2.0
"""Tests sharded safetensors as inputs, by index and by folder, and as outputs of --max-shard-size."""
import json
import resource
import subprocess

import pytest

from conftest import COMMAND, ROOT, floats, safetensors, validated, weighbridge

SIZES = [6, 6, 2, 6, 2, 2, 11, 1]  # floats of each tensor: the example of huggingface_hub's own page, and one too large


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "in.safetensors"
    named = {f"t{i}": ("F32", [n], floats(*(i + k / 8 for k in range(n)))) for i, n in enumerate(SIZES)}
    path.write_bytes(safetensors(named, {"format": "pt"}))
    return path


def digest(path):
    return weighbridge("hash", path).stdout.split()[0]


def shards_of(folder):
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    out = {}
    for name, file in index["weight_map"].items():
        out.setdefault(file, []).append(name)
    return index, {file: sorted(names) for file, names in out.items()}


def test_division_names_and_index_are_those_of_huggingface_hub(model, tmp_path):
    out = tmp_path / "out"
    plan = validated(weighbridge("convert", "--json", model, f"{out}/", "--to", "safetensors", "--max-shard-size", "40").stdout,
                     "convert")
    assert plan["written"] is True and plan["tensors"] == len(SIZES) and plan["files"] == 5
    assert plan["output_size"] == sum(path.stat().st_size for path in out.iterdir())
    index, shards = shards_of(out)
    assert index["metadata"] == {"total_size": 4 * sum(SIZES), "total_parameters": sum(SIZES)}
    name = "model-0000{}-of-00005.safetensors".format
    # A tensor larger than the limit gets its own shard, before the one that is being filled.
    assert shards == {name(1): ["t0"], name(2): ["t1", "t2"], name(3): ["t6"], name(4): ["t3", "t4", "t5"], name(5): ["t7"]}
    for path in (out, out / "model.safetensors.index.json"):
        assert f"ok (safetensors, {len(SIZES)} tensors" in weighbridge("verify", path).stdout
        assert digest(path) == digest(model)


@pytest.mark.parametrize("size, files", [("5GB", 1), ("40", 5), ("0.04KB", 5), ("1MB", 1), ("0.04k", 5), ("5gb", 1), ("1KiB", 1)])
def test_sizes_are_decimal_unless_their_unit_is_binary(model, tmp_path, size, files):
    out = tmp_path / "out"
    done = weighbridge("convert", model, f"{out}/", "--to", "safetensors", "--max-shard-size", size).stdout
    assert f" in {'5 shards' if files > 1 else '1 file'}, written\n" in done
    names = sorted(path.name for path in out.iterdir())
    assert len([name for name in names if name.endswith(".safetensors")]) == files
    assert ("model.safetensors.index.json" in names) == (files > 1) and ("model.safetensors" in names) == (files == 1)
    assert digest(out) == digest(model)


@pytest.mark.parametrize("size", ["0", "5 apples", "-1", "GB", "1e3", ""])
def test_what_is_no_size_is_a_usage_error(model, tmp_path, size):
    out = tmp_path / "out"
    assert weighbridge("convert", model, f"{out}/", "--to", "safetensors", "--max-shard-size", size, status=2).stderr
    assert not out.exists()


def test_shards_need_a_folder_and_a_format_that_has_them(model, tmp_path):
    said = weighbridge("convert", model, tmp_path / "out.safetensors", "--max-shard-size", "40", status=2).stderr
    assert "end the name with /" in said and not (tmp_path / "out.safetensors").exists()
    assert "max-shard-size" in weighbridge("convert", model, tmp_path / "out.zt", "--max-shard-size", "40", status=2).stderr


def test_each_hint_about_shards_leads_to_a_command_that_works(model, tmp_path):
    """The name of a file, a folder without a format, and a model_type alone: each names --to safetensors."""
    flags = ["--max-shard-size", "40"]
    assert "; try --to safetensors" in weighbridge("convert", model, tmp_path / "out.safetensors", *flags, status=2).stderr
    for more in ([], ["--set", "hf.model_type=bert"]):
        done = weighbridge("convert", model, f"{tmp_path}/out/", *flags, *more, status=1)
        assert "--to safetensors writes shards without a config.json" in done.stderr and "ignore-setting" not in done.stderr
    weighbridge("convert", model, f"{tmp_path}/out/", *flags, "--to", "safetensors")
    assert len(shards_of(tmp_path / "out")[1]) == 5 and digest(tmp_path / "out") == digest(model)


def test_a_hugging_face_folder_is_sharded_too(model, tmp_path):
    out, named = tmp_path / "out", ["--set", "hf.model_type=other"]
    weighbridge("convert", model, f"{out}/", *named, "--max-shard-size", "40")
    assert f"ok (hf, {len(SIZES)} tensors" in weighbridge("verify", out).stdout
    assert (out / "config.json").exists() and len(shards_of(out)[1]) == 5
    # Back to one file: the index and its shards are removed, foreign files stay.
    (out / "README.md").write_text("mine")
    weighbridge("convert", model, f"{out}/", *named, "--force")
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    # Back to shards: the single file is removed.
    weighbridge("convert", model, f"{out}/", *named, "--force", "--max-shard-size", "60")
    assert not (out / "model.safetensors").exists() and f"ok (hf, {len(SIZES)} tensors" in weighbridge("verify", out).stdout
    # Shards of another number are stale.
    weighbridge("convert", model, f"{out}/", *named, "--force", "--max-shard-size", "40")
    assert len(list(out.glob("model-*.safetensors"))) == 5
    assert digest(out) == digest(model)


def test_shards_take_the_place_of_other_shards(model, tmp_path):
    out = tmp_path / "out"
    out.mkdir()  # an empty folder is allowed
    convert = ["convert", model, f"{out}/", "--to", "safetensors", "--max-shard-size"]
    weighbridge(*convert, "40")
    (out / "README.md").write_text("mine")
    assert "--overwrite" in weighbridge(*convert, "60", status=2).stderr
    assert len(list(out.glob("model-*-of-00005.safetensors"))) == 5
    weighbridge(*convert, "60", "--force")
    assert len(list(out.glob("model-*.safetensors"))) == len(shards_of(out)[1]) == 3
    weighbridge(*convert, "5GB", "--force")
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "model.safetensors"]
    assert digest(out) == digest(model)


def test_an_input_is_never_overwritten_nor_removed(model, tmp_path):
    out = tmp_path / "out"
    weighbridge("convert", model, f"{out}/", "--to", "safetensors", "--max-shard-size", "40")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    for source in (out, out / "model-00001-of-00005.safetensors"):
        for size in ("40", "5GB"):
            said = weighbridge("convert", source, f"{out}/", "--to", "safetensors", "--force", "--max-shard-size", size, "--allow", "part",
                               status=2).stderr
            assert "input" in said
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_shard_by_itself_is_one_file_with_a_note(model, tmp_path):
    out = tmp_path / "out"
    weighbridge("convert", model, f"{out}/", "--to", "safetensors", "--max-shard-size", "40")
    shard = out / "model-00002-of-00005.safetensors"
    verdict = validated(weighbridge("verify", "--json", shard).stdout, "verify")["files"][0]
    assert [finding["rule"] for finding in verdict["findings"]] == ["safetensors/shard-alone"]
    done = weighbridge("inspect", shard)
    assert "model.safetensors.index.json" in done.stdout + done.stderr


def test_a_name_of_one_of_one_does_not_outweigh_an_index_that_lists_more():
    """The command dropped the warning that the library gives."""
    path = ROOT / "corpus/safetensors/shard-missing-00001-of-00001.safetensors"
    verdict = validated(weighbridge("verify", "--json", path).stdout, "verify")["files"][0]
    assert [finding["rule"] for finding in verdict["findings"]] == ["safetensors/shard-alone"]


def test_shards_that_are_all_given_are_not_alone(model, tmp_path):
    """Each of them was once reported as one of several, whose index should be opened."""
    out = tmp_path / "out"
    weighbridge("convert", model, f"{out}/", "--to", "safetensors", "--max-shard-size", "40")
    shards = sorted(out.glob("model-*-of-*.safetensors"))
    assert len(shards) == 5
    for given, alone in ((shards, 0), (shards[::-1], 0), (shards[1:], 4), (shards[:2], 2)):
        verdicts = validated(weighbridge("verify", "--json", *given).stdout, "verify")["files"]
        assert sum(len(verdict["findings"]) for verdict in verdicts) == alone, given
        assert weighbridge("doctor", *given).stdout.count("shard-alone") == alone
    assert "shard-alone" not in weighbridge("inspect", *shards).stderr
    assert "shard-alone" in weighbridge("inspect", shards[0]).stderr
    joined = tmp_path / "joined.safetensors"
    assert "shard-alone" not in weighbridge("convert", *shards, "-o", joined).stderr
    assert digest(joined) == digest(out)
    # Two of five are half of a model.
    said = weighbridge("convert", *shards[:2], "-o", joined, "--force", status=1)
    assert "shard-alone" in said.stderr and "--allow part" in said.stderr
    weighbridge("convert", *shards[:2], "-o", joined, "--force", "--allow", "part")


def test_parts_of_a_split_model_that_are_all_given_are_taken_once(model, tmp_path):
    split, whole = tmp_path / "split", tmp_path / "whole.gguf"
    weighbridge("convert", model, f"{split}/", "--to", "gguf", "--max-shard-size", "40")
    parts = sorted(split.glob("*.gguf"))
    before = [part.read_bytes() for part in parts]
    assert len(parts) > 2
    refused = weighbridge("convert", *parts, status=2)
    assert "-o OUT" in refused.stderr and [part.read_bytes() for part in parts] == before
    weighbridge("convert", *parts, "-o", whole)
    assert digest(whole) == digest(parts[0])
    other = tmp_path / "other.safetensors"
    other.write_bytes(safetensors({"other": ("F32", [1], floats(1))}))
    weighbridge("convert", *parts[1:], other, "-o", tmp_path / "more.safetensors")
    assert f"{len(SIZES) + 1} tensors" in weighbridge("inspect", tmp_path / "more.safetensors").stdout


def test_a_dry_run_refuses_what_the_run_refuses(model, tmp_path):
    out = tmp_path / "out"
    words = ["--to", "safetensors", "--max-shard-size", "40"]
    weighbridge("convert", model, f"{out}/", *words)
    (tmp_path / "file").touch()
    for target, flags in ((f"{out}/", words), (tmp_path / "file", words), (f"{tmp_path}/new/", words[:2]), (tmp_path / "none/a.zt", []),
                          (tmp_path / "file", ["--to", "zt"]), (f"{tmp_path}/none/deep/", words)):
        before = sorted(tmp_path.rglob("*"))
        dry, run = (subprocess.run([COMMAND, "convert", model, target, *flags, *more], capture_output=True, text=True)
                    for more in (["--dry-run"], []))
        assert dry.returncode == run.returncode != 0 and sorted(tmp_path.rglob("*")) == before, (target, dry, run)
    assert "written" not in weighbridge("convert", model, f"{out}/", *words, "--dry-run", "--force").stdout


def test_the_size_of_shards_is_that_of_all_files(model, tmp_path):
    out = tmp_path / "out"
    weighbridge("convert", model, f"{out}/", "--to", "safetensors", "--max-shard-size", "40")
    size = sum(path.stat().st_size for path in out.iterdir())
    shown = validated(weighbridge("inspect", "--json", out).stdout, "inspect")["files"][0]
    assert shown["file_size"] == size == sum(source["size"] for source in shown["sources"])
    assert {source["name"] for source in shown["sources"]} == {path.name for path in out.iterdir()}
    assert f"{size:,} bytes" in weighbridge("verify", out).stdout


def test_a_shard_that_is_no_file_is_missing(model, tmp_path):
    """The command was blamed (status 2), and a pipe advised."""
    out = tmp_path / "out"
    weighbridge("convert", model, f"{out}/", "--to", "safetensors", "--max-shard-size", "40")
    shard = next(path for path in sorted(out.iterdir()) if path.name.startswith("model-00002"))
    shard.unlink()
    shard.mkdir()
    assert "safetensors/shard-missing" in weighbridge("verify", out, status=1).stdout


OPEN_FILES = 64


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))


def within_few_files(*words, status=0):
    """Each shard once kept its descriptor for as long as the model was open."""
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True, preexec_fn=few_files)
    assert done.returncode == status, (words, done)
    return done


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A model of 300 shards, and its index."""
    folder = tmp_path_factory.mktemp("many")
    places = {}
    for i in range(300):
        (folder / f"{i}.safetensors").write_bytes(safetensors({f"t{i:03}": ("F32", [2], floats(i, -i))}))
        places[f"t{i:03}"] = f"{i}.safetensors"
    (folder / "m.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return folder


def test_more_shards_than_the_process_may_open_files(many, tmp_path):
    index = many / "m.safetensors.index.json"
    assert "300" in within_few_files("verify", many).stdout
    one = tmp_path / "one.safetensors"
    within_few_files("convert", index, one)
    digests = {within_few_files("hash", "-q", path).stdout.split()[0] for path in (many, index, one)}
    assert len(digests) == 1
    within_few_files("diff", many, one)
    within_few_files("diff", many, index)
    assert within_few_files("inspect", "--stats", many).stdout.count("t2") >= 100


def test_more_files_of_a_split_gguf_than_the_process_may_open(many, tmp_path):
    weighbridge("convert", many, f"{tmp_path}/split/", "--to", "gguf", "--max-shard-size", "16")
    assert len(list((tmp_path / "split").iterdir())) > 200
    within_few_files("verify", tmp_path / "split")
    within_few_files("diff", many, tmp_path / "split")
