# SPDX-License-Identifier: Apache-2.0
"""Tests tools/dist.py with stand-ins for what is built, and install.sh beside a server on the loopback address."""
import functools
import hashlib
import http.server
import importlib.util
import io
import os
import pathlib
import shutil
import subprocess
import tarfile
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = pathlib.Path(os.environ.get("WEIGHBRIDGE", ROOT / "build/release/weighbridge")).resolve()
PROGRAM = b"#!/bin/sh\necho installed\n"
EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}


@pytest.fixture
def dist(tmp_path, monkeypatch):
    """The tool over a tree of stand-ins, where everything is built."""
    spec = importlib.util.spec_from_file_location("dist", ROOT / "tools/dist.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tree = tmp_path / "tree"
    monkeypatch.setattr(module, "ROOT", tree)
    for name in EPOCH.keys() | {"LC_ALL", "TZ"}:
        monkeypatch.setenv(name, "")  # which the tool sets
    before = os.umask(0o022)
    tree.mkdir()
    for name in ("CMakeLists.txt", "install.sh"):
        shutil.copy(ROOT / name, tree)
    version = module.version()
    files = {f"build/wheels/released/weighbridge-{version}-{python}-{python}-manylinux_2_17_{machine}.whl": b"wheel"
             for python in ("cp310", "cp311", "cp312") for machine in ("x86_64", "aarch64")}
    files |= {f"build/release/packages/{name}_{version}-1_amd64.deb": b"deb" for name in ("weighbridge", "libweighbridge-dev")}
    files |= {"build/release/pages/weighbridge.spdx.json": b"{}\n", f"build/web/weighbridge-{version}.tgz": b"npm",
              "build/wheels/released/weighbridge-0.0.1-cp310-cp310-manylinux_2_17_x86_64.whl": b"an older one"}
    for name, data in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(data)
    with tarfile.open(tree / module.ARCHIVE.format(version=version), "w:gz") as archive:
        member = tarfile.TarInfo(f"weighbridge-{version}-linux-x86_64/bin/weighbridge")
        member.size = len(PROGRAM)
        archive.addfile(member, io.BytesIO(PROGRAM))
    yield module
    os.umask(before)


def made(dist):
    return {path.name: path.read_bytes() for path in (dist.ROOT / "build/dist").iterdir()}


def test_everything_is_there_with_its_digest(dist, capsys):
    assert dist.main(["--built"], EPOCH) == 0
    files, version = made(dist), dist.version()
    assert len(files) == 14 and {"install.sh", "SHA256SUMS", f"weighbridge-{version}.spdx.json", f"weighbridge-{version}.tgz"} <= files.keys()
    command = dist.ROOT / f"build/dist/weighbridge-{version}-linux-x86_64"
    assert command.read_bytes() == PROGRAM and command.stat().st_mode & 0o777 == 0o755 and command.stat().st_mtime == 1700000000
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=command.parent, check=True)
    assert len(files["SHA256SUMS"].splitlines()) == len(files) - 1, "each file but the list itself"
    said = capsys.readouterr().out
    assert "not signed: DIST_KEY=FILE signs" in said and "install.sh has no address" in said and "left out" not in said


def test_the_same_files_make_the_same_bytes(dist):
    first = dist.main(["--built"], EPOCH), made(dist)
    for path in dist.ROOT.rglob("*"):
        os.utime(path, (1, 1))
    os.umask(0o077)
    assert (dist.main(["--built"], EPOCH), made(dist)) == first
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in (dist.ROOT / "build/dist").iterdir())


def test_a_part_that_is_not_there_is_named_and_fails(dist, capsys):
    for wheel in dist.ROOT.glob("build/wheels/released/*_aarch64.whl"):
        wheel.unlink()
    assert dist.main(["--built"], EPOCH) == 1
    assert "left out: wheels-aarch64, wheels for aarch64: 0 of 3 files build/wheels/released/" in capsys.readouterr().out
    assert f"weighbridge-{dist.version()}-linux-x86_64" in made(dist), "the rest is made"
    assert dist.main(["--built", "command", "deb"], EPOCH) == 0, "who asks for less gets no error"
    assert len(made(dist)) == 5


def test_the_reason_is_what_the_tool_said(dist, monkeypatch, capsys):
    """Two parts of one command run it once."""
    command = ["sh", "-c", "echo ran >> ran; echo the package ziglang cannot be fetched >&2; exit 3"]
    for name in ("wheels-x86_64", "wheels-aarch64"):
        monkeypatch.setitem(dist.PARTS, name, (name, [command], "build/no*", 1, None))
    monkeypatch.setitem(dist.PARTS, "npm", ("npm", [["no-such-program"]], "build/no*", 1, None))
    monkeypatch.setattr(dist, "git", lambda *words: "")
    assert dist.main(["wheels-x86_64", "wheels-aarch64", "npm"], EPOCH) == 1
    said = capsys.readouterr().out
    assert said.count("failed: the package ziglang cannot be fetched") == 2 and "no-such-program cannot be run: No such file" in said
    assert (dist.ROOT / "ran").read_text() == "ran\n"


@pytest.mark.parametrize("arguments, environment, message", [
    (["--built", "wheel"], {}, "no such part: wheel; there are command archive "),
    (["--built"], {"DIST_TAG": "v0.0.1"}, "the tag is v0.0.1, and CMakeLists.txt says version "),
    (["--built"], {"DIST_URL": "ftp://127.0.0.1/"}, "no address"),
    (["--built"], {"DIST_URL": "http://127.0.0.1.example/x"}, "no address"),
    (["--built"], {"DIST_URL": "https://127.0.0.1/'; true '"}, "no address"),
])
def test_what_cannot_be_published_is_refused_before_anything_is_built(dist, arguments, environment, message):
    with pytest.raises(SystemExit, match=message):
        dist.main(arguments, {**EPOCH, **environment})
    assert not (dist.ROOT / "build/dist").exists()


