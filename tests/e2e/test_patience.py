"""What takes longer than a lease waits for a word from us (60 seconds): the
processes that run for one call or one transfer have to say it, too."""

import os
import threading

from test_transfer import MUCH, Place, SlowRoad
from trees import same, write

LEASE_S = 60


def test_a_command_by_hand_and_a_transfer_outlast_it(home, sshd, tmp_path):
    road = SlowRoad(sshd.port, 1 << 18)
    slow = Place(home, sshd.entry(port=road.port), tmp_path)
    write(slow.here / "big", os.urandom((LEASE_S + 10) << 18))
    started = slow.start()
    said = []
    command = threading.Thread(target=lambda: said.append(home.call(
        "exec_bash", [sshd.entry()], env=MUCH, timeout=4 * LEASE_S,
        timeout_s=LEASE_S + 60,
        command="sleep %d; echo done" % (LEASE_S + 6))))
    command.start()
    command.join()
    result = slow.end(started["task_id"])
    road.close()
    assert (said[0]["exit_code"], said[0]["stdout"]) == (0, "done\n"), said
    assert result["status"] == "completed", result
    same(slow.here, slow.there, dir_times=False)
