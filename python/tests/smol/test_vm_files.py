"""Files of a machine (spec section 4)."""

import os
from pathlib import PurePosixPath

import pytest
import smol


@pytest.mark.parametrize("data", [b"", b"x", b"\0\xff" * 1000, os.urandom(3_000_000)])
def test_BytesComeBackAsTheyWent(machine, data):
    machine.write_file("/tmp/bytes", data)
    assert machine.read_file("/tmp/bytes") == data


def test_TextIsWrittenAsUtf8(machine):
    machine.write_file("/tmp/text", "grün €")
    assert machine.read_file("/tmp/text") == "grün €".encode()
    assert machine.exec(["cat", "/tmp/text"]).stdout == "grün €"


def test_AModeIsSetAndAReplacedFileKeepsItsOwn(machine):
    machine.write_file("/tmp/script", "#!/bin/sh\necho ran\n", mode=0o750)
    assert machine.exec(["/tmp/script"]).stdout == "ran\n"
    machine.write_file("/tmp/script", "#!/bin/sh\necho again\n")
    assert machine.exec(["stat", "-c", "%a", "/tmp/script"]).stdout == "750\n"
    assert machine.exec(["/tmp/script"]).stdout == "again\n"


def test_AModeMayComeFromStat(machine):
    machine.write_file("/tmp/plain", b"", mode=0o100640)
    assert machine.exec(["stat", "-c", "%a", "/tmp/plain"]).stdout == "640\n"


def test_FoldersAboveAreMadeAndLinksFollowed(machine):
    machine.write_file("/tmp/new/deep/file", b"1")
    machine.exec(["ln", "-sfn", "/tmp/new/deep", "/tmp/link"])
    machine.write_file("/tmp/link/file", b"2")
    assert machine.read_file("/tmp/new/deep/file") == b"2"


def test_APathMayBeTextBytesOrAPath(machine):
    machine.write_file(PurePosixPath("/tmp/p"), b"p")
    assert machine.read_file(b"/tmp/p") == machine.read_file("/tmp/p") == b"p"


def test_FilesNeedNoProgramAndNoRightsOfTheUser(home):
    config = smol.MachineConfig(user="1000:1000", workdir="/work")
    with smol.Machine.create(config) as made:
        assert made.exec(["sh", "-c", "id -u; pwd"]).stdout == "1000\n/work\n"
        made.write_file("/root/secret", b"s", mode=0o600)
        assert made.read_file("/root/secret") == b"s"


@pytest.mark.parametrize(
    ("path", "code"), [("/no/such", "NOT_FOUND"), ("/tmp", "SMOLVM_ERROR"), ("/dev/zero", "SMOLVM_ERROR")]
)
def test_WhatCannotBeReadIsATypedError(machine, path, code):
    with pytest.raises(smol.SmolError) as caught:
        machine.read_file(path)
    assert caught.value.code == code
    assert path in str(caught.value)


@pytest.mark.parametrize(
    ("path", "data", "mode"),
    [
        ("", b"", None),
        ("/a\0", b"", None),
        (5, b"", None),
        ("/a", 5, None),
        ("/a", b"", -1),
        ("/a", b"", True),
    ],
)
def test_BadArgumentsAreRefused(machine, path, data, mode):
    with pytest.raises(smol.InvalidConfigError):
        machine.write_file(path, data, mode)
