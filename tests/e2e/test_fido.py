"""Logging in with a FIDO key, on a token made of software.

The token is sk-dummy.so of OpenSSH's own tests (Debian: openssh-tests), which
`./dev setup` unpacks into build/token; if it is elsewhere, RSMCP_SK_DUMMY names
it.
"""

import os
import pathlib

import pytest

from sshd import keygen, public

PROVIDER = os.environ.get("RSMCP_SK_DUMMY") or str(
    pathlib.Path(__file__).parents[2] / "build" / "token" /
    "usr/lib/openssh/regress/misc/sk-dummy/sk-dummy.so")


@pytest.fixture
def token(home):
    """Its keys: token(path, kind)."""
    if not os.path.exists(PROVIDER):
        pytest.skip("there is no sk-dummy.so (package openssh-tests)")
    (home.home / ".ssh" / "config").write_text(
        "SecurityKeyProvider %s\n" % PROVIDER)

    def make(path, kind):
        try:
            return keygen(path, kind, "", "-w", PROVIDER)
        except AssertionError as error:
            pytest.skip("sk-dummy.so is of no use here: %s" % error)
    return make


@pytest.mark.parametrize("kind", ["ed25519-sk", "ecdsa-sk"])
def test_fido_key(home, sshd, tmp_path, token, kind):
    key = token(tmp_path / "key", kind)
    sshd.authorize(public(key))
    result = home.call("exec_bash", [sshd.entry(key_file=str(key))],
                       command="echo hi")
    assert not result.failed, result["error"]
    assert result["stdout"] == "hi\n"
    sshd.log_has("Accepted publickey .*-SK ")
