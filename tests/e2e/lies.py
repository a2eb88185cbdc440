"""What a host that lies prints in place of find, or of tar.

    lies.py list NAME       records as find's -printf has them
    lies.py tar NAME        an archive; the names wanted come on stdin

Those that say "endless" do not end by themselves.
"""

import itertools
import os
import sys
import tarfile
import time

OUT = sys.stdout.buffer


def put(data):
    OUT.write(data)


def texts(*records):
    for record in records:
        put(record + b"\0")


def endless(make):
    try:
        for n in itertools.count():
            put(make(n))
    except BrokenPipeError:
        os._exit(0)


LISTS = {
    # What makes no sense ends it at once.
    "endless lines": lambda: endless(lambda n: b"y\n" * 4096),
    "endless nonsense": lambda: endless(lambda n: b"f9 1 2 a\0" * 1000),
    "endless zeros": lambda: endless(lambda n: bytes(4096)),
    "our framing": lambda: texts(b"RSMCP1", b"d", b"/etc", b"rw", b"g",
                                 b"find", b"f644 1 1 passwd", b"E0"),
    "an end of its own": lambda: texts(b"E0", b"f644 1 1 x"),
    "up": lambda: texts(b"f644 4 1 ../escaped"),
    "absolute": lambda: texts(b"f644 4 1 /escaped"),
    "up below": lambda: texts(b"d755 0 1 d", b"f644 4 1 d/../../escaped"),
    "through a link": lambda: texts(b"l777 1 1 way", b"/tmp",
                                    b"f644 4 1 way/escaped"),
    "through itself": lambda: texts(b"d755 0 1 way", b"l777 1 1 way", b"..",
                                    b"f644 4 1 way/escaped"),
    "control characters": lambda: texts(b"\x1b]0;gotcha\x07\x1b[2J\x9b"),
    "a link without its target": lambda: texts(b"l777 1 1 l"),
    "sizes": lambda: texts(b"f644 99999999999999999999999 1 b"),
    # What may be, but is not.
    "huge": lambda: texts(b"f644 4611686018427387903 1 huge"),
    "huge together": lambda: texts(*[
        b"f644 4611686018427387903 1 huge%d" % i for i in range(4)]),
    "too many times": lambda: texts(*[b"f644 1 1 b"] * 1000),
    "names": lambda: texts(b"f644 1 1 \x1b[2J\r\x07", b"f644 1 1 -rf",
                           b"f644 1 1 $(id)", b"f644 1 1 \xff\xfe"),
    # Without end, and nothing in it is wrong.
    "endless unreadable": lambda: endless(
        lambda n: b"".join(b"-%d\0" % i for i in range(n * 1000,
                                                      n * 1000 + 1000))),
    "endless entries": lambda: endless(
        lambda n: b"".join(b"f644 1 1 f%d\0" % i for i in range(
            n * 1000, n * 1000 + 1000))),
    "endless long names": lambda: endless(
        lambda n: b"f644 1 1 %s%d\0" % (b"0123456789/" * 1900, n)),
    "never": lambda: (OUT.flush(), time.sleep(600)),
}


def member(name, data=b"EVIL", **fields):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512)


def real(name):
    with open(name, "rb") as file:
        data = file.read()
    return member(name, data, mtime=int(os.stat(name).st_mtime))


END = bytes(10240)


def archive(*members):
    return lambda wanted: put(b"".join(members) + END)


def sparse_map(wanted):
    """A file with holes whose list of them has no end, before its content."""
    records = b"".join(b"%d %s\n" % (len(text) + 4, text) for text in (
        b"GNU.sparse.major=1", b"GNU.sparse.minor=0", b"GNU.sparse.name=./b",
        b"GNU.sparse.realsize=5000"))
    head = member("./b", b"")
    head = head[:124] + b"77777777777\0" + head[136:148] + b" " * 8 + head[156:]
    put(member("x", records, type=b"x") + head[:148]
        + b"%06o\0 " % sum(head) + head[156:] + b"999999999\n")
    endless(lambda n: b"1\n1\n" * 16384)


def stalls(wanted):
    """Half of a file, and then nothing."""
    put(real("b" if os.path.exists("b") else wanted[0])[:3000])
    OUT.flush()
    time.sleep(600)


def complains(wanted):
    """On stderr, without end."""
    OUT.flush()
    while True:
        os.write(2, b"\x1b]0;gotcha\x07 tar: why?\n" * 100)


TARS = {
    "up": archive(member("../escaped")),
    "up below": archive(member("./sub/../../escaped")),
    "absolute": archive(member("/tmp/escaped-from-an-archive")),
    "not asked for": archive(member("./other")),
    "a link, then through it": archive(
        member("./sub", b"", type=tarfile.SYMTYPE, linkname="/tmp"),
        member("./sub/c", b"EVIL")),
    "a link in place of a file": archive(
        member("./b", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd")),
    "a hard link out of it": archive(
        member("./b", b"", type=tarfile.LNKTYPE, linkname="/etc/passwd")),
    "a hard link up": archive(
        member("./b", b"", type=tarfile.LNKTYPE, linkname="../here/mine")),
    "a device": archive(
        member("./b", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=3)),
    "a fifo": archive(member("./b", b"", type=tarfile.FIFOTYPE)),
    "a directory in place of a file": archive(
        member("./b", b"", type=tarfile.DIRTYPE, mode=0o777)),
    "other content, longer": archive(member("./b", b"x" * 6000)),
    "shorter": archive(member("./b", b"x")),
    "twice": lambda wanted: put(real("./b") * 2 + END),
    "claims to be huge": lambda wanted: put(
        member("./b", b"")[:124] + b"77777777777\0"
        + member("./b", b"")[136:] + b"x" * 100000),
    "cut off": lambda wanted: put(real("./b")[:2000]),
    "cut off between": lambda wanted: put(real("./b")),
    "nothing": lambda wanted: None,
    "no archive": lambda wanted: put(b"\x1b[2Jnope\n" * 1000),
    "gzip": lambda wanted: put(__import__("gzip").compress(real("./b") + END)),
    "endless zeros": lambda wanted: endless(lambda n: bytes(65536)),
    "endless members": lambda wanted: endless(lambda n: member("./x%d" % n)),
    "endless after the end": lambda wanted: (
        put(real("./b") + real("./sub/c") + END),
        endless(lambda n: bytes(65536))),
    "endless name": lambda wanted: (
        put(member("././@LongLink", b"", type=b"L")[:124] + b"77777777777\0"
            + member("././@LongLink", b"", type=b"L")[136:]),
        endless(lambda n: b"n" * 65536)),
    "endless map": sparse_map,
    "stalls": stalls,
    "complains": complains,
}


def wanted():
    return [os.fsdecode(name) for name in sys.stdin.buffer.read().split(b"\0")
            if name]


if __name__ == "__main__":
    if sys.argv[1] == "list":
        LISTS[sys.argv[2]]()
    else:
        TARS[sys.argv[2]](wanted())
    OUT.flush()
