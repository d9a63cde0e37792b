# SPDX-License-Identifier: Apache-2.0
"""What is in a model file, whatever its format: first_look.py FILE. It reads the header, and of the weights a few bytes."""
import sys

import weighbridge as wb


def main(path: str) -> None:
    with wb.open(path) as model:
        print(model)
        for key, value in model.metadata.items():
            print(f"  {key} = {value}")
        for name, tensor in model.items():
            print(f"{name:50} {tensor.dtype:>5} {tensor.shape}")
        last = list(model)[-1]
    place = wb.explain(path, last)
    print(f"{last} begins at byte {place.offset:,}: {place.data[:8].hex(' ')} ...")


if __name__ == "__main__":
    main(sys.argv[1])
