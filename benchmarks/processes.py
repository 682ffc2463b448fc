"""Starts worker processes and sends them requests."""

import json
import os
import subprocess
import tempfile
import threading

from benchmarks.peers import ROOT

# Every peer runs on the CPU, and TensorFlow logs only errors.
SETTINGS = {"CUDA_VISIBLE_DEVICES": "-1", "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2"}
TIME_LIMIT = 600.0


class PeerError(Exception):
    """Raised when a peer fails. The message is listed below the table."""


def child_environment():
    """Returns the environment variables for workers. Bytecode is cached, as in normal use."""
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return inherited | SETTINGS


class WorkerProcess:
    """A worker that runs until `stop`, or until the end of a `with` block.

    A worker that has ended (by a crash or a timeout) is restarted by the next request.
    """

    def __init__(self, python, peer, time_limit=TIME_LIMIT):
        self.python = python
        self.peer = peer
        self.time_limit = time_limit
        self.process = None
        self.errors = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.stop()

    def request(self, action, **arguments):
        """Sends a request and returns the reply, or raises `PeerError`."""
        if self.process is None:
            self._start()
        reply = self._exchange(json.dumps({"action": action, **arguments}))
        if "error" in reply:
            raise PeerError(reply["error"])
        return reply

    def stop(self):
        if self.process is None:
            return
        self.process.kill()
        self.process.communicate()
        self.errors.close()
        self.process = None

    def _start(self):
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115, closed in stop
        self.process = subprocess.Popen(
            [self.python, "-m", "benchmarks.worker", self.peer.name],
            cwd=ROOT,
            env=child_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )

    def _exchange(self, line):
        timed_out = threading.Event()
        timer = threading.Timer(self.time_limit, self._kill, [timed_out])
        timer.start()
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            reply = self.process.stdout.readline()
        except BrokenPipeError:
            reply = ""
        finally:
            timer.cancel()
        if reply:
            return json.loads(reply)
        error = self._error()
        self.stop()
        if timed_out.is_set():
            error = f"no reply within {self.time_limit:g} s"
        raise PeerError(error)

    def _kill(self, timed_out):
        timed_out.set()  # before the end of the process unblocks the reader
        self.process.kill()

    def _error(self):
        status = self.process.wait()
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "no message")
        return f"the process ended with status {status}: {last}"
