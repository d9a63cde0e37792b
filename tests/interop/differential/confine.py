# SPDX-License-Identifier: Apache-2.0
"""Takes from this process what reading a file never needs: the network, new programs and processes, and writing anywhere.
Unpicklers run after this call, so a file that gets past a find_class still does nothing."""
import ctypes
import os
import platform
import resource
import socket
import struct
import sys

NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER = 38, 22, 2
EPERM = 1
# Numbers of execve, execveat, socket, socketpair, connect, bind, sendto, fork, vfork, ptrace, kill, tkill, tgkill, chmod, fchmodat, chown.
CALLS = {"x86_64": (0xC000003E, [59, 322, 41, 42, 49, 44, 57, 58, 101, 62, 200, 234, 90, 268, 92, 165, 310, 311]),
         "aarch64": (0xC00000B7, [221, 281, 198, 203, 200, 206, 117, 129, 130, 131, 53, 54, 40, 270, 271])}
LANDLOCK_CREATE, LANDLOCK_RESTRICT = 444, 446
# Rights of landlock's first version but those to read: execute, write_file, remove_*, make_*.
LANDLOCK_CHANGES = sum(1 << bit for bit in (0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12))


def _seccomp(libc):
    """Calls of a number on the list fail with EPERM; everything else goes on. Threads may be started."""
    if platform.machine() not in CALLS:
        return False
    architecture, calls = CALLS[platform.machine()]
    load, equal, give = 0x20, 0x15, 0x06
    program = [(load, 0, 0, 4), (equal, 1, 0, architecture), (give, 0, 0, 0x00050000 | EPERM), (load, 0, 0, 0)]
    for left, number in zip(range(len(calls), 0, -1), calls):
        program.append((equal, left, 0, number))
    program += [(give, 0, 0, 0x7FFF0000), (give, 0, 0, 0x00050000 | EPERM)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    about = struct.pack("=H6xQ", len(program), ctypes.addressof(code))
    return libc.prctl(SET_SECCOMP, FILTER, ctypes.c_char_p(about), 0, 0) == 0


def _landlock(libc):
    rules = libc.syscall(LANDLOCK_CREATE, ctypes.byref(ctypes.c_uint64(LANDLOCK_CHANGES)), ctypes.c_size_t(8), 0)
    if rules < 0:
        return False
    done = libc.syscall(LANDLOCK_RESTRICT, rules, 0) == 0
    os.close(rules)
    return done


def _no_sockets(*_, **__):
    raise PermissionError("no network here")


def confine(memory):
    """Returns what holds, in words. `memory`: bytes that the process may ask for beyond what it has."""
    held = ["no sockets in Python"]
    for name in ("socket", "SocketType", "create_connection", "create_server", "socketpair", "fromfd"):
        setattr(socket, name, _no_sockets)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0:
            if _landlock(libc):
                held.append("landlock: no file is written, made, removed or run")
            if _seccomp(libc):
                held.append("seccomp: no network, programs, processes or signals")
    now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + memory, now + memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return held
