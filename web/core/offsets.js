// SPDX-License-Identifier: Apache-2.0
// Positional reads and writes, and lengths, past 2 GiB: Emscripten 3.1.6 drops the upper half of these three offsets.
// The two halves of an i64 make a double that is exact up to 2^53.
mergeInto(LibraryManager.library, {
  $exactOffset: function (low, high) {
    return (low >>> 0) + high * 4294967296;
  },
  fd_pread__deps: ["$SYSCALLS", "$exactOffset"],
  fd_pread__sig: "iiiiji",
  fd_pread: function (fd, iov, iovcnt, low, high, pnum) {
    try {
      var stream = SYSCALLS.getStreamFromFD(fd);
      HEAPU32[pnum >>> 2] = SYSCALLS.doReadv(stream, iov, iovcnt, exactOffset(low, high));
      return 0;
    } catch (e) {
      if (typeof FS == "undefined" || !(e instanceof FS.ErrnoError)) throw e;
      return e.errno;
    }
  },
  fd_pwrite__deps: ["$SYSCALLS", "$exactOffset"],
  fd_pwrite__sig: "iiiiji",
  fd_pwrite: function (fd, iov, iovcnt, low, high, pnum) {
    try {
      var stream = SYSCALLS.getStreamFromFD(fd);
      HEAPU32[pnum >>> 2] = SYSCALLS.doWritev(stream, iov, iovcnt, exactOffset(low, high));
      return 0;
    } catch (e) {
      if (typeof FS == "undefined" || !(e instanceof FS.ErrnoError)) throw e;
      return e.errno;
    }
  },
  __syscall_ftruncate64__deps: ["$SYSCALLS", "$FS", "$exactOffset"],
  __syscall_ftruncate64__sig: "iij",
  __syscall_ftruncate64: function (fd, low, high) {
    try {
      FS.ftruncate(fd, exactOffset(low, high));
      return 0;
    } catch (e) {
      if (typeof FS == "undefined" || !(e instanceof FS.ErrnoError)) throw e;
      return -e.errno;
    }
  },
});
