# SPDX-License-Identifier: Apache-2.0
"""Checks every model file below a folder: check_folder.py FOLDER. Ends with status 1 if one is not valid."""
import pathlib
import sys

import weighbridge as wb

ENDINGS = {".safetensors", ".gguf", ".pt", ".pth", ".bin", ".ckpt", ".onnx", ".npy", ".npz", ".h5", ".keras", ".zt"}


def main(folder: str) -> int:
    invalid = 0
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.suffix not in ENDINGS:
            continue
        verdict = wb.verify(path)
        print(f"{path.name}: {'ok' if verdict.valid else 'INVALID'}, {verdict.format}, {verdict.tensors} tensors")
        for finding in verdict.findings:
            print(f"  {finding.severity} {finding.rule} at byte {finding.offset}: {finding.message}")
        invalid += not verdict.valid
    return 1 if invalid else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
