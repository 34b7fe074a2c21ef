"""One random sequence: cells, checkpoints, rewinds, forks and kills, on one sandbox and its branches. After
each step the sandbox it was about, and another one, are held against their models; at the end all."""
import collections
import random

from model import COPIED, Model
from program import Program
from server import Sandbox, Wrong, in_the_way

SIDES_MAX = 4
STATEMENTS = 4
SHOWN = 600


class Side:
    def __init__(self, sandbox, model):
        self.sandbox, self.model = sandbox, model
        self.checkpoints = {}  # what had been run before each


class Sequence:
    def __init__(self, seed, sandbox, steps, without_copies=False):
        """steps: from how many to how many."""
        self.random = random.Random(seed)
        self.sides = [Side(sandbox, Model())]
        self.log, self.counts = [], collections.Counter()
        self.length = self.random.randint(*steps)
        self.without_copies = without_copies

    # ---- comparing -----------------------------------------------------------------------------

    def name(self, side):
        return side.sandbox.id[:4]

    def compare(self, side, text=""):
        """Runs a cell that the model has run."""
        wanted, got = side.model.describe(), side.sandbox.report(text)
        if wanted == got:
            return
        raise Wrong("\n".join(f"{self.name(side)}: {where}: {has}, and must have {must}"
                              for where, has, must in differences(wanted, got)))

    def glance(self, but):
        """At another one: nothing has changed there."""
        others = [s for s in self.sides if s is not but]
        if others:
            self.compare(self.random.choice(others))

    # ---- steps ---------------------------------------------------------------------------------

    def note(self, side, text):
        self.log.append(f"[{self.name(side)}] {text}")

    def do_cell(self, side, text):
        self.note(side, text)
        self.counts["cells"] += 1
        self.compare(side, text)

    def cell(self, side):
        self.do_cell(side, Program(self.random, side.model).cell(STATEMENTS))

    def make_way(self, side):
        """Mostly there is nothing in the way."""
        if side.model.in_the_way() and self.random.random() < 0.6:
            self.do_cell(side, Program(self.random, side.model).clear())

    def copied(self, side, status, answer):
        """Whether there is a copy; it must be as the model says."""
        wanted = side.model.in_the_way()
        if not wanted:
            if status != 201:
                raise Wrong(f"{status}: {answer}")
            side.model.freeze()
            return True
        self.counts["refusals"] += 1
        if status != 409:
            raise Wrong(f"{status} with {wanted} in the way: {answer}")
        got = in_the_way(answer)
        if got != wanted:
            raise Wrong(f"in the way: {got}, and must have been {wanted}")
        return False

    def check_kernels(self, side, answer):
        states = [k["state"] for k in answer.get("kernels", [])]
        if states != ["carried"]:
            raise Wrong(f"kernels: {answer}")
        dropped = sorted(d["fd"] for d in answer["kernels"][0].get("dropped", []))
        if dropped != side.model.dropped():
            raise Wrong(f"dropped: {answer['kernels']}, and must have been {side.model.dropped()}")

    def checkpoint(self, side):
        self.make_way(side)
        self.note(side, "checkpoint")
        status, answer = side.sandbox.try_checkpoint()
        if self.copied(side, status, answer):
            self.counts["checkpoints"] += 1
            self.check_kernels(side, answer)
            side.checkpoints[answer["checkpoint"]["checkpointId"]] = list(side.model.history)
        self.compare(side)

    def rewind(self, side):
        if not side.checkpoints:
            self.checkpoint(side)
            return
        which = self.random.randrange(len(side.checkpoints))
        name = list(side.checkpoints)[which]
        self.note(side, f"rewind to checkpoint {which + 1} of {len(side.checkpoints)}")
        self.counts["rewinds"] += 1
        side.sandbox.rewind(name)
        side.model = Model.of([*side.checkpoints[name], COPIED])
        self.compare(side)

    def forget(self, side):
        if not side.checkpoints:
            self.checkpoint(side)
            return
        name = self.random.choice(list(side.checkpoints))
        self.note(side, f"forget checkpoint {list(side.checkpoints).index(name) + 1}")
        side.sandbox.forget(name)
        del side.checkpoints[name]
        self.compare(side)

    def fork(self, side):
        self.make_way(side)
        count = min(self.random.choice((1, 1, 1, 1, 2, 2, 3)), SIDES_MAX - len(self.sides))
        if count < 1:
            self.kill(side)
            return
        status, answer = side.sandbox.try_fork(count=count, timeout=3600)
        if self.copied(side, status, answer):
            self.counts["branches"] += count
            for one in answer:
                self.check_kernels(side, one)
                self.sides.append(Side(Sandbox(side.sandbox.line, one["sandbox"]), side.model.copy()))
        self.note(side, f"fork, {count}: {[self.name(s) for s in self.sides[-count:]]}")
        for new in self.sides[-count:]:
            self.compare(new)
        self.compare(side)

    def kill(self, side):
        if len(self.sides) == 1:
            self.cell(side)
            return
        self.note(side, "kill")
        self.counts["kills"] += 1
        side.sandbox.kill()
        self.sides.remove(side)

    # ---- from beginning to end -----------------------------------------------------------------

    def choose(self):
        """The steps. In each sequence there is a copy, or something is gone back to."""
        if self.without_copies:
            return [Sequence.cell] * self.length
        copy = self.random.choice(((Sequence.fork,), (Sequence.checkpoint, Sequence.cell,
                                                      Sequence.rewind)))
        kinds = (Sequence.cell, Sequence.checkpoint, Sequence.rewind, Sequence.forget,
                 Sequence.fork, Sequence.kill)
        steps = [Sequence.cell, *self.random.choices(kinds, (45, 10, 15, 1, 20, 9),
                                                     k=max(0, self.length - 1 - len(copy)))]
        for step in copy:
            steps.insert(self.random.randint(1, len(steps)), step)
        return steps

    def run(self):
        """The sandbox that is left for the next sequence. All others have ended."""
        self.note(self.sides[0], "begin()")
        self.compare(self.sides[0], "begin()")
        for step in self.choose():
            side = self.random.choice(self.sides)
            step(self, side)
            self.glance(side)
        for side in self.sides:
            program = Program(self.random, side.model)
            self.do_cell(side, f"{program.clear()}\n{program.drain()}")
        for side in self.sides[:-1]:
            self.compare(side)
        kept = self.random.choice(self.sides)
        for side in self.sides:
            if side is not kept:
                side.sandbox.kill()
        return kept.sandbox

    def abandon(self):
        """After a failure."""
        for side in self.sides:
            try:
                side.sandbox.kill()
            except (Wrong, OSError):
                pass


def differences(wanted, got, where=""):
    """(where, what is there, what must be)"""
    if not (isinstance(wanted, dict) and isinstance(got, dict)):
        return [] if wanted == got else [(where, repr(got)[:SHOWN], repr(wanted)[:SHOWN])]
    found = []
    for key in sorted({*wanted, *got}):
        if key not in wanted or key not in got:
            found.append((f"{where} {key}", repr(got.get(key, "nothing"))[:SHOWN],
                          repr(wanted.get(key, "nothing"))[:SHOWN]))
        else:
            found += differences(wanted[key], got[key], f"{where} {key}")
    return found[:20]
