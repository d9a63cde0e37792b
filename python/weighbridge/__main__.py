# SPDX-License-Identifier: Apache-2.0
"""``python -m weighbridge``: runs the command that is installed with the package."""

from __future__ import annotations

import os
import sys
import sysconfig


def command() -> str:
    """The path of the command: in the scripts folder of this interpreter, of its user, or beside the package."""
    beside = os.path.dirname(os.path.abspath(__file__))
    places = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", os.name + "_user"),
              os.path.join(os.path.dirname(beside), "bin"), os.path.join(os.path.dirname(beside), "weighbridge.data", "scripts")]
    for place in places:
        found = os.path.join(place, "weighbridge")
        if os.path.isfile(found):
            return found
    raise FileNotFoundError("the command weighbridge is not installed with this package; looked in " + ", ".join(places))


if __name__ == "__main__":
    path = command()
    os.execv(path, [path, *sys.argv[1:]])
