"""Images from Python: of files and folders, and what machines are made of."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

import holt


@pytest.fixture(scope="module")
def host(home: Path, tmp_path_factory: pytest.TempPathFactory) -> holt.HostOptions:
    """A home with images of its own."""
    folder = tmp_path_factory.mktemp("images")
    (folder / "data").mkdir()
    (folder / "data/engine").symlink_to(home / "data/engine")
    (folder / "cache").symlink_to(home / "cache")
    return holt.HostOptions(home=folder)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root file system with one file."""
    path = tmp_path_factory.mktemp("archive") / "tiny.tar"
    with tarfile.open(path, "w") as tar:
        entry = tarfile.TarInfo("hello")
        entry.size = 5
        tar.addfile(entry, io.BytesIO(b"hello"))
    return path


def test_an_imported_image_is_found_by_its_name_and_by_its_digest(host: holt.HostOptions, archive: Path) -> None:
    image = holt.import_image(archive, "test/tiny:1", host=host)
    assert (image.reference, image.platform) == ("test/tiny:1", "linux/amd64")
    assert holt.find_image("test/tiny:1", host) == image
    assert holt.pull_image(image.digest, pull="never", host=host).digest == image.digest
    assert [found.reference for found in holt.list_images(host)] == ["test/tiny:1"]


def test_a_machine_is_made_of_a_file(host: holt.HostOptions, archive: Path) -> None:
    with holt.Machine.create(persistent=False, image=str(archive), host=host) as machine:
        assert machine.read_file("/hello") == b"hello"
        assert machine.info().image == "tiny:latest"


def test_what_is_not_here_and_may_not_be_pulled_is_not_found(host: holt.HostOptions) -> None:
    for missing in ("localhost:1/no/such:1", "sha256:" + 64 * "0"):
        with pytest.raises(holt.NotFoundError):
            holt.pull_image(missing, pull="never", host=host)
    with pytest.raises(holt.NotFoundError):
        holt.import_image("/no/such/file", host=host)


def test_a_registry_that_is_not_there_is_a_network_error(host: holt.HostOptions) -> None:
    with pytest.raises(holt.NetworkError):
        holt.pull_image("127.0.0.1:1/app:1", host=host)


@pytest.mark.parametrize("pull", ["sometimes", "", 1])
def test_the_policy_is_one_of_three_words(host: holt.HostOptions, pull: object) -> None:
    with pytest.raises((holt.InvalidConfigError, TypeError)):
        holt.pull_image("x:1", pull=pull, host=host)  # type: ignore[arg-type]


def test_bad_names_are_usage_errors(host: holt.HostOptions) -> None:
    for bad in ("UPPER", "a/../b", "x:" + 200 * "y"):
        with pytest.raises(holt.UsageError):
            holt.pull_image(bad, host=host)
