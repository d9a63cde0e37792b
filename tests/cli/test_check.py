# SPDX-License-Identifier: Apache-2.0
"""check: a model for each demand of a policy that breaks it, the ready policies, JSON and SARIF."""
import hashlib
import json
import os
import pickle
import re
import struct

import pytest

from conftest import ROOT, safetensors, validated, weighbridge

NAN = struct.pack("<3f", float("nan"), float("inf"), 1)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(safetensors({"a": ("F32", [3], bytes(4 * 3)), "mask": ("F32", [1], struct.pack("<f", float("-inf")))}))
    return path


def check(path, policy, *flags, status=0):
    """The result for one model."""
    text = json.dumps(policy)
    file = (path if path.is_dir() else path.parent).parent / "policy.json"
    file.write_text(text)
    done = weighbridge("check", path, "--policy", file, "--json", *flags, status=status)
    [found] = validated(done.stdout, "check")["files"]
    assert found["passed"] == (status in (0, 3))
    return found


def broken(found):
    return [(each["demand"], each["finding"]["rule"], each["finding"]["tensor"]) for each in found["breaches"]]


@pytest.mark.parametrize("policy, breaches", [
    ({"formats": ["gguf", "zt"]}, [("formats", "policy/format", None)]),
    ({"dtypes": ["f16", "bf16"]}, [("dtypes", "policy/dtype", "a"), ("dtypes", "policy/dtype", "mask")]),
    ({"tensors": ["a", "b"]}, [("tensors", "policy/tensor", "mask"), ("tensors", "policy/tensor", "b")]),
    ({"shapes": {"a": [4], "mask": [1]}}, [("shapes", "policy/shape", "a")]),
    ({"shapes": {"a": [3]}}, [("shapes", "policy/tensor", "mask")]),
    ({"max_size": "20B"}, [("max_size", "policy/size", None)]),
    ({"max_file_size": 20}, [("max_file_size", "policy/size", None)]),
    ({"limits": {"header": 16}}, [("limits", "limit/header", None)]),
    ({"content": ["wb2:" + 64 * "0", 64 * "1"]}, [("content", "policy/digest", None)]),
    ({"sha256": [64 * "0"]}, [("sha256", "policy/digest", None)]),
    ({"keys": ["-----BEGIN PUBLIC KEY-----"]}, [("keys", "policy/signature", None)]),
])
def test_each_demand_finds_what_breaks_it(model, policy, breaches):
    found = check(model, policy, status=1)
    assert broken(found) == breaches
    for each in found["breaches"]:
        assert not each["finding"].get("hint") or each["demand"] != "limits"


def test_each_demand_accepts_what_meets_it(model):
    digest = weighbridge("hash", model).stdout.split()[0]
    check(model, {"formats": ["safetensors"], "dtypes": ["f32"], "tensors": ["a", "mask"], "shapes": {"a": [3], "mask": [1]},
                  "max_size": "1KiB", "max_file_size": 1024, "limits": {"header": "1MB"}, "content": [64 * "1", digest],
                  "sha256": [hashlib.sha256(model.read_bytes()).hexdigest()], "code": [], "globals": [], "complete": True, "warnings": [],
                  "max_nan": 0, "max_infinite": 0})
    check(model, {})


def test_nan_and_infinity_are_counted_and_a_mask_is_none(model):
    model.write_bytes(safetensors({"a": ("F32", [3], NAN), "mask": ("F32", [1], struct.pack("<f", float("-inf")))}))
    found = check(model, {"max_nan": 0}, status=1)
    assert broken(found) == [("max_nan", "doctor/not-finite", "a")]
    header = 8 + int.from_bytes(model.read_bytes()[:8], "little")
    assert found["breaches"][0]["finding"]["offset"] == header
    check(model, {"max_nan": 1, "max_infinite": 1})
    assert broken(check(model, {"max_infinite": 0}, status=1)) == [("max_infinite", "doctor/not-finite", "a")]


