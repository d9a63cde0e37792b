# SPDX-License-Identifier: Apache-2.0
# Kills the writer at each system call in turn, and makes each call fail. The output must be the old one or the new one, byte for
# byte, and the next run must remove leftovers. Of several files that belong together, the main one may be missing after a kill, but
# it must never be beside files of another model, and a next run that cannot write a byte must restore old or new.
import subprocess

import pytest

from jobs import JOBS, files_below, make_job, strays_below
from robustness import COMMAND, require_strace, run

# Calls for memory, signals and descriptor state change nothing on the disk: a kill there is like a kill before the next call.
HARMLESS = {"execve", "brk", "mmap", "munmap", "mremap", "mprotect", "madvise", "arch_prctl", "set_tid_address", "rseq",
            "set_robust_list", "prlimit64", "futex", "rt_sigaction", "rt_sigprocmask", "fcntl", "ioctl", "exit_group", "getrandom",
            "sched_getaffinity", "access", "uname"}
# Neither do stat, read and close, locks, what makes data durable, and what the sandbox calls. Some jobs are killed at these too, the
# others are not.
READING = {"read", "pread64", "preadv", "readlink", "stat", "lstat", "fstat", "newfstatat", "statx", "lseek", "fadvise64", "getdents64",
           "close", "clock_nanosleep", "sync_file_range", "faccessat2", "geteuid", "flock", "fsync", "prctl", "seccomp", "pipe2", "clone",
           "clone3", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"}
AT_EACH_CALL = JOBS[:6]
# A source folder has one file per tensor. Of the two jobs that write one, only the harder one, over an older folder, is tested.
STOPPED = [name for name in JOBS if name != "extract-source"]


def changing(name, calls):
    """The calls of a trace at which a kill may leave a different state than a kill at the next one."""
    calls = [call for call in calls if call[0] not in HARMLESS]
    if name in AT_EACH_CALL:
        return calls
    return [call for call in calls if call[0] not in READING and (not call[0].startswith("openat") or "O_CREAT" in call[2])]


@pytest.mark.parametrize("name", STOPPED)
def test_killed_at_each_system_call(tmp_path, name):
    require_strace()
    job = make_job(tmp_path, name)
    traced = job.system_calls()
    assert {"pwrite64", "fsync"} <= {call[0] for call in traced}, "the trace shows no writing"
    calls = changing(name, traced)
    finished, followed = 0, set()
    for call, count, line in calls:
        where = f"killed at {line}"
        done = job.run_with(f"{call}:signal=KILL:when={count}")
        assert done.returncode in (-9, 137), f"{where}: it lived on: {done.returncode} {done.stderr}"
        finished += job.require_old_or_new(where)
        left = job.left_behind()
        if name in AT_EACH_CALL or left not in followed:
            followed.add(left)
            job.require_clean_next_run(where)
    assert 0 < finished < len(calls), "some kills come before the new file has its name, some after"


def test_a_writer_without_care_is_found_out(tmp_path):
    """Checks the test itself: dd writes in place and leaves a partial output when it is killed."""
    require_strace()
    job = make_job(tmp_path, "convert-force")
    job.reset()
    (tmp_path / "whole").write_bytes(job.new[job.main])
    subprocess.run(["strace", "-qq", "-o", "/dev/null", "--inject=write:signal=KILL:when=2", "dd", "bs=64",
                    f"if={tmp_path / 'whole'}", f"of={job.there / job.main}"], capture_output=True, timeout=60)
    with pytest.raises(AssertionError, match="neither old nor new"):
        job.require_old_or_new("dd")


# What may fail on a disk, and how.
ERRORS = {"pwrite64": ["ENOSPC", "EIO"], "write": ["EIO"], "fallocate": ["ENOSPC"], "ftruncate": ["EIO"], "fsync": ["EIO"],
          "renameat2": ["EIO", "ENOSPC"], "renameat": ["EIO", "ENOSPC"], "fchmod": ["EIO"], "flock": ["ENOLCK"],
          "pread64": ["EIO"], "openat": ["EMFILE"], "getdents64": ["EIO"]}
# Calls whose failure the job may ignore: leftovers stay, or the filesystem has no locks.
GOES_ON = {"getdents64", "flock", "openat"}


# A long job makes many similar calls of these; only some of them are tested.
MANY = {"pread64", "openat", "getdents64", "flock"}
MOST = 8


def failing(name, calls):
    """(call, count, line, error) for each tested failure. Some jobs have each call fail in each way, the others in one way after the
    other."""
    for call in dict.fromkeys(call[0] for call in calls):
        alike = [each for each in calls if each[0] == call and call in ERRORS]
        step = -(-len(alike) // MOST) if call in MANY and name not in AT_EACH_CALL else 1
        for number, each in enumerate(alike[::step or 1]):
            errors = ERRORS[call]
            for error in errors if name in AT_EACH_CALL else [errors[number % len(errors)]]:
                yield *each, error


@pytest.mark.parametrize("name", STOPPED)
def test_each_call_that_fails_is_status_4(tmp_path, name):
    require_strace()
    job = make_job(tmp_path, name)
    tried = set()
    for call, count, line, error in failing(name, job.system_calls()):
        if call == "write" and not line.startswith("write(1"):
            continue  # messages on stderr
        where = f"{error} from {line}"
        done = job.run_with(f"{call}:error={error}:when={count}")
        published = job.require_old_or_new(where)
        found = files_below(job.there)
        refused = job.half is not None  # as require_old_or_new has seen
        assert found == job.new or job.untouched(found) or refused, f"{where}: it left {sorted(found)}"
        assert strays_below(job.there) == [], where
        if done.returncode == 0 and call in GOES_ON:
            assert published, where
            continue
        assert done.returncode == 4, f"{where}: status {done.returncode}: {done.stderr}"
        assert done.stderr.startswith("weighbridge: ") and len(done.stderr.splitlines()) == 1, f"{where}: {done.stderr!r}"
        tried.add(call)
    assert {"pwrite64", "fsync", "pread64"} <= tried


@pytest.mark.parametrize("name", JOBS)
def test_a_disk_that_lies_is_found_when_the_file_is_read_back(tmp_path, name):
    """Each write in turn reports success and writes nothing."""
    require_strace()
    job = make_job(tmp_path, name)
    lies = 0
    for call, count, line in job.system_calls():
        if call != "pwrite64":
            continue
        written = line.rsplit("=", 1)[1].strip()
        done = job.run_with(f"pwrite64:retval={written}:when={count}")
        if done.returncode == 0 and files_below(job.there) == job.new:
            continue  # the missing bytes are zero anyway
        # An .slm is sealed from the bytes on disk, and a missing scale breaks a rule of the format.
        refused = (1, 4) if "slm/scale-value" in done.stderr else (4,)
        assert done.returncode in refused, f"{line}: status {done.returncode}: {done.stderr}"
        assert not job.require_old_or_new(line) and strays_below(job.there) == [], line
        assert job.half is not None or job.untouched(files_below(job.there)), line
        lies += 1
    assert lies > 0


@pytest.mark.parametrize("name", JOBS)
def test_interrupted_calls_go_on(tmp_path, name):
    require_strace()
    job = make_job(tmp_path, name)
    for call in ("pwrite64", "pread64", "openat"):
        done = job.run_with(f"{call}:error=EINTR:when=1")
        assert done.returncode == 0 and files_below(job.there) == job.new, f"{call}: {done.returncode} {done.stderr}"


def size_of(path):
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def test_a_live_writer_keeps_its_temporary(tmp_path):
    """A file that another process still writes is not stale: a second run leaves it alone, and both succeed."""
    require_strace()
    job = make_job(tmp_path, "convert-force")
    job.reset()
    slow = subprocess.Popen(["strace", "-qq", "-o", "/dev/null", "--inject=fsync:delay_enter=1500000:when=1",
                             COMMAND, *map(str, job.arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        # Between its creation and its lock another run may remove a temporary, and its owner then makes a new one. A temporary with
        # bytes is locked.
        while not (held := [name for name in strays_below(job.there) if size_of(job.there / name) > 0]):
            assert slow.poll() is None, "it ended before its temporary was seen"
        done = run(*job.arguments)
        assert done.returncode == 0, done.stderr
        assert strays_below(job.there) == held or slow.poll() is not None
    finally:
        assert slow.wait(60) == 0
    assert files_below(job.there) == job.new and strays_below(job.there) == []
