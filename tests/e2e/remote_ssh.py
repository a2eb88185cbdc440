"""The tools of the server "remote-ssh", as a test uses them.

    Remote  a stdio server with that set
    alias   an ssh server, by a name in the user's ssh config
"""

import re
import secrets

import rsmcp

TOOLS = ["remote_bash", "remote_bash_output", "remote_file_read"]


class Remote:
    """A server of this set, and its three tools."""

    def __init__(self, home, env, args=(), legacy=None):
        self.server = home.server(env=env, args=args)
        self.legacy = legacy
        if legacy:
            self.server.initialize(legacy)

    def begin(self, tool, **arguments):
        message = rsmcp.call(secrets.token_hex(4), tool, **arguments)
        if self.legacy:
            del message["params"]["_meta"]
        self.server.send(message)
        return message["id"]

    def end(self, request_id):
        """The text, and whether it is an error."""
        reply = self.server.reply(request_id)
        assert "result" in reply, reply
        [content] = reply["result"]["content"]
        assert content["type"] == "text"
        assert "structuredContent" not in reply["result"]
        return content["text"], reply["result"]["isError"]

    def ask(self, tool, **arguments):
        return self.end(self.begin(tool, **arguments))

    def good(self, tool, **arguments):
        text, failed = self.ask(tool, **arguments)
        assert not failed, text
        return text

    def bad(self, tool, **arguments):
        text, failed = self.ask(tool, **arguments)
        assert failed and text.startswith("Error: "), text
        return text

    def bash(self, command, **more):
        return self.good("remote_bash", command=command, **more)

    def start(self, command, **more):
        """A job; its id."""
        text = self.bash(command, run_in_background=True, **more)
        return re.match(r"Command running in background with ID: "
                        r"(remote-\d+)\n", text)[1]

    def output(self, bash_id, **more):
        return self.good("remote_bash_output", bash_id=bash_id, **more)

    def over(self, bash_id, **more):
        """What it says once the job has ended."""
        def ended():
            text = self.output(bash_id, **more)
            return text if text.startswith("Status: completed\n") else None
        return rsmcp.until("the job has ended", ended)

    def read(self, path, **more):
        return self.good("remote_file_read", file_path=str(path), **more)

    def tools(self):
        params = {} if self.legacy else {"_meta": rsmcp.MODERN_META}
        reply = self.server.ask("list", "tools/list", params)
        return {tool["name"]: tool for tool in reply["result"]["tools"]}


def alias(home, sshd, name="gpu-box"):
    """A name in the user's ssh config that has all there is to know."""
    (home.home / ".ssh" / "config").write_text(
        "Host %s\n\tHostName 127.0.0.1\n\tPort %d\n\tUser %s\n"
        "\tIdentityFile %s\n" % (name, sshd.port, sshd.user, sshd.key))
    return {"SSH_HOST": name}


def lines(first, last, text="line %d"):
    """As they are printed with their numbers."""
    return "".join("%6d\t%s\n" % (n, text % n)
                   for n in range(first, last + 1))
