"""Machines of other images than the default: a BusyBox root file system, as a reference, an archive and a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import holt
import pytest
import smol
from pydantic_ai.workspaces import WorkspaceUnavailableError

from rules import Rules
from sandboxes import PROVIDERS, Provider
from test_sandbox_flows import coder, reads, writes

pytestmark = pytest.mark.anyio

REFERENCE = "tests/busybox:1"


@pytest.fixture(scope="module")
def rootfs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with BusyBox and nothing else: no Python, no git, no bash."""
    busybox = shutil.which("busybox")
    assert busybox, "no busybox here: scripts/setup installs busybox-static"
    folder = tmp_path_factory.mktemp("image") / "busybox"
    for name in ("bin", "etc", "root", "tmp"):
        (folder / name).mkdir(parents=True)
    shutil.copy(busybox, folder / "bin/busybox")
    for applet in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
        if applet != "busybox":
            (folder / "bin" / applet).symlink_to("busybox")
    (folder / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (folder / "etc/made-for").write_text("the tests\n")
    return folder


@pytest.fixture(scope="module")
def archive(rootfs: Path) -> Path:
    path = rootfs.parent / "busybox.tar"
    with tarfile.open(path, "w") as tar:
        tar.add(rootfs, arcname=".")
    return path


@pytest.fixture(scope="module", autouse=True)
def own_home(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A home with images of its own, among which the default one is not."""
    prepared, home = Path(os.environ["HOLT_HOME"]), tmp_path_factory.mktemp("home")
    (home / "data").mkdir()
    (home / "data/engine").symlink_to(prepared / "data/engine")
    (home / "cache").symlink_to(prepared / "cache")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HOLT_HOME", str(home))
        holt.import_image(archive, REFERENCE)
        yield
        left = [info.name for info in holt.Machine.list()]
        for name in left:
            holt.Machine.open(name).remove(force=True)
    assert not left, f"tests left machines behind: {left}"


class TestSmolSandboxBackendOnBusyBox(Rules):
    """Files go through the shell and the utilities of BusyBox."""

    provider = PROVIDERS["smol"]
    options = {"image": REFERENCE}
    may_skip = (*Rules.may_skip, "backend does not implement SupportsRealpath")


class TestHoltSandboxBackendOnBusyBox(Rules):
    provider = PROVIDERS["holt"]
    options = {"image": REFERENCE}


async def test_flow_1_in_machines_of_an_image(provider: Provider, doomed: list[Any]) -> None:
    first = await coder(provider, writes("a.txt", "of the first run"), image=REFERENCE).run("Write.")
    doomed.append(first.workspace)
    assert (await first.workspace.run(["cat", "/etc/made-for"])).stdout == "the tests\n"
    second = await coder(provider, reads("a.txt", "of the first run"), image=REFERENCE).run(
        "Read.", message_history=first.all_messages()
    )
    assert second.workspace.ref == first.workspace.ref
    other = await coder(provider, reads("a.txt", "Path not found"), image=REFERENCE).run("Read.")
    doomed.append(other.workspace)
    assert other.workspace.ref != first.workspace.ref
    await provider.sandbox().destroy(first.workspace.ref)
    with pytest.raises(WorkspaceUnavailableError):
        await coder(provider, reads("a.txt", "never"), image=REFERENCE).run(
            "Read.", message_history=first.all_messages()
        )


@pytest.mark.parametrize("kind", ["reference", "archive", "folder", "relative archive", "relative folder"])
async def test_image_by_reference_archive_and_folder(
    provider: Provider, kind: str, rootfs: Path, archive: Path, monkeypatch: pytest.MonkeyPatch, doomed: list[Any]
) -> None:
    monkeypatch.chdir(rootfs.parent)
    images = {
        "reference": REFERENCE,
        "archive": str(archive),
        "folder": str(rootfs),
        "relative archive": f"./{archive.name}",
        "relative folder": f"./{rootfs.name}",
    }
    backend = provider.backend(image=images[kind])
    doomed.append(backend)
    assert (await backend.run(["cat", "/etc/made-for"])).stdout == "the tests\n"
    assert (await backend.run(["python3", "-V"])).exit_code == 127


@pytest.mark.parametrize("image", ["./busybox.tar", "./busybox", REFERENCE])
def test_machine_config_of_smol_takes_the_same(image: str, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(archive.parent)
    machine = smol.Machine.create(smol.MachineConfig(image=image))
    try:
        assert machine.exec(["cat", "/etc/made-for"]).stdout == "the tests\n"
    finally:
        machine.delete()
