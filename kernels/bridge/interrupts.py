"""SIGINT: noted while a cell runs, or is on its way in, to be handed on to the interpreter. At any
other time it means nothing.
"""
import os
import signal


class Interrupts:
    def __init__(self, control):
        self._control = control
        self._running = False
        self.count = 0  # since the cell began
        # Readable when another one has come: wakes up poll().
        self.fd, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        # A handler, and not SIG_IGN, which programs would inherit.
        signal.signal(signal.SIGINT, self._on_signal)

    def _on_signal(self, _number, _frame):
        if self._running or self._control.waiting():
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
