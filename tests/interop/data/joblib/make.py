# SPDX-License-Identifier: Apache-2.0
"""Writes the files of this folder with joblib, and what joblib.load() gives for them: expected.json."""
import json
import pathlib

import joblib
import numpy as np

HERE = pathlib.Path(__file__).parent
OURS = {"float64": "f64", "float32": "f32", "int64": "i64", "uint8": "u8", "bool": "bool"}
CONTENTS = {
    "arrays.joblib": {"w": np.arange(6.0).reshape(2, 3), "fortran": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)), "big": np.arange(4, dtype=">i8"),
                      "empty": np.zeros((0, 3)), "scalar": np.array(2.5), "flags": np.array([True, False]), "step": 7, "name": "x"},
    "objects.joblib": {"w": np.arange(3, dtype=np.uint8), "o": np.array(["a", "b"], dtype=object), "texts": np.array(["ab", "c"]), "behind": 5},
}


def main():
    expected = {}
    for protocol in (2, 4, 5):
        for file, content in CONTENTS.items():
            name = f"{protocol}_{file}"
            joblib.dump(content, HERE / name, protocol=protocol)
            loaded = joblib.load(HERE / name)
            arrays = {key: value for key, value in loaded.items() if isinstance(value, np.ndarray) and value.dtype.name in OURS}
            expected[name] = {
                "arrays": {key: {"dtype": OURS[value.dtype.name], "shape": list(value.shape),
                                 "hex": np.ascontiguousarray(value.astype(value.dtype.newbyteorder("="))).tobytes().hex()} for key, value in arrays.items()},
                "values": {key: value for key, value in loaded.items() if not isinstance(value, np.ndarray)},
                "status": 0 if len(arrays) + 2 == len(loaded) else 3}
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
