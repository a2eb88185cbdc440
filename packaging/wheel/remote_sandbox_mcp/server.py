"""Become the native program: python -m remote_sandbox_mcp.server [ARG ...]"""

import importlib.metadata
import os
import shutil
import sys

NAME = "remote-sandbox-mcp"


def program():
    """Where the installer put it, which its record tells; else from PATH."""
    for file in importlib.metadata.files(NAME) or ():
        if file.name == NAME:
            path = os.path.abspath(file.locate())
            if os.access(path, os.X_OK):
                return path
    return shutil.which(NAME)


def main():
    path = program()
    if path is None:
        sys.exit("the program %s is neither where its package was installed "
                 "nor in PATH; install the package again" % NAME)
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