def test_a_release_of_uncommitted_changes_is_refused(dist):
    subprocess.run(["git", "init", "--quiet", dist.ROOT], check=True)
    with pytest.raises(SystemExit, match="this tree has changes"):
        dist.main(["command"], EPOCH)


def test_each_part_is_made_by_a_target_of_the_makefile(dist):
    targets = (ROOT / "Makefile").read_text()
    for _, commands, *_ in dist.PARTS.values():
        for command in commands:
            assert command[0] != "make" or f"\n{command[1]}:" in targets


@pytest.fixture
def keys(tmp_path):
    if not COMMAND.exists() or not shutil.which("openssl"):
        pytest.skip("the command or openssl is missing")
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", private], check=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True, capture_output=True)
    return private, public


def test_a_key_signs_every_file(dist, keys, capsys):
    private, public = keys
    assert dist.main(["--built"], {**EPOCH, "DIST_KEY": str(private), "WEIGHBRIDGE": str(COMMAND)}) == 0
    out, signature = dist.ROOT / "build/dist", f"weighbridge-{dist.version()}.sig"
    assert f"signed with {private}: {signature}" in capsys.readouterr().out
    verify = [COMMAND, "verify", out, "--manifest", out / signature, "--key", public]
    assert subprocess.run(verify).returncode == 0
    (out / "SHA256SUMS").write_text("")
    assert subprocess.run(verify).returncode == 1


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


@pytest.fixture
def published(dist, tmp_path):
    """What dist.py made, as a server of the loopback address has it: the folder, and a way to run its installer."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(dist.ROOT / "build/dist")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    assert dist.main(["--built"], {**EPOCH, "DIST_URL": url}) == 0
    out = dist.ROOT / "build/dist"

    def install(folder=tmp_path / "bin", script=None, **options):
        words = ["sh", "-s", folder]
        return subprocess.run(words, input=script or (out / "install.sh").read_text(), capture_output=True, text=True, timeout=60, **options)

    yield out, install
    server.shutdown()
    server.server_close()


needs_fetcher = pytest.mark.skipif(not shutil.which("curl") and not shutil.which("wget"), reason="curl or wget is missing")


@needs_fetcher
@pytest.mark.parametrize("fetcher", ["curl", "wget"])
def test_the_installer_installs_what_was_published(published, tmp_path, fetcher):
    if not shutil.which(fetcher):
        pytest.skip(f"{fetcher} is missing")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("uname", "mkdir", "mktemp", "rm", "grep", "sha256sum", "chmod", "mv", "sh", fetcher):
        (tools / name).symlink_to(shutil.which(name))
    _, install = published
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/weighbridge").write_text("an older one")
    done = install(env={"PATH": str(tools)})
    assert done.returncode == 0 and f"SHA-256 {hashlib.sha256(PROGRAM).hexdigest()}" in done.stdout and "is not in your PATH" in done.stdout
    assert subprocess.run([tmp_path / "bin/weighbridge"], capture_output=True).stdout == b"installed\n"
    assert os.listdir(tmp_path / "bin") == ["weighbridge"], "nothing temporary is left"


def changed(path):
    path.write_bytes(path.read_bytes() + b"#")


@needs_fetcher
@pytest.mark.parametrize("spoil, message", [
    (changed, "nothing was installed"),
    (lambda path: path.write_bytes(path.read_bytes()[:5]), "nothing was installed"),
    (lambda path: path.unlink(), "cannot be fetched"),
    (lambda path: path.with_name("SHA256SUMS").unlink(), "cannot be fetched"),
    (lambda path: path.with_name("SHA256SUMS").write_text("<html>"), "lists no command"),
])
def test_the_installer_refuses_what_was_not_published(published, tmp_path, spoil, message):
    out, install = published
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/weighbridge").write_text("an older one")
    spoil(next(out.glob("weighbridge-*-linux-x86_64")))
    done = install()
    assert done.returncode == 1 and message in done.stderr
    assert (tmp_path / "bin/weighbridge").read_text() == "an older one" and os.listdir(tmp_path / "bin") == ["weighbridge"]


def test_half_an_installer_does_nothing(published, tmp_path):
    _, install = published
    script = (ROOT / "install.sh").read_text()
    install(script=script[:script.rindex("main ")])
    assert not (tmp_path / "bin").exists()


def test_an_installer_for_another_processor_says_so(published, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "uname").write_text('#!/bin/sh\n[ "$1" = -s ] && echo Linux || echo aarch64\n')
    (tools / "uname").chmod(0o755)
    _, install = published
    done = install(env={"PATH": f"{tools}:{os.environ['PATH']}"})
    assert done.returncode == 1 and "no static command for Linux aarch64" in done.stderr and not (tmp_path / "bin").exists()


def test_the_installer_of_the_repository_names_no_host(tmp_path):
    """Nothing is published yet, so an address in the tree would be an invented one."""
    script = (ROOT / "install.sh").read_text()
    assert "address=''\n" in script
    done = subprocess.run(["sh", ROOT / "install.sh", tmp_path / "bin"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "has no address" in done.stderr and not (tmp_path / "bin").exists()


@needs_fetcher
def test_the_installer_fetches_from_no_other_scheme(published, dist):
    _, install = published
    done = install(script=dist.ADDRESS.sub("address='http://127.0.0.1.invalid/x'", (ROOT / "install.sh").read_text()))
    assert done.returncode == 1 and "not an https address" in done.stderr
