# SPDX-License-Identifier: Apache-2.0
"""Runs the code of slime and SkyRL that publishes and applies differences between checkpoints, from checkouts of their repositories.

deltas_peers.py write slime|skyrl CHECKOUT BASE RESULT OUT [ENCODING CHECKSUM]: what they publish for RESULT over BASE, as a folder
deltas_peers.py apply slime|skyrl CHECKOUT BASE DELTA: applies it to BASE, a folder, in place

Both are modules of trainers: what they need of Megatron, Ray and the rest is replaced here by nothing, except that one process is all there is.
"""
import importlib
import importlib.util
import json
import pathlib
import re
import shutil
import sys
import tempfile
import types

import safetensors.torch


def package(name, path=None, **members):
    """A package that imports nothing by itself."""
    module = types.ModuleType(name)
    module.__path__ = [str(path)] if path else []
    for key, value in members.items():
        setattr(module, key, value)
    sys.modules[name] = module
    return module


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def slime(checkout):
    """slime's publisher, without what gathers tensors from GPUs."""
    root = checkout / "slime"
    package("ray", get=lambda refs: refs)
    package("ray.actor", ActorHandle=object)
    package("megatron")
    package("megatron.core", mpu=types.SimpleNamespace())
    for name in ("slime", "slime.utils", "slime.backends", "slime.backends.megatron_utils", "slime.backends.megatron_utils.update_weight"):
        package(name, checkout / name.replace(".", "/"))
    package("slime.utils.distributed_utils", get_gloo_group=lambda: None)
    sys.modules["slime.utils"].accelerator = types.SimpleNamespace(current_device=lambda: "cpu")
    package("slime.backends.megatron_utils.update_weight.update_weight_from_distributed", UpdateWeightFromDistributed=object)
    module = load("slime.backends.megatron_utils.update_weight.update_weight_from_disk_delta",
                  root / "backends/megatron_utils/update_weight/update_weight_from_disk_delta.py")

    def gather(out, value, group=None):
        out[0] = value

    module.dist = types.SimpleNamespace(get_rank=lambda: 0, get_world_size=lambda: 1, barrier=lambda group=None: None, all_gather_object=gather)
    return module


def write_slime(checkout, base, result, out, encoding, checksum):
    module = slime(checkout)
    work = module.UpdateWeightFromDiskDelta.__new__(module.UpdateWeightFromDiskDelta)
    work.delta_encoding, work.checksum_algorithm, work.weight_version, work._is_pp_src_rank = encoding, checksum, 1, True
    with tempfile.TemporaryDirectory() as folder:
        work.delta_dir = folder
        read = module.make_tensor_reader(str(base))
        tensors = safetensors.torch.load_file(result)
        work._snapshot = {name: read(name) for name in tensors}
        work._iter_hf_tensors = lambda: iter(tensors.items())
        work._publish()
        shutil.copytree(pathlib.Path(folder) / "weight_v000001", out)


def apply_slime(checkout, base, delta):
    """The receiver is a patch of SGLang: the lines that it adds are the module."""
    patch = (checkout / "docker/patch/latest/sglang-pull_weights.patch").read_text()
    added = re.search(r"^\+\+\+ b/python/sglang/srt/weight_sync/local_checkpoint\.py\n@@[^\n]*\n((?:\+[^\n]*\n)+)", patch, re.M).group(1)
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "local_checkpoint.py"
        source.write_text("".join(line[1:] for line in added.splitlines(keepends=True)))
        module = load("local_checkpoint", source)
        (base / module.SYNC_DIR).mkdir(exist_ok=True)
        stated = json.loads((delta / "model.safetensors.index.json").read_text())["metadata"]
        module._write_applied_version(str(base), int(stated["base_version"]))
        module._apply_delta(str(base), str(delta))


def skyrl(checkout):
    for name in ("skyrl", "skyrl.backends", "skyrl.backends.skyrl_train", "skyrl.backends.skyrl_train.weight_sync"):
        package(name, checkout / name.replace(".", "/"))
    return importlib.import_module("skyrl.backends.skyrl_train.weight_sync.delta_checkpoint")


def write_skyrl(checkout, base, result, out):
    module = skyrl(checkout)
    tensors = safetensors.torch.load_file(result)
    with tempfile.TemporaryDirectory() as folder:
        publisher = module.DeltaCheckpointPublisher(str(base), f"{folder}/sync", f"{folder}/staging")
        chunk = types.SimpleNamespace(names=list(tensors), tensors=list(tensors.values()))
        publisher.publish(publisher.create_delta_files([chunk]))
        shutil.copytree(pathlib.Path(folder) / "sync/delta-00000001", out)


def apply_skyrl(checkout, base, delta):
    module = skyrl(checkout)
    with tempfile.TemporaryDirectory() as folder:
        store = module.LocalCheckpointStore(str(base), folder)
        stated = json.loads((delta / "manifest.json").read_text())
        store._ensure_mutable_weights_dir()
        store._apply_delta_manifest(module.DeltaManifest.from_json(stated), delta)
        for file in store.weights_dir.glob("*.safetensors"):
            shutil.copyfile(file, base / file.name)


def main():
    job, peer, checkout, *rest = sys.argv[1:]
    paths, words = [pathlib.Path(each) for each in (checkout, *rest[:3])], rest[3:]
    work = {("write", "slime"): write_slime, ("apply", "slime"): apply_slime, ("write", "skyrl"): write_skyrl, ("apply", "skyrl"): apply_skyrl}
    work[job, peer](*paths, *words)


if __name__ == "__main__":
    main()
