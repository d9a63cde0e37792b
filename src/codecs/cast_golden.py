# SPDX-License-Identifier: Apache-2.0
"""Prints cast_golden.inc: what ml_dtypes (PyPI, here 0.6.0) makes of every f16 and bf16 value in each narrow type, and of every
narrow code in f32, as CRC-32 sums. NaN inputs are taken as 0, NaN results of decoding as 0x7fc00000. Needs numpy and ml_dtypes."""
import warnings
import zlib

import ml_dtypes as m
import numpy as np

warnings.simplefilter("ignore")
TYPES = {
    "f16": np.float16, "bf16": m.bfloat16, "f8_e4m3": m.float8_e4m3fn, "f8_e5m2": m.float8_e5m2, "f8_e8m0": m.float8_e8m0fnu,
    "f8_e4m3fnuz": m.float8_e4m3fnuz, "f8_e5m2fnuz": m.float8_e5m2fnuz, "f6_e2m3": m.float6_e2m3fn, "f6_e3m2": m.float6_e3m2fn,
    "f4": m.float4_e2m1fn,
}
BITS = {"f16": 16, "bf16": 16, "f6_e2m3": 6, "f6_e3m2": 6, "f4": 4}


def decoded(name):
    bits = BITS.get(name, 8)
    codes = np.arange(1 << bits, dtype=np.uint16 if bits == 16 else np.uint8)
    return codes.view(TYPES[name]).astype(np.float32)


def crc(array):
    return zlib.crc32(array.tobytes())


print("// SPDX-License-Identifier: Apache-2.0")
print("// Made by cast_golden.py; not to be edited. name, CRC-32 of all codes as f32, of all f16 values and of all bf16 values as codes.")
for name, dtype in TYPES.items():
    bits = decoded(name).view(np.uint32).copy()
    bits[np.isnan(decoded(name))] = 0x7FC00000
    sums = [crc(bits)]
    for source in ("f16", "bf16"):
        values = decoded(source).copy()
        values[np.isnan(values)] = 0
        codes = values.astype(dtype)
        sums.append(0 if name == "f8_e8m0" else crc(codes.view(np.uint16 if BITS.get(name) == 16 else np.uint8)))
    print("{DType::%s, %s}," % (name, ", ".join("0x%08xu" % s for s in sums)))
