"""SIGINT: noted while a cell runs, to be handed on to the interpreter.

At any other time it means nothing, even if a cell has been sent already: it may have been meant for
the one before, and the agent repeats it if it was not.
"""
import os
import signal


class Interrupts:
    def __init__(self):
        self._running = False
        self.count = 0  # since the cell began
        # Readable when another one has come: wakes up poll().
        self.fd, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        # A handler, and not SIG_IGN, which programs would inherit.
        signal.signal(signal.SIGINT, self._on_signal)

    def _on_signal(self, _number, _frame):
        if self._running:
            self.count += 1
            try:
                os.write(self._writer, b"!")
            except BlockingIOError:
                pass

    def begin(self):
        self._running = True

    def end(self):
        self._running = False
        self.count = 0
        self.seen()

    def seen(self):
        """Makes the descriptor quiet until the next one."""
        try:
            os.read(self.fd, 4096)
        except BlockingIOError:
            pass
