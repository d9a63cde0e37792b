# SPDX-License-Identifier: Apache-2.0
"""The command's own tables, for tests that go over all of them: verbs and actions as its help lists them, and rows of its sources."""
import functools
import re
import subprocess

from conftest import COMMAND, ROOT

OF_ACTIONS = "\nFlags of every action:"  # in the help of a verb with actions


@functools.cache
def help_of(*words):
    """None if there is no such verb or action."""
    done = subprocess.run([COMMAND, *words, "--help"], capture_output=True, text=True, timeout=60)
    return done.stdout if done.returncode == 0 else None


def groups():
    """Name of the group -> its verbs. `help` is none of them."""
    found = re.findall(r"^([A-Z][a-z]+):\n((?:  .*\n)+)", help_of().split("Exit status:")[0], re.M)
    return {name: [verb for verb in re.findall(r"^  ([a-z]+)\b", rows, re.M) if verb != "help"] for name, rows in found}


def verbs():
    return [verb for group in groups().values() for verb in group]


def action_verbs():
    return [verb for verb in verbs() if OF_ACTIONS in help_of(verb)]


def actions(verb):
    """The name and step of every action that the verb's help lists: ["quality-gate", "runtime-smoke"]."""
    rows = re.findall(r"^  ([a-z][a-z -]*[a-z])(?= [\[A-Z])", help_of(verb).split(OF_ACTIONS)[0], re.M)
    return [row.split(" ") for row in rows] if verb in action_verbs() else []


def pages():
    """The words of every page of help."""
    return [[verb] for verb in verbs()] + [[verb, *words] for verb in action_verbs() for words in actions(verb)]


def rows(table, macro):
    """The text of each row of cli/<table>_rows.def."""
    return (ROOT / f"cli/{table}_rows.def").read_text().split(f"\n{macro}(")[1:]


def other_names():
    """Flags that are accepted and not listed."""
    return {"--" + word for row in rows("flag", "WB_FLAG") for words in re.findall(r'\.also = "([a-z -]+)"', row) for word in words.split()}
