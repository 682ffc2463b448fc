"""tf.io.gfile: files and directories."""

import pathlib

import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

gfile = tf.io.gfile


def test_write_and_read_text_and_bytes(tmp_path):
    path = tmp_path / "a.txt"
    with gfile.GFile(path, "w") as file:
        file.write("grün\n")
        file.write(b"two\nthree")
        file.flush()
        assert (file.name, file.mode, file.seekable()) == (str(path), "w", True)

    assert list(gfile.GFile(path)) == ["grün\n", "two\n", "three"]
    with gfile.GFile(str(path), "rb") as file:
        assert file.size() == len("grün\ntwo\nthree".encode())
        assert file.readline() == "grün\n".encode()
        assert file.read(3) == b"two"
        assert file.tell() == 9
        file.seek(0)
        assert file.next() == "grün\n".encode()
        assert file.readlines() == [b"two\n", b"three"]
        with pytest.raises(StopIteration):
            file.next()
    with gfile.GFile(path, "a") as file:
        file.write("!")
    with gfile.GFile(tmp_path / "bytes", "wb") as file:
        file.write("text")
    assert path.read_text().endswith("three!")
    assert (tmp_path / "bytes").read_bytes() == b"text"
    with gfile.GFile(tmp_path / "empty", "w"):
        pass
    assert (tmp_path / "empty").exists()


def test_create_list_and_remove_directories(tmp_path):
    deep = gfile.join(str(tmp_path), "a", "b")
    gfile.makedirs(deep)
    gfile.makedirs(deep)
    gfile.mkdir(gfile.join(deep, "c"))
    gfile.mkdir(gfile.join(deep, "c"))
    for name in ("one.txt", ".two.txt"):
        pathlib.Path(deep, name).write_text(name)

    assert gfile.isdir(deep) and gfile.exists(deep.encode())
    assert sorted(gfile.listdir(deep)) == [".two.txt", "c", "one.txt"]
    assert gfile.glob(f"{deep}/*.txt") == [f"{deep}/.two.txt", f"{deep}/one.txt"]
    assert gfile.glob([f"{deep}/o*", f"{deep}/c"]) == [f"{deep}/one.txt", f"{deep}/c"]
    assert tf.io.matching_files([f"{deep}/*.txt", f"{deep}/o*"]).numpy().tolist() == [
        f"{deep}/.two.txt".encode(),
        f"{deep}/one.txt".encode(),
    ]
    assert tf.io.match_filenames_once(f"{deep}/o*").numpy().tolist() == [f"{deep}/one.txt".encode()]
    assert [path for path, *_ in gfile.walk(tmp_path)] == [
        str(tmp_path),
        str(tmp_path / "a"),
        deep,
        f"{deep}/c",
    ]
    status = gfile.stat(f"{deep}/one.txt")
    assert (status.length, status.is_directory) == (7, False)
    gfile.remove(f"{deep}/one.txt")
    assert not gfile.exists(f"{deep}/one.txt")
    gfile.rmtree(tmp_path / "a")
    assert gfile.listdir(tmp_path) == []
    assert gfile.get_registered_schemes() == [""]


def test_copy_and_rename(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1")
    two.write_text("2")

    for move in (gfile.copy, gfile.rename):
        assert_raises(
            lambda move=move: move(one, two),
            tf.errors.AlreadyExistsError,
            f"{two} already exists. Pass overwrite=True to replace it.",
        )
    gfile.copy(one, two, overwrite=True)
    assert two.read_text() == "1"
    gfile.rename(two, tmp_path / "three")
    assert not two.exists()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda p: gfile.GFile(p).read(), "NotFoundError", "{}: No such file or directory."),
        (lambda p: gfile.listdir(p), "NotFoundError", "Could not find directory {}"),
        (lambda p: gfile.remove(p), "NotFoundError", "{}: No such file or directory."),
        (lambda p: gfile.rmtree(p), "NotFoundError", "{}: No such file or directory."),
        (lambda p: gfile.stat(p), "NotFoundError", "{}: No such file or directory."),
        (lambda p: gfile.copy(p, f"{p}2"), "NotFoundError", "{}: No such file or directory."),
        (
            lambda p: gfile.GFile(p, "x"),
            "InvalidArgumentError",
            "mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'",
        ),
    ],
)
def test_error_classes_match_tensorflow(tmp_path, call, error, message):
    path = str(tmp_path / "none")
    assert_raises(lambda: call(path), getattr(tf.errors, error), message.format(path))


def test_seek_before_the_start_raises(tmp_path):
    (tmp_path / "a").write_text("abc")
    with gfile.GFile(tmp_path / "a") as file:
        assert_raises(
            lambda: file.seek(-1),
            tf.errors.OutOfRangeError,
            "seek: -1 is before the start of the file.",
        )


def test_walk_reports_errors(tmp_path):
    errors = []
    assert list(gfile.walk(tmp_path / "none", onerror=errors.append)) == []
    assert [type(error) for error in errors] == [tf.errors.NotFoundError]
