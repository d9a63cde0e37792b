# SPDX-License-Identifier: Apache-2.0
"""Runs inside the environment of PyPI's ztensor 0.1.4: ztensor0_write.py FILE PLAN writes what PLAN says. PLAN is JSON:
[{"name", "dtype" (numpy's), "shape", "bytes" (hexadecimal)}]."""
import json
import sys

import ml_dtypes  # noqa: F401  numpy knows bfloat16 by its name then
import numpy as np
import ztensor

with open(sys.argv[2], encoding="utf-8") as file:
    plan = json.load(file)
with ztensor.Writer(sys.argv[1]) as writer:
    for t in plan:
        array = np.frombuffer(bytes.fromhex(t["bytes"]), np.dtype(t["dtype"])).reshape(t["shape"])
        writer.add_tensor(t["name"], array)
