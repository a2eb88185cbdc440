"""Trees of files: made, changed a little, compared."""

import itertools
import os
import pathlib
import shutil
import stat
import tempfile

from lib import far

FILE_BYTES = 2048
FILES_A_DIR = 100
BORN_NS = 1_600_000_000_123_456_789     # long ago, with nanoseconds
CHUNK = 1 << 20
HOURS = itertools.count(1)


def disk_option(parser):
    parser.add_argument("--disk", action="store_true",
                        help="files on disk rather than in memory")


def area(stack, user, disk):
    """Two directories, ours and one that belongs to the user."""
    memory = pathlib.Path("/dev/shm")
    if memory.is_dir() and not disk:
        print("files are kept in memory (/dev/shm)")
    else:
        memory = pathlib.Path("/var/tmp")
        print("files are kept on disk (/var/tmp)")
    root = pathlib.Path(tempfile.mkdtemp(dir=memory, prefix="rb"))
    stack.callback(shutil.rmtree, root, ignore_errors=True)
    root.chmod(0o755)
    near, there = root / "near", root / "far"
    near.mkdir(mode=0o700)
    there.mkdir(mode=0o755)
    if far.ROOT:
        shutil.chown(there, user)
    return near, there


def make(root, count):
    """So many small files, a hundred in each directory; their paths."""
    root.mkdir()
    paths = []
    for i in range(count):
        if i % FILES_A_DIR == 0:
            directory = root / f"dir{i // FILES_A_DIR:04}"
            directory.mkdir()
        path = directory / f"file{i:06}.txt"
        path.write_bytes(os.urandom(FILE_BYTES))
        when = BORN_NS + i * 1_000_000
        os.utime(path, ns=(when, when))
        paths.append(path)
    return paths


def make_file(path, size):
    with open(path, "wb") as f:
        for _ in range(size // CHUNK):
            f.write(os.urandom(CHUNK))
    os.utime(path, ns=(BORN_NS, BORN_NS))


def change(paths, how_many):
    """New content for some of them, spread over all, and a new time: that of
    another second each time, as rsync looks at seconds."""
    when = BORN_NS + next(HOURS) * 3600 * 10**9
    for path in paths[::max(1, len(paths) // how_many)][:how_many]:
        path.write_bytes(os.urandom(FILE_BYTES))
        os.utime(path, ns=(when, when))


def copy(source, target, user):
    """With modes and times; the copy belongs to the user."""
    far.run("cp", "-a", source, target)
    if far.ROOT:
        far.run("chown", "-R", user, target)


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def listing(root):
    """Each path below it with its kind and size; a file is itself."""
    found = {}
    for path in (root, *root.rglob("*")) if root.is_dir() else (root,):
        status = path.lstat()
        kind = stat.S_IFMT(status.st_mode)
        size = status.st_size if stat.S_ISREG(status.st_mode) else 0
        found[str(path.relative_to(root))] = kind, size
    return found


def same_bytes(one, other):
    with open(one, "rb") as a, open(other, "rb") as b:
        while data := a.read(CHUNK):
            if data != b.read(CHUNK):
                return False
    return True


def difference(one, other, exact):
    """What is different, or None.  Exact: modes and times as well, but
    for those of the top, which is the user's to choose."""
    left, right = listing(one), listing(other)
    if left != right:
        odd = sorted(set(left.items()) ^ set(right.items()))[0][0]
        return f"{odd}: there, or its kind or its size"
    for name, (kind, _) in left.items():
        a, b = (root / name if root.is_dir() else root
                for root in (one, other))
        if stat.S_ISREG(kind) and not same_bytes(a, b):
            return f"{name}: its content"
        a, b = a.lstat(), b.lstat()
        same = (a.st_mode, a.st_mtime_ns) == (b.st_mode, b.st_mtime_ns)
        if exact and name != "." and not same:
            return f"{name}: its mode or its time"
    return None
