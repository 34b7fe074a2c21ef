"""A small agent of the Agent Client Protocol, run inside a sandbox: it does what prompts say, in words.

  read PATH          asks its client for a file and tells what is in it
  write PATH TEXT    asks its client to write one
  run COMMAND        asks its client for a terminal and tells what the command wrote
  abilities          tells what its client said it can do
"""
import json
import sys

abilities = None
last_id = 0


def send(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def ask(method, params):
    global last_id
    last_id += 1
    send({"jsonrpc": "2.0", "id": f"a-{last_id}", "method": method, "params": {"sessionId": "s", **params}})
    answer = json.loads(sys.stdin.readline())
    assert answer["id"] == f"a-{last_id}", answer
    return answer.get("result", answer.get("error"))


def do(words):
    if words[0] == "read":
        return ask("fs/read_text_file", {"path": words[1]})
    if words[0] == "write":
        return ask("fs/write_text_file", {"path": words[1], "content": words[2]})
    if words[0] == "run":
        terminal = ask("terminal/create", {"command": "sh", "args": ["-c", " ".join(words[1:])]})
        ended = ask("terminal/wait_for_exit", terminal)
        output = ask("terminal/output", terminal)
        ask("terminal/release", terminal)
        return {"ended": ended, "output": output}
    return abilities


for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "initialize":
        abilities = request["params"].get("clientCapabilities")
        result = {"protocolVersion": 1, "agentCapabilities": {}}
    elif request["method"] == "session/new":
        result = {"sessionId": "s"}
    else:
        text = json.dumps(do(request["params"]["prompt"][0]["text"].split(" ")))
        send({"jsonrpc": "2.0", "method": "session/update", "params": {
            "sessionId": "s",
            "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}})
        result = {"stopReason": "end_turn"}
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})
