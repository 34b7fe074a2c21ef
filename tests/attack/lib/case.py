"""A case: a script that attacks from inside a sandbox, with its orders in the comments at its top.

    # case: A02                    its number in the plan
    # title: what is tried
    # users: user root             as whom it runs, one run each
    # options: --pids 64           for `sandglass run`
    # options-long: ...            instead, in a long run
    # expect-limit: pids           the result must name one of these limits
    # control: seccomp,nested-ns   without these layers the attack must work...
    # control-user: root           ...when tried as this user (default: the first)
    # may-die: yes                 the kernel may choose the case itself when memory runs out
    # heavy: yes                   runs alone, with a neighbour that must not notice
    # standalone: yes              does not need lib/inside.py in front of it
"""
import os
import re
import tempfile

from program import CONTROL, LONG, run_json

HERE = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))


class Case:
    def __init__(self, path):
        self.path, self.text = path, open(path).read()
        found = re.findall(r"^# ([a-z-]+): (.+)$", self.text.split("\n\n")[0], re.M)
        head = dict(found)
        self.id, self.title = head["case"], head["title"]
        self.users = head.get("users", "user root").split()
        options = LONG and head.get("options-long") or head.get("options", "--timeout 20s")
        self.options = options.split()
        self.limits = head.get("expect-limit", "").split()
        self.layers = head.get("control")
        self.control_user = head.get("control-user", self.users[0])
        self.may_die = head.get("may-die") == "yes"
        self.heavy = head.get("heavy") == "yes"
        self.standalone = head.get("standalone") == "yes"

    def script(self):
        if self.standalone:
            return self.text
        with open(f"{HERE}/lib/inside.py") as f:
            return f'CASE = "{self.id}"\n{f.read()}\n{self.text}'

    def run(self, user, program=None, layers=None):
        """(result, object, output) of one run; a program and layers for a control."""
        more = {"program": program} if program else {}
        env = ["--env", "ATTACK_LONG=1"] if LONG else []
        if layers:
            more["env"] = {**os.environ, "SANDGLASS_CONTROL_OMIT": layers}
            env += ["--env", "ATTACK_CONTROL=1"]
        with tempfile.NamedTemporaryFile("w", prefix="sandglass-attack-", suffix=".py") as f:
            f.write(self.script())
            f.flush()
            r, o = run_json(
                "--user",
                user,
                *self.options,
                *env,
                "-f",
                f.name,
                timeout=3900 if LONG else 120,
                **more,
            )
        return r, o, o["stdout"] if o else ""

    def judge(self, user):
        """What is wrong with a run under protection: a list, empty if nothing is."""
        r, o, out = self.run(user)
        wrong = [line for line in out.splitlines() if line.startswith("PWNED")]
        if o is None:
            wrong.append(f"no result: {r}")
        elif self.may_die and (o["limit"], o["exit_code"]) == ("memory", 137):
            pass
        elif f"DONE {self.id}" not in out.splitlines():
            wrong.append(
                f"the case did not come to its end: status {o['status']}, exit code "
                f"{o['exit_code']}, limit {o['limit']}, {o['error_message']}\n"
                f"{out[-1500:]}\n{o['stderr'][-1500:]}"
            )
        elif self.limits and o["limit"] not in self.limits:
            wrong.append(
                f"the result names the limit {o['limit']}, not {' or '.join(self.limits)}\n"
                f"{out[-1500:]}"
            )
        return wrong

    def judge_control(self):
        """Without its layers the attack must be seen to work."""
        r, o, out = self.run(self.control_user, program=CONTROL, layers=self.layers)
        if re.search(f"^PWNED {self.id} ", out, re.M):
            return []
        if not o:
            return [f"nothing was noticed: {r}"]
        return [
            f"nothing was noticed: status {o['status']}, exit code {o['exit_code']}, limit {o['limit']}, "
            f"{o['error_message']}\n{out[-2500:]}\n{o['stderr'][-500:]}"
        ]


def all_cases():
    top = f"{HERE}/cases"
    return [Case(f"{top}/{name}") for name in sorted(os.listdir(top)) if name.endswith(".py")]
