# SPDX-License-Identifier: Apache-2.0
"""Makes a GGUF of 8 bits from a checkpoint, and says what that cost: shrink.py SOURCE OUTPUT.gguf"""
import os
import sys

import weighbridge as wb


def main(source: str, output: str) -> None:
    plan = wb.plan(source, "gguf", quantize="q8_0", allow="precision")  # nothing is written yet
    for blocker in plan.blockers:
        sys.exit(f"{source} cannot become a GGUF: {blocker}")
    print(f"{len(plan.losses)} tensors lose precision; {os.path.getsize(source):,} bytes become {plan.output_size:,}")
    wb.convert(source, output, quantize="q8_0", allow="precision")
    changed = [(tensor.values.max_abs, tensor.name) for tensor in wb.diff(source, output).tensors if tensor.values]
    for difference, name in sorted(changed, reverse=True)[:3]:
        print(f"{difference:.6f}  {name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
