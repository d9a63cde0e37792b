# SPDX-License-Identifier: Apache-2.0
# Runs the command on a pseudo-terminal (pty).
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from conftest import COMMAND
from waiting import in_the_middle

PATIENCE = 0.5  # seconds: cli/progress.cc draws no bar of a shorter job


class Terminal:
    """A command on a terminal with that many columns; `text` is everything that it has printed so far."""

    def __init__(self, *arguments, columns=80, out=None, **environment):
        self.parent, child = pty.openpty()
        self.resize(columns)
        self.process = subprocess.Popen([COMMAND, *map(str, arguments)], stdin=child, stdout=out or child, stderr=child,
                                        start_new_session=True, env={**os.environ, "NO_COLOR": "1", "TERM": "xterm", **environment})
        os.close(child)
        self.text, self.begun = "", time.monotonic()

    def resize(self, columns):
        fcntl.ioctl(self.parent, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))

    def read(self, until=None, seconds=90):
        """Reads to the end, or until the text contains a match."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (until and re.search(until, self.text)):
            if not select.select([self.parent], [], [], 0.05)[0]:
                continue
            try:
                piece = os.read(self.parent, 65536)
            except OSError:  # the other end is closed
                piece = b""
            if not piece:
                break
            self.text += piece.decode(errors="replace")
        assert not until or re.search(until, self.text), self.text[-300:]
        return self.text

    def linger(self, after=16 << 20):
        """Pauses the job in its middle until it is old enough for a bar, which it then draws at once: however fast it is, it shows one."""
        in_the_middle(self.process, after)
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(max(0, self.begun + PATIENCE - time.monotonic()))
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        self.read()
        os.close(self.parent)
        return self.process.wait(60)


def on_terminal(*arguments, columns=80, status=0, **environment):
    terminal = Terminal(*arguments, columns=columns, **environment)
    assert terminal.close() == status, terminal.text
    return terminal.text.replace("\r\n", "\n")
