"""Files of modules: in memory, and written whole or not at all."""

import errno
import mmap
import os
import stat
import tempfile
from pathlib import Path


def memory_file() -> int:
    """A file without a name; close the descriptor when done."""
    return os.memfd_create("cuvil", os.MFD_CLOEXEC)


def open_file(path: str | os.PathLike[str]) -> int:
    """Opens a file to read; a pipe or a device raises OSError and is not waited for."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(21, "Is a directory", os.fspath(path))
    raise OSError(22, "Not a regular file", os.fspath(path))


def write_all(fd: int, data: bytes | bytearray | memoryview) -> None:
    rest = memoryview(data).cast("B")
    while rest:
        rest = rest[os.write(fd, rest) :]


def read_all(fd: int) -> bytes:
    """All bytes of the file behind `fd`, whose position stays."""
    size = os.fstat(fd).st_size
    with mmap.mmap(fd, size, prot=mmap.PROT_READ) as view:
        return bytes(view)


def copy_to(fd: int, path: str | os.PathLike[str]) -> None:
    """Writes the file behind `fd` to `path`, by way of a temporary file beside it."""
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "Not a regular file", str(target))
    size = os.fstat(fd).st_size
    try:
        out, temporary = tempfile.mkstemp(prefix=target.name + ".", dir=target.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from None
    try:
        with os.fdopen(out, "wb") as file:
            at = 0
            while at < size:
                at += os.sendfile(file.fileno(), fd, at, size - at)
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(file.fileno(), 0o666 & ~mask)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
