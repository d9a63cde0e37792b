# SPDX-License-Identifier: Apache-2.0
"""Waits for what a running command does, instead of for the clock."""
import array
import fcntl
import os
import pathlib
import resource
import termios
import time


def until(happened, process=None, seconds=60):
    """Waits until `happened()` is true, and returns its value. The process must still run until then."""
    end = time.monotonic() + seconds
    while not (found := happened()):
        assert process is None or process.poll() is None, f"it ended too soon, with status {process.returncode}"
        assert time.monotonic() < end
        time.sleep(0.001)
    return found


def bytes_read(process):
    return int(pathlib.Path(f"/proc/{process.pid}/io").read_text().split()[1])


def in_the_middle(process, after=16 << 20):
    """Waits until the process has read so many bytes, more than it takes to load it."""
    until(lambda: bytes_read(process) >= after, process)


def until_it_reads(process):
    """Waits until the process has taken one byte from its standard input, a pipe."""
    process.stdin.write(b"x")
    process.stdin.flush()
    left = array.array("i", [0])
    until(lambda: fcntl.ioctl(process.stdin, termios.FIONREAD, left) == 0 and left[0] == 0, process)


def processor_time(process):
    """In seconds."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def _seconds_of(usage):
    return usage.ru_utime + usage.ru_stime


def stopped(process, number):
    """Sends a signal; returns what the process printed until its end, and the seconds of processor time that it still took."""
    before = processor_time(process) + _seconds_of(resource.getrusage(resource.RUSAGE_CHILDREN))
    process.send_signal(number)
    said = process.communicate(timeout=60)
    return said, _seconds_of(resource.getrusage(resource.RUSAGE_CHILDREN)) - before
