"""Ten minutes of mixed traffic from all clients while tools fail, the backend dies and comes back: memory stays, all heals."""

import pathlib
import random
import re
import threading
import time

import pytest

from harness.clients import CLIENTS
from harness.processes import eventually

SECONDS = 600
HEALS_WITHIN_SECONDS = 90
GROWTH_MIB = 64
CALLS = [
    ("echo", {"text": "x"}),
    ("progress", {"steps": 20}),
    ("slow", {"delay_ms": 50}),
    ("flaky", {"fail": 1, "of": 10}),
    ("fetch_url", {"url": "https://down.example/"}),
    ("fetch_url", {"url": "https://up.example/"}),
    ("bad_arguments", {"seats": 70, "class": "economy"}),
    ("needs_permission", {}),
    ("rate_limited", {}),
    ("ask", {}),
]
# What works for a user who asks for nothing odd, once the trouble is over.
THAT_WORK = [
    ("echo", {"text": "x"}),
    ("progress", {"steps": 2}),
    ("slow", {"delay_ms": 5}),
    ("flaky", {"fail": 0, "of": 1}),
    ("fetch_url", {"url": "https://up.example/"}),
    ("needs_permission", {}),
    ("ask", {}),
]


def resident_mib(program):
    status = pathlib.Path(f"/proc/{program.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


@pytest.mark.long
def test_ten_minutes_of_trouble_leave_no_trace(workshop):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    demo = workshop.demo()
    front = workshop.toolvane(demo.url)
    until, warm = time.monotonic() + SECONDS, None

    def live(name):
        """Calls until the end; a client that its own SDK gave up on is replaced, as a host would."""
        own = random.Random(f"{seed} {name}")
        while time.monotonic() < until:
            client = workshop.client(name)
            if "failed" not in client.connect(front.url, {"x-user-id": name}):
                while time.monotonic() < until and own.random() > 0.002:
                    tool, arguments = own.choice(CALLS)
                    if "failed" in client.call(tool, arguments, timeout=10_000) and own.random() < 0.2:
                        break
            client.quit()
            time.sleep(0.1)

    threads = [threading.Thread(target=live, args=(name,)) for name in CLIENTS]
    for thread in threads:
        thread.start()
    while time.monotonic() < until:
        time.sleep(chance.uniform(5, 20))
        if chance.random() < 0.5:
            demo.kill()
            time.sleep(chance.uniform(0.2, 8))
            demo.come_back()
        else:
            demo.fail(chance.choice(["echo", "slow", "*"]), chance.choice(["rpc", "http-503", "truncate"]), times=30)
        if warm is None and until - time.monotonic() < SECONDS * 0.8:
            warm = resident_mib(front.program)
    for thread in threads:
        thread.join(60)
    assert resident_mib(front.program) - warm < GROWTH_MIB

    demo.fail("*", "ok")
    healer = workshop.client("typescript-2-stateless", front.url, user="healer")

    def outages():
        return [tool for scope, tool, status in front.troubles() if (scope, status) == ("PROJECT", "DOWN")]

    def healed():
        for tool, arguments in THAT_WORK:
            healer.call(tool, arguments)
        return not set(outages()) & {"*", *(tool for tool, _ in THAT_WORK)}

    try:
        eventually(healed, HEALS_WITHIN_SECONDS, "everything to heal")
    finally:
        print(f"still DOWN: {outages()}")
    assert front.get("/readyz")[0] == 200
