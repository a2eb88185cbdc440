"""Trees of files: made, changed at random, described, compared."""

import os
import pathlib
import random
import stat


def write(path, content=b"", mode=0o644, mtime=None):
    """A file; mtime in nanoseconds."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        content = content.encode()
    path.write_bytes(content)
    path.chmod(mode)
    if mtime is not None:
        os.utime(path, ns=(mtime, mtime))
    return path


def describe(root, dir_times=True, unit=1):
    """What is below it: {name as bytes: what there is to say}; mtimes of files
    in so many nanoseconds."""
    root = os.fsencode(root)
    found = {}
    for place, dirs, files in os.walk(root):
        for name in dirs + files:
            path = os.path.join(place, name)
            st = os.lstat(path)
            key = os.path.relpath(path, root)
            if stat.S_ISLNK(st.st_mode):
                found[key] = ("link", os.readlink(path))
            elif stat.S_ISDIR(st.st_mode):
                found[key] = ("dir", stat.S_IMODE(st.st_mode)) + (
                    (st.st_mtime_ns,) if dir_times else ())
            elif stat.S_ISREG(st.st_mode):
                with open(path, "rb") as file:
                    found[key] = ("file", stat.S_IMODE(st.st_mode),
                                  st.st_mtime_ns // unit, file.read())
            else:
                found[key] = ("other",)
    return found


def same(a, b, **options):
    """Fails with what differs."""
    a, b = describe(a, **options), describe(b, **options)
    for name in sorted(a.keys() | b.keys()):
        assert a.get(name) == b.get(name), (name, a.get(name), b.get(name))


NAMES = [b"a", b"b.txt", b"c d", b"-rf", b"*", b"new\nline", b"quote'\"`$x",
         "grün☃".encode(), b"\xff\xfe", b"~", b"back\\slash", b"x" * 200,
         b" lead", b"trail ", b"#", b"%s%n", b".hidden", b"\x01\x7f"]


class Maker:
    """Random trees and random changes, the same for the same seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def name(self):
        r = self.random
        if r.random() < 0.3:
            return r.choice(NAMES) + b"%d" % r.randrange(5)
        return b"n%d" % r.randrange(40)

    def content(self):
        r = self.random
        return r.randbytes(r.choice([0, 1, 10, 511, 512, 513, 5000, 70000]))

    def put(self, path):
        r = self.random
        if os.path.lexists(path):
            return
        kind = r.random()
        if kind < 0.15:
            os.mkdir(path)
            os.chmod(path, r.choice([0o755, 0o700, 0o775]))
        elif kind < 0.3:
            os.symlink(r.choice([b"a", b"../x", b"/etc/passwd", b"nowhere",
                                 b"n1/n2"]), path)
        else:
            with open(path, "wb") as file:
                file.write(self.content())
            os.chmod(path, r.choice([0o644, 0o600, 0o755, 0o444]))
        if kind >= 0.3:
            when = r.randrange(10**18, 17 * 10**17)
            os.utime(path, ns=(when, when))

    def dirs(self, root):
        return [place for place, _, _ in os.walk(os.fsencode(root))]

    def grow(self, root, count):
        os.makedirs(root, exist_ok=True)
        for _ in range(count):
            place = self.random.choice(self.dirs(root))
            self.put(os.path.join(place, self.name()))

    def change(self, root, count):
        """Some go, some come, some are other than they were."""
        r = self.random
        for _ in range(count):
            every = [os.path.join(place, name)
                     for place, dirs, files in os.walk(os.fsencode(root))
                     for name in dirs + files]
            if not every:
                break
            path = r.choice(every)
            isdir = os.path.isdir(path) and not os.path.islink(path)
            what = r.random()
            if what < 0.3:
                if isdir:
                    import shutil
                    shutil.rmtree(path)
                else:
                    os.unlink(path)
                if what < 0.15:
                    self.put(path)
            elif not isdir and not os.path.islink(path):
                os.chmod(path, 0o600)
                with open(path, "ab") as file:
                    file.write(r.randbytes(r.randrange(20)))
            elif isdir:
                os.chmod(path, r.choice([0o755, 0o711]))
        self.grow(root, count // 2)
