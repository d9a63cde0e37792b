# SPDX-License-Identifier: Apache-2.0
"""Which checkpoints hold the same tensors, in whatever format: same_tensors.py FILE... Prints a line for each group of equal ones."""
import collections
import sys

import weighbridge as wb


def main(paths: list[str]) -> None:
    groups: dict[str, list[str]] = collections.defaultdict(list)
    for path in paths:
        groups[wb.hash(path)].append(path)
    for digest, members in groups.items():
        print(digest[:12], *members)


if __name__ == "__main__":
    main(sys.argv[1:])