def test_numbers_that_a_limit_forbids_to_read_do_not_pass(tmp_path):
    path = tmp_path / "a.zt"
    source = tmp_path / "a.safetensors"
    source.write_bytes(safetensors({"w": ("F32", [4096], bytes(4 * 4096))}))
    weighbridge("convert", source, path, "--encoding", "zstd")
    assert broken(check(path, {"max_nan": 0}, "--limit", "decoded=100", status=1))


def folder(tmp_path, **files):
    out = tmp_path / "model"
    out.mkdir()
    (out / "config.json").write_text(json.dumps({"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 4, **files.pop("config", {})}))
    layer = "model.layers.0."
    names = ["model.embed_tokens", "model.norm", *(layer + each for each in (
        "input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "post_attention_layernorm",
        "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"))]
    tensors = {name + ".weight": ("F32", [4], bytes(4 * 4)) for name in names if name != files.get("without")}
    (out / "model.safetensors").write_bytes(safetensors(tensors, {"format": "pt"}))
    return out


def test_a_folder_lacks_a_tensor_that_its_config_implies(tmp_path):
    path = folder(tmp_path, without="model.layers.0.mlp.up_proj")
    [(demand, rule, tensor)] = broken(check(path, {"complete": True}, status=1))
    assert (demand, rule, tensor) == ("complete", "policy/incomplete", "model.layers.0.mlp.up_proj.weight")


def test_code_beside_the_weights(tmp_path):
    path = folder(tmp_path, config={"auto_map": {"AutoModel": "mine.Model"}})
    (path / "mine.py").write_text("import os\n")
    found = check(path, {"code": []}, status=1)
    assert {rule for _, rule, _ in broken(found)} == {"hf/remote-code", "hf/program"}
    assert {each["rule"] for each in check(path, {"code": ["hf/remote-code", "hf/program"]})["findings"]} >= {"hf/program"}
    assert broken(check(path, {"warnings": ["hf/program"]}, status=1))[0][:2] == ("warnings", "hf/remote-code")


def test_globals_outside_a_list():
    path = ROOT / "corpus/pytorch/unknown-global.pt"
    assert weighbridge("check", path, "--policy", "download", status=1).stdout.count("globals: ") == 1


def test_a_global_that_the_list_has_is_accepted(tmp_path):
    path = tmp_path / "a.pt"
    path.write_bytes((ROOT / "corpus/pytorch/unknown-global.pt").read_bytes())
    assert check(path, {"globals": ["yours.*"]}, status=1)
    assert check(path, {"formats": ["pytorch"]}, status=3)["not_known_safe"] == ["mine.Thing"]
    found = check(path, {"globals": ["mine.*"], "code": []})
    assert found["not_known_safe"] == [] and [each["rule"] for each in found["findings"]] == ["pytorch/unknown-global"]
    path.write_bytes((ROOT / "corpus/pytorch/dangerous-global-computed.pt").read_bytes())
    assert broken(check(path, {"globals": ["*"]}, status=1))[0][0] == "valid"


def test_shards_of_one_model_are_complete_together(tmp_path):
    names = [f"m-0000{i}-of-00002.safetensors" for i in (1, 2)]
    for i, name in enumerate(names):
        (tmp_path / name).write_bytes(safetensors({f"t{i}": ("F32", [1], bytes(4 * 1))}))
    assert "complete: " in weighbridge("check", tmp_path / names[0], status=1).stdout
    weighbridge("check", *(tmp_path / name for name in names))


def test_files_that_one_of_the_keys_signed(tmp_path, model):
    made = [tmp_path / name for name in ("key.pem", "public.pem", "other.pem", "other-public.pem")]
    import subprocess
    for private, public in (made[:2], made[2:]):
        try:
            subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", private], check=True)
        except FileNotFoundError:
            pytest.skip("needs openssl")
        subprocess.run(["openssl", "ec", "-in", private, "-pubout", "-out", public], check=True, stderr=subprocess.DEVNULL)
    signed = tmp_path / "m.sig"
    weighbridge("manifest", model, "-o", signed, "--key", made[0])
    ours, other = made[1].read_text(), made[3].read_text()
    check(model, {"keys": [other, ours]}, "--manifest", signed)
    assert "another key" in check(model, {"keys": [other]}, "--manifest", signed, status=1)["breaches"][0]["finding"]["message"]
    assert "no manifest" in check(model, {"keys": [ours]}, status=1)["breaches"][0]["finding"]["message"]
    model.write_bytes(safetensors({"a": ("F32", [1], bytes(4 * 1))}))
    assert broken(check(model, {"keys": [ours]}, "--manifest", signed, status=1))[0][:2] == ("keys", "manifest/changed")
    assert "several are given" in weighbridge("check", model, model, "--manifest", signed, status=2).stderr


def test_a_manifest_that_no_demand_reads_is_a_usage_error(tmp_path, model):
    """check --policy publish --manifest took the list, compared nothing, and said that the model meets the policy."""
    weighbridge("manifest", model, "-o", tmp_path / "m.sig", "--no-sign")
    done = weighbridge("check", model, "--policy", "publish", "--manifest", tmp_path / "m.sig", status=2)
    assert "the policy has no keys" in done.stderr


def test_every_model_beneath_a_folder(tmp_path, model):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "cut.safetensors").write_bytes(model.read_bytes()[:-1])
    done = weighbridge("check", "-r", tmp_path, "--policy", "download", "--sarif", status=1)
    [run] = json.loads(done.stdout)["runs"]
    assert [each["ruleId"] for each in run["results"]] == ["safetensors/truncated"]
    assert ": meets download" in weighbridge("check", "-r", tmp_path, status=1).stdout


class Runs:
    """A pickle of it runs a command when Python loads it."""

    def __reduce__(self):
        return os.system, ("true",)


def test_a_pickle_of_a_folder_is_reported_once(tmp_path, model):
    """check -r reported it with its folder, and again alone."""
    folder_ = tmp_path / "models/one"
    folder_.mkdir(parents=True)
    (folder_ / "model.safetensors").write_bytes(model.read_bytes())
    (folder_ / "config.json").write_text('{"model_type": "bert"}')
    (folder_ / "optimizer.pt").write_bytes(pickle.dumps(Runs(), 2))
    (tmp_path / "models/alone.pt").write_bytes(pickle.dumps(Runs(), 2))
    out = weighbridge("check", "-r", tmp_path / "models", status=1).stdout
    assert out.count("(hf/pickle-beside)") == 1 and out.count("does NOT meet download") == 2, out
    assert "optimizer.pt: does NOT" not in out and "alone.pt: does NOT meet" in out


def test_a_breach_is_an_error_and_what_it_lacks_is_null(tmp_path, model):
    """Lines and SARIF said error where --json said warning, and "expected" was "" or null."""
    path = tmp_path / "evil.pt"
    path.write_bytes(pickle.dumps(Runs(), 2))
    breaches = validated(weighbridge("check", path, "--json", status=1).stdout, "check")["files"][0]["breaches"]
    assert breaches and all(each["finding"]["severity"] == "error" for each in breaches)
    assert all(each["finding"][key] != "" for each in breaches for key in ("expected", "found")) and any(each["finding"]["found"] for each in breaches)


def test_what_was_checked_names_the_values_that_were_read():
    """publish reads every tensor for NaN, and the line said "structure only"."""
    path = ROOT / "examples/sample.safetensors"
    assert "meets publish (safetensors, structure, and values for NaN: safetensors has no checksums)" in weighbridge("check", path, "--policy", "publish").stdout
    assert "structure only" in weighbridge("check", path).stdout


def test_the_ready_policies(model):
    for name in ("download", "publish", "strict"):
        assert f"m.safetensors: meets {name} (safetensors, structure" in weighbridge("check", model, "--policy", name).stdout
    assert weighbridge("check", model).stdout == weighbridge("check", model, "--policy", "download").stdout
    model.write_bytes(safetensors({"a": ("F32", [3], NAN)}))
    weighbridge("check", model)
    assert weighbridge("check", model, "--policy", "publish", status=1).stdout.endswith("does NOT meet publish (1 finding): max_nan\n")
    assert weighbridge("check", model, "--policy", "strict", "--quiet", status=1).stdout == ""


@pytest.mark.parametrize("name, text, sentence", [
    ("publsh", None, "there is no policy 'publsh', and no such file; did you mean 'publish'?"),
    ("mine", None, "there is no policy 'mine', and no such file: the ready ones are download, publish and strict"),
    ("./publish", None, "cannot be opened"),
    ("p.json", '{"dtype": ["f16"]}', "p.json: line 1 of the policy, at dtype: a policy has no such key; the nearest is \"dtypes\""),
    ("p.json", '{"keys": ["public.pem"]}', "line 1 of the policy, at keys[0]: expected the text of a public key (PEM), found \"public.pem\""),
])
def test_a_policy_that_is_none_is_a_usage_error(tmp_path, model, name, text, sentence):
    if text:
        (tmp_path / name).write_text(text)
    done = weighbridge("check", model, "--policy", name, status=4 if name == "./publish" else 2, cwd=tmp_path)
    assert sentence in done.stderr and done.stdout == "" and done.stderr.count("\n") == 1


def test_sarif_has_a_result_for_each_finding_with_its_byte(tmp_path, model):
    other = tmp_path / "ein ö.safetensors"
    other.write_bytes(safetensors({"a": ("F64", [1], bytes(8))})[:-3])
    done = weighbridge("check", "m.safetensors", other, "--policy", "download", "--sarif", status=1, cwd=tmp_path)
    sarif = json.loads(done.stdout)
    [run] = sarif["runs"]
    assert sarif["version"] == "2.1.0" and run["invocations"] == [{"executionSuccessful": True}]
    [result] = run["results"]
    assert result["ruleId"] == "safetensors/truncated" and result["level"] == "error"
    [rule] = run["tool"]["driver"]["rules"]
    assert rule["id"] == "safetensors/truncated" and "doctor" in rule["help"]["text"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == f"file://{tmp_path}/ein%20%C3%B6.safetensors"
    expected = json.loads(weighbridge("verify", other, "--json", status=1).stdout)["files"][0]["findings"][0]
    assert place["region"] == {"byteOffset": expected["offset"], "byteLength": 1} and expected["message"] in result["message"]["text"]
    absent = weighbridge("check", "absent.safetensors", "m.safetensors", "--sarif", status=4, cwd=tmp_path)
    assert json.loads(absent.stdout)["runs"][0]["invocations"] == [{"executionSuccessful": False}] and "absent" in absent.stderr
    assert "cannot be used together" in weighbridge("check", model, "--sarif", "--json", status=2).stderr
    weighbridge("check", "m.safetensors", other, "--sarif", "-o", "out.sarif", status=1, cwd=tmp_path)
    assert (tmp_path / "out.sarif").read_text() == done.stdout
    again = weighbridge("check", "m.safetensors", "--sarif", "-o", "out.sarif", status=2, cwd=tmp_path)
    assert "--overwrite" in again.stderr and again.stdout == ""
    assert "meets download" in weighbridge("check", "m.safetensors", "--sarif", "-o", "out.sarif", "-f", cwd=tmp_path).stdout
    assert "no effect without --sarif" in weighbridge("check", model, "-o", "x.sarif", status=2, cwd=tmp_path).stderr


def test_a_flag_of_another_verb_names_that_verb(model):
    assert "verify takes no --policy: that is a flag of check; usage: " in weighbridge("verify", model, "--policy", "strict", status=2).stderr


def test_standard_input(model):
    with model.open("rb") as stream:
        assert weighbridge("check", "-", stdin=stream).stdout.startswith("standard input: meets download")


def test_the_page_has_the_demands_of_the_schema_and_the_ready_policies():
    page = (ROOT / "docs/policies.md").read_text()
    schema = json.loads((ROOT / "docs/schemas/policy.json").read_text())["properties"]
    rows = re.findall(r"^\| `(\w+)` \|", page.split("| key | demand |")[1], re.M)
    assert sorted(rows) == sorted(set(schema) - {"$schema"})
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.S)]
    jsonschema = pytest.importorskip("jsonschema")
    for block in blocks:
        jsonschema.validate(block, json.loads((ROOT / "docs/schemas/policy.json").read_text()))
    assert blocks
