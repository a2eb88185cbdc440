"""An SFTP server on stdin and stdout that does not mean well.

    odd_sftp.py ROOT FLAW

It serves what is below ROOT, whole and for reading only, but for its flaw.
Requests are answered in the protocol's version 3.
"""

import os
import stat
import struct
import sys
import time

INIT, OPEN, CLOSE, READ, LSTAT, FSTAT, OPENDIR, READDIR, REALPATH, STAT, \
    READLINK = 1, 3, 4, 5, 7, 8, 11, 12, 16, 17, 19
VERSION, STATUS, HANDLE, DATA, NAME, ATTRS = 2, 101, 102, 103, 104, 105
EOF, MISSING, FAILURE = 1, 2, 4


def u32(n):
    return struct.pack(">I", n)


def string(b):
    return u32(len(b)) + b


class Server:
    def __init__(self, root, flaw):
        self.root = os.fsencode(root)
        self.flaw = flaw
        self.handles = {}
        self.flag = False

    def send(self, kind, body):
        packet = bytes([kind]) + body
        sys.stdout.buffer.write(u32(len(packet)) + packet)
        sys.stdout.buffer.flush()

    def status(self, number, code):
        self.send(STATUS, number + u32(code) + string(b"no") + string(b""))

    def attrs(self, st):
        if self.flaw == "no attributes" and not self.flag:
            return u32(0)
        size = st.st_size
        if self.flaw == "size lies" and stat.S_ISREG(st.st_mode):
            size += 10
        return u32(0xd) + struct.pack(">Q", size) + u32(st.st_mode) + \
            u32(int(st.st_atime)) + u32(int(st.st_mtime))

    def entries(self, path):
        names = []
        for name in [b".", b".."] + sorted(os.listdir(path)):
            look = os.stat if self.flaw == "follows" else os.lstat
            names.append((name, look(os.path.join(path, name))))
        odd = {"up": b"../escaped", "slash": b"a/b", "absolute": b"/escaped",
               "nul": b"a\0b", "empty": b""}.get(self.flaw)
        if odd is not None:
            names.append((odd, os.lstat(os.path.join(path, b"f"))))
        if self.flaw == "twice":
            names += names
        return names

    def readdir(self, number, handle):
        path, rest = self.handles[handle]
        if self.flaw == "count lies":
            return self.send(NAME, number + u32(1 << 31) + string(b"x"))
        if rest is None:
            rest = self.entries(path)
        if not rest:
            return self.status(number, EOF)
        some, rest = rest[:3], rest[3:]
        self.handles[handle] = path, rest
        self.send(NAME, number + u32(len(some)) + b"".join(
            string(name) + string(b"as ls has it") + self.attrs(st)
            for name, st in some))

    def read(self, number, handle, body):
        offset, size = struct.unpack(">QI", body)
        if self.flaw == "much":
            return self.send(DATA, number + string(b"x" * (size + 1)))
        if self.flaw == "nothing":
            return self.send(DATA, number + string(b""))
        if self.flaw == "short" and size > 1:
            size = size // 2
        with open(self.handles[handle][0], "rb") as file:
            file.seek(offset)
            data = file.read(size)
        if data:
            return self.send(DATA, number + string(data))
        self.status(number, EOF)

    def look(self, number, path, ask):
        try:
            st = ask(path)
        except OSError:
            return self.status(number, MISSING)
        self.flag, before = True, self.flag
        self.send(ATTRS, number + self.attrs(st))
        self.flag = before

    def hang(self):
        while True:
            if "complain" in self.flaw:
                os.write(2, b"why? \x1b[2J\n" * 100)
            else:
                time.sleep(600)

    def lie(self, kind, number, body):
        """True if that was the answer."""
        if self.flaw.startswith("hang") and \
                globals()[self.flaw.split()[-1]] == kind:
            self.hang()
        elif self.flaw == "tricks" and kind in (OPEN, OPENDIR):
            self.send(STATUS, number + u32(FAILURE) + string(
                b"\x1b]0;gotcha\x07\x1b[2J\r\x9b\xff") + string(b""))
        elif self.flaw == "nonsense behind" and kind in (STAT, LSTAT):
            # A name that nobody asked for, and then no packet, at once.
            packet = bytes([NAME]) + number + u32(1) + string(b"x" * 100000) \
                + string(b"") + u32(0)
            sys.stdout.buffer.write(u32(len(packet)) + packet + b"\xff" * 64)
            sys.stdout.buffer.flush()
        elif self.flaw == "endless names" and kind == READDIR:
            self.count = getattr(self, "count", 0) + 1
            self.send(NAME, number + u32(500) + b"".join(
                string(b"%0200d.%d" % (self.count, n)) + string(b"")
                + u32(4) + u32(0o40755) for n in range(500)))
        elif self.flaw == "long home" and kind == REALPATH:
            self.send(NAME, number + u32(1) + string(b"/" + b"h" * 60000)
                      + string(b"") + u32(0))
        elif self.flaw == "long home" and kind == STAT:
            self.send(ATTRS, number + u32(4) + u32(0o40755))
        elif self.flaw == "long home" and kind == READDIR:
            # As many as a packet holds, and nothing of what they are.
            self.send(NAME, number + u32(20000) + (
                string(b"x") + string(b"") + u32(0)) * 20000)
        elif self.flaw == "home is a file" and kind == REALPATH:
            self.send(NAME, number + u32(1) + string(
                os.path.join(self.root, b"f")) + string(b"") + u32(0))
        elif self.flaw == "attrs for all" and kind != INIT:
            self.send(ATTRS, number + u32(4) + u32(0o40755))
        else:
            return False
        return True

    def request(self, kind, body):
        if self.lie(kind, body[:4], body):
            return None
        if kind == INIT:
            return self.send(VERSION, u32(3))
        number, body = body[:4], body[4:]
        if self.flaw == "wrong id" and kind != REALPATH:
            number = u32(4000000000)
        n = struct.unpack(">I", body[:4])[0]
        word, rest = body[4:4 + n], body[4 + n:]
        if kind in (STAT, LSTAT):
            self.look(number, word, os.stat if kind == STAT else os.lstat)
        elif kind == FSTAT:
            self.look(number, self.handles[word][0], os.stat)
        elif kind == REALPATH:
            path = os.path.realpath(os.path.join(self.root, word))
            self.send(NAME, number + u32(1) + string(path) + string(path) +
                      u32(0))
        elif kind == READLINK:
            target = b"" if self.flaw == "no target" else os.readlink(word)
            self.send(NAME, number + u32(1) + string(target) + string(b"") +
                      u32(0))
        elif kind in (OPEN, OPENDIR):
            handle = b"h%d" % len(self.handles)
            if self.flaw == "long handle":
                handle *= 200
            self.handles[handle] = word, None
            self.send(HANDLE, number + string(handle))
        elif kind == READDIR:
            self.readdir(number, word)
        elif kind == READ:
            self.read(number, word, rest)
        elif kind == CLOSE:
            self.status(number, 0)
        else:
            self.status(number, FAILURE)

    def run(self):
        if self.flaw == "noise":
            sys.stdout.write("Welcome!\n")
            sys.stdout.flush()
        while head := sys.stdin.buffer.read(4):
            length = struct.unpack(">I", head)[0]
            if length > 1 << 18:
                sys.exit(11)    # as the real one; a shell was wanted
            packet = sys.stdin.buffer.read(length)
            self.request(packet[0], packet[1:])


if __name__ == "__main__":
    Server(*sys.argv[1:]).run()
