"""Files of machines from Python."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

import holt


def test_bytes_go_in_and_out_exactly(machine: holt.Machine, folder: str) -> None:
    data = bytes(range(256)) * 300
    machine.write_file(f"{folder}/x", data)
    assert machine.read_file(f"{folder}/x") == data
    assert machine.read_file(f"{folder}/x", offset=255, length=3) == b"\xff\0\x01"
    machine.write_file(f"{folder}/x", "text ü")
    assert machine.read_file(f"{folder}/x") == "text ü".encode()
    machine.write_file(f"{folder}/x", bytearray(b"a"))
    machine.write_file(f"{folder}/y", memoryview(b"b"))
    machine.write_file(f"{folder}/empty", b"")
    assert [machine.read_file(f"{folder}/{name}") for name in ("x", "y", "empty")] == [b"a", b"b", b""]


def test_names_may_be_any_bytes(machine: holt.Machine, folder: str) -> None:
    name = b"\xff\n -x"
    machine.write_file(os.fsencode(folder) + b"/" + name, b"odd")
    [entry] = machine.list_dir(folder)
    assert os.fsencode(entry.name) == name
    assert machine.read_file(f"{folder}/{entry.name}") == b"odd"
    assert machine.exists(Path(folder) / entry.name)
    assert [os.fsencode(one.path) for one in machine.walk(folder)] == [name]


def test_facts_of_files(machine: holt.Machine, folder: str) -> None:
    machine.write_file(f"{folder}/a", b"12345", mode=0o640)
    machine.exec(["ln", "-s", "a", f"{folder}/link"])
    stat = machine.stat(f"{folder}/link")
    assert (stat.type, stat.size, stat.mode, stat.uid, stat.is_file, stat.is_dir) == ("file", 5, 0o640, 0, True, False)
    link = machine.lstat(f"{folder}/link")
    assert (link.type, link.target) == ("symlink", "a")
    assert machine.stat(folder).is_dir
    assert machine.exists(f"{folder}/link") and not machine.exists(f"{folder}/no")
    assert machine.realpath(f"{folder}/./link") == f"{folder}/a"
    assert [(entry.name, entry.type, entry.target_type, entry.size) for entry in machine.list_dir(folder)] == [
        ("a", "file", "file", 5), ("link", "symlink", "file", 5),
    ]  # fmt: skip


def test_folders_are_made_renamed_and_removed(machine: holt.Machine, folder: str) -> None:
    machine.make_dir(f"{folder}/a/b/c")
    machine.make_dir(f"{folder}/a/b/c")
    machine.write_file(f"{folder}/a/b/c/x", b"x")
    machine.rename(f"{folder}/a/b", f"{folder}/b")
    assert machine.read_file(f"{folder}/b/c/x") == b"x"
    with pytest.raises(holt.Error):
        machine.remove_path(f"{folder}/b")
    machine.remove_path(f"{folder}/b", recursive=True)
    machine.remove_path(f"{folder}/a")
    assert machine.list_dir(folder) == []


def test_what_is_not_there_or_not_a_file_says_so_by_class(machine: holt.Machine, folder: str) -> None:
    for call in (lambda: machine.read_file(f"{folder}/no"), lambda: machine.stat(f"{folder}/no"),
                 lambda: machine.write_file(f"{folder}/no/x", b""), lambda: machine.list_dir(f"{folder}/no"),
                 lambda: machine.remove_path(f"{folder}/no"), lambda: list(machine.walk(f"{folder}/no")),
                 lambda: machine.open_read(f"{folder}/no")):  # fmt: skip
        with pytest.raises(holt.NotFoundError):
            call()
    with pytest.raises(IsADirectoryError):
        machine.read_file(folder)
    machine.write_file(f"{folder}/file", b"")
    with pytest.raises(NotADirectoryError):
        machine.list_dir(f"{folder}/file")
    machine.exec(["mkfifo", f"{folder}/fifo"])
    with pytest.raises(holt.NotRegularError):
        machine.read_file(f"{folder}/fifo")
    assert machine.read_file("etc/passwd") == machine.read_file("/etc/passwd")


def test_rights_of_a_user_count(machine: holt.Machine, folder: str) -> None:
    machine.write_file(f"{folder}/secret", b"x", mode=0o600)
    with pytest.raises(PermissionError):
        machine.read_file(f"{folder}/secret", user="nobody")


def test_reads_and_listings_are_bounded(machine: holt.Machine, folder: str) -> None:
    machine.write_file(f"{folder}/x", b"x" * 1000)
    with pytest.raises(holt.TooLargeError):
        machine.read_file(f"{folder}/x", limit=999)
    assert len(machine.read_file(f"{folder}/x", limit=1000)) == 1000


def test_writes_can_be_conditional(machine: holt.Machine, folder: str) -> None:
    path = f"{folder}/x"
    machine.write_file(path, b"one", exclusive=True, mtime_ns=10**18, owner="65534:0")
    stat = machine.stat(path)
    assert (stat.mtime_ns, stat.uid, stat.gid) == (10**18, 65534, 0)
    with pytest.raises(holt.ConflictError):
        machine.write_file(path, b"two", exclusive=True)
    with pytest.raises(holt.ConflictError):
        machine.write_file(path, b"two", expected_sha256=hashlib.sha256(b"other").hexdigest())
    machine.write_file(path, b"two", expected_sha256=hashlib.sha256(b"one").hexdigest(), durable=True)
    assert machine.read_file(path) == b"two"
    machine.set_attributes(path, mode=0o604, owner="0", mtime_ns=5)
    stat = machine.stat(path)
    assert (stat.mode, stat.uid, stat.mtime_ns) == (0o604, 0, 5)
    machine.write_file(f"{folder}/new/deep/y", b"y", parents=True)
    assert machine.read_file(f"{folder}/new/deep/y") == b"y"


def test_a_file_written_in_pieces_stands_only_when_it_is_finished(machine: holt.Machine, folder: str) -> None:
    path = f"{folder}/x"
    with machine.open_write(path, size=3_000_000) as writer:
        for _ in range(3):
            writer.write(b"w" * 1_000_000)
        assert not machine.exists(path)
    assert machine.stat(path).size == 3_000_000
    with pytest.raises(RuntimeError, match="own"), machine.open_write(path) as writer:
        writer.write(b"never")
        raise RuntimeError("own")
    assert machine.stat(path).size == 3_000_000
    writer = machine.open_write(path)
    writer.finish()
    writer.abort()
    assert machine.stat(path).size == 0
    for call in (writer.finish, lambda: writer.write(b"x")):
        with pytest.raises(holt.InvalidStateError, match="closed"):
            call()
    with pytest.raises(holt.NotFoundError), machine.open_write(f"{folder}/no/x") as refused:
        refused.write(b"x" * 5_000_000)
    assert [entry.name for entry in machine.list_dir(folder)] == ["x"]


def test_a_file_is_read_in_pieces(machine: holt.Machine, folder: str) -> None:
    data = os.urandom(3_000_000)
    machine.write_file(f"{folder}/x", data)
    with machine.open_read(f"{folder}/x", offset=1) as reader:
        assert reader.stat().size == len(data)
        first = next(reader)
        assert 0 < len(first) <= 256 << 10
        assert first + reader.read() == data[1:]
        assert reader.read() == b""
    with pytest.raises(holt.InvalidStateError, match="closed"):
        next(reader)
    reader.close()
    assert machine.open_read("/proc/self/status").read().startswith(b"Name:")


def test_trees_are_walked(machine: holt.Machine, folder: str) -> None:
    machine.exec(f"cd {folder} && mkdir -p a/b && echo hi > a/b/x && ln -s x a/b/link", shell=True)
    entries = list(machine.walk(folder))
    assert sorted((entry.path, entry.type) for entry in entries) == [
        ("a", "directory"), ("a/b", "directory"), ("a/b/link", "symlink"), ("a/b/x", "file"),
    ]  # fmt: skip
    assert {entry.path: entry.target for entry in entries if entry.target} == {"a/b/link": "x"}
    assert [entry.path for entry in machine.walk(folder, max_depth=1)] == ["a"]
    walk = machine.walk("/usr")
    next(walk)
    walk.close()
    walk.close()
    with pytest.raises(holt.InvalidStateError):
        next(walk)


def test_trees_are_copied_both_ways(machine: holt.Machine, folder: str, tmp_path: Path) -> None:
    source = tmp_path / "tree"
    (source / "deep" / "er").mkdir(parents=True)
    (source / "deep" / "er" / "x").write_bytes(os.urandom(100_000))
    (source / "run").write_text("#!/bin/sh\n")
    (source / "run").chmod(0o755)
    (source / "link").symlink_to("run")
    copied = machine.copy_in(source, f"{folder}/tree")
    assert (copied.failed, copied.skipped, copied.problems) == (0, 0, ())
    assert machine.stat(f"{folder}/tree/run").mode == 0o755
    back = machine.copy_out(f"{folder}/tree", tmp_path / "back")
    assert back.bytes == copied.bytes and back.failed == 0
    assert (tmp_path / "back/deep/er/x").read_bytes() == (source / "deep/er/x").read_bytes()
    assert os.readlink(tmp_path / "back/link") == "run"
    with pytest.raises(holt.NotFoundError):
        machine.copy_in(tmp_path / "no", f"{folder}/no")
    with pytest.raises(holt.NotFoundError):
        machine.copy_out(f"{folder}/no", tmp_path / "no")
