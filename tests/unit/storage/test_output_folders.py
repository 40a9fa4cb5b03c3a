"""Folders that are made for outputs."""

import os

import pytest

from collidecli.errors import OutputError
from collidecli.storage.output_folders import OutputFolders


def test_no_folder_is_made_at_the_root_of_the_file_system(monkeypatch):
    made = []
    monkeypatch.setattr(os, "mkdir", made.append)
    for path in ("/no_such_folder", "/no_such_folder/deep/er"):
        with pytest.raises(OutputError, match="there is no folder /no_such_folder, and none is"):
            OutputFolders().make(path, f"{path}/x.h5")
    assert not made


def test_missing_folders_are_made_elsewhere(tmp_path):
    folders = OutputFolders()
    folders.make(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    folders.remove_empty()
    assert not (tmp_path / "a").exists()
