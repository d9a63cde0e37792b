# SPDX-License-Identifier: Apache-2.0
# The writer killed at each system call in turn, and each of its calls failing: the target is then the old file or the new one,
# byte for byte, and nothing survives the next run.
import subprocess

import pytest

from robustness import COMMAND, JOBS, contents, jobs, require_strace, run, strays

# Memory, signals and questions about descriptors change nothing on the disk: a kill there is a kill before the next call.
HARMLESS = {"execve", "brk", "mmap", "munmap", "mremap", "mprotect", "madvise", "arch_prctl", "set_tid_address", "rseq",
            "set_robust_list", "prlimit64", "futex", "rt_sigaction", "rt_sigprocmask", "fcntl", "ioctl", "exit_group", "getrandom",
            "sched_getaffinity", "access", "uname"}


@pytest.mark.parametrize("name", JOBS)
def test_killed_at_each_system_call(tmp_path, name):
    require_strace()
    job = jobs(tmp_path)[name]()
    calls = [call for call in job.system_calls() if call[0] not in HARMLESS]
    assert {"pwrite64", "fsync"} <= {call[0] for call in calls}, "the trace shows no writing"
    finished = 0
    for call, count, line in calls:
        where = f"killed at {line}"
        done = job.run_with(f"{call}:signal=KILL:when={count}")
        assert done.returncode in (-9, 137), f"{where}: it lived on: {done.returncode} {done.stderr}"
        finished += job.require_old_or_new(where)
        job.require_clean_next_run(where)
    assert 0 < finished < len(calls), "some kills come before the new file has its name, some after"


def test_a_writer_without_care_is_found_out(tmp_path):
    """The check itself: dd, which writes in place, leaves a part of its output behind when it is killed."""
    require_strace()
    job = jobs(tmp_path)["convert-force"]()
    job.target.write_bytes(job.old)
    (tmp_path / "whole").write_bytes(job.new)
    subprocess.run(["strace", "-qq", "-o", "/dev/null", "--inject=write:signal=KILL:when=2", "dd", "bs=64",
                    f"if={tmp_path / 'whole'}", f"of={job.target}"], capture_output=True, timeout=60)
    with pytest.raises(AssertionError, match="neither old nor new"):
        job.require_old_or_new("dd")


# What may fail on a disk, and how.
ERRORS = {"pwrite64": ["ENOSPC", "EIO"], "write": ["EIO"], "fallocate": ["ENOSPC"], "ftruncate": ["EIO"], "fsync": ["EIO"],
          "renameat2": ["EIO", "ENOSPC"], "renameat": ["EIO", "ENOSPC"], "fchmod": ["EIO"], "flock": ["ENOLCK"],
          "pread64": ["EIO"], "openat": ["EMFILE"], "getdents64": ["EIO"]}
# Where the job may go on without it: what is stale stays, a filesystem has no locks.
GOES_ON = {"getdents64", "flock", "openat"}


@pytest.mark.parametrize("name", JOBS)
def test_each_call_that_fails_is_status_4(tmp_path, name):
    require_strace()
    job = jobs(tmp_path)[name]()
    tried = set()
    for call, count, line in job.system_calls():
        for error in ERRORS.get(call, []):
            if call == "write" and not line.startswith("write(1"):
                continue  # words on stderr
            where = f"{error} from {line}"
            done = job.run_with(f"{call}:error={error}:when={count}")
            published = job.require_old_or_new(where)
            assert strays(tmp_path) == [], where
            if done.returncode == 0 and call in GOES_ON:
                assert published, where
                continue
            assert done.returncode == 4, f"{where}: status {done.returncode}: {done.stderr}"
            assert done.stderr.startswith("weighbridge: ") and len(done.stderr.splitlines()) == 1, f"{where}: {done.stderr!r}"
            tried.add(call)
    assert {"pwrite64", "fsync", "pread64"} <= tried


@pytest.mark.parametrize("name", ["convert", "convert-zstd", "convert-force", "append"])
def test_a_disk_that_lies_is_found_when_the_file_is_read_back(tmp_path, name):
    """Each write in turn reports success and writes nothing."""
    require_strace()
    job = jobs(tmp_path)[name]()
    lies = 0
    for call, count, line in job.system_calls():
        if call != "pwrite64":
            continue
        written = line.rsplit("=", 1)[1].strip()
        done = job.run_with(f"pwrite64:retval={written}:when={count}")
        assert done.returncode == 4, f"{line}: status {done.returncode}: {done.stderr}"
        assert contents(job.target) == job.old and strays(tmp_path) == [], line
        lies += 1
    assert lies > 0


@pytest.mark.parametrize("name", JOBS)
def test_interrupted_calls_go_on(tmp_path, name):
    require_strace()
    job = jobs(tmp_path)[name]()
    for call in ("pwrite64", "pread64", "openat"):
        done = job.run_with(f"{call}:error=EINTR:when=1")
        assert done.returncode == 0 and contents(job.target) == job.new, f"{call}: {done.returncode} {done.stderr}"


def test_a_live_writer_keeps_its_temporary(tmp_path):
    """What another process still writes is not stale: a second run leaves it alone, and both end well."""
    require_strace()
    job = jobs(tmp_path)["convert-force"]()
    job.reset()
    slow = subprocess.Popen(["strace", "-qq", "-o", "/dev/null", "--inject=fsync:delay_enter=1500000:when=1",
                             COMMAND, *map(str, job.arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        while strays(tmp_path) == []:
            assert slow.poll() is None, "it ended before its temporary was seen"
        held = strays(tmp_path)
        done = run(*job.arguments)
        assert done.returncode == 0, done.stderr
        assert strays(tmp_path) == held or slow.poll() is not None
    finally:
        assert slow.wait(60) == 0
    assert contents(job.target) == job.new and strays(tmp_path) == []
