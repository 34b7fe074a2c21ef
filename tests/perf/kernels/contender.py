"""ipykernel over ZMQ, as Jupyter runs it. argv: cold starts, cells in the last of these kernels.
Prints JSON lines."""
import json
import os
import queue
import sys
import time

from jupyter_client import KernelManager

PATIENCE_S = 60
os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # four lines of its debugger on stderr


def report(case, begin):
    print(json.dumps({"case": case, "us": round((time.perf_counter() - begin) * 1e6, 1)}),
          flush=True)


def start():
    """The first cell is sent at once, and waits in the socket for the kernel: nobody polls."""
    begin = time.perf_counter()
    manager = KernelManager()
    manager.start_kernel()
    client = manager.client()
    client.start_channels(hb=False, stdin=False)
    client.execute("1+1")
    reply = client.get_shell_msg(timeout=PATIENCE_S)
    if reply["content"]["status"] != "ok":
        raise RuntimeError(reply)
    report("ipykernel: start to first answer", begin)
    return manager, client


def stop(manager, client):
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def await_subscription(client):
    """What a kernel publishes before the subscription has reached it is lost."""
    while True:
        client.kernel_info()
        client.get_shell_msg(timeout=PATIENCE_S)
        try:
            client.get_iopub_msg(timeout=0.5)
            return
        except queue.Empty:
            pass


def cell(client):
    """Until the kernel says that it is idle again, with the value seen on the way."""
    begin = time.perf_counter()
    request = client.execute("1+1")
    value = None
    while True:
        message = client.get_iopub_msg(timeout=PATIENCE_S)
        if message["parent_header"].get("msg_id") != request:
            continue  # of an earlier cell
        content = message["content"]
        if message["msg_type"] == "execute_result":
            value = content["data"]["text/plain"]
        if content.get("execution_state") == "idle":
            break
    client.get_shell_msg(timeout=PATIENCE_S)
    if value != "2":
        raise RuntimeError(f"1+1 is {value}")
    report("ipykernel: cell", begin)


def main():
    starts, cells = map(int, sys.argv[1:])
    for _ in range(starts - 1):
        stop(*start())
    manager, client = start()
    try:
        await_subscription(client)
        for _ in range(cells):
            cell(client)
    finally:
        stop(manager, client)


main()
