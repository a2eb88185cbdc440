"""OpenSSH's SFTP server, which says FILE_ALREADY_EXISTS for FAILURE.

    exists_sftp.py SERVER ARGUMENT ...
"""

import struct
import subprocess
import sys

STATUS, FAILURE, FILE_ALREADY_EXISTS = 101, 4, 11


def main(argv):
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as server:
        while head := server.stdout.read(4):
            packet = server.stdout.read(struct.unpack(">I", head)[0])
            if packet[0] == STATUS and packet[5:9] == struct.pack(
                    ">I", FAILURE):
                packet = packet[:5] + struct.pack(
                    ">I", FILE_ALREADY_EXISTS) + packet[9:]
            sys.stdout.buffer.write(head + packet)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
