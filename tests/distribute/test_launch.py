"""`retrograde launch`: starts workers, stops all of them, and leaves no process behind."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

from retrograde.distribute.launch import Cluster, Failure, free_ports
from tests.distribute.workers import ROOT, SECONDS, environment

PROGRAM = """
import os, pathlib, sys, time
folder, mode = pathlib.Path(sys.argv[1]), sys.argv[2]
rank, restart = __import__("json").loads(os.environ["TF_CONFIG"])["task"]["index"], \
    int(os.environ["RETROGRADE_RESTART"])
(folder / f"{rank}.{restart}.pid").write_text(str(os.getpid()))
print(f"started {rank} {restart} {sys.argv[3:]}")
if mode == "import":
    import tensorflow as tf
    print("tensorflow is", tf.Tensor.__module__)
elif mode == "exit" and rank == 1:
    sys.exit(7)
elif mode == "crash" and rank == 1 and restart < 2:
    os.kill(os.getpid(), 9)
elif mode in ("exit", "wait"):
    if os.environ.get("CHILD"):
        child = __import__("subprocess").Popen(["sleep", "300"])
        (folder / f"{rank}.child.pid").write_text(str(child.pid))
    (folder / f"{rank}.ready").touch()
    time.sleep(300)
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def command(program, *options, mode="", module=False):
    target = ["-m", "program"] if module else [str(program / "program.py")]
    return [sys.executable, "-m", "retrograde", "launch", *options, *target, str(program), mode]


def run(program, *options, mode="", module=False):
    process = subprocess.run(
        [*command(program, *options, mode=mode, module=module), "--flag", "x"],
        env=environment(PYTHONPATH=os.pathsep.join(map(str, (ROOT / "src", ROOT, program)))),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    return process.returncode, process.stdout


def pids(program):
    return [int(path.read_text()) for path in program.glob("*.pid")]


def is_running(pid):
    """Returns whether a process runs. Zombie processes do not."""
    with contextlib.suppress(OSError):
        return re.search(r"\) (\w)", pathlib.Path(f"/proc/{pid}/stat").read_text())[1] != "Z"
    return False


def wait_until(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("module", [False, True])
def test_workers_run_a_program_and_their_output_has_their_rank(program, module):
    code, output = run(program, "-n", "2", mode="import", module=module)

    assert code == 0
    for rank in (0, 1):
        assert f"[{rank}] started {rank} 0 ['--flag', 'x']" in output.splitlines()
        assert f"[{rank}] tensorflow is retrograde" in output


def test_all_workers_stop_if_one_fails(program):
    code, output = run(program, "-n", "2", mode="exit")

    assert code == 7
    assert "[launch] worker 1 failed with exit code 7" in output
    assert not any(map(is_running, pids(program)))


def test_all_workers_restart_if_one_is_killed(program):
    code, output = run(program, "-n", "2", "--max-restarts", "2", mode="crash")

    assert code == 0
    assert "[launch] worker 1 was ended by SIGKILL; restart 1 of 2" in output
    assert "[launch] worker 1 was ended by SIGKILL; restart 2 of 2" in output
    assert "[0] started 0 2 ['--flag', 'x']" in output


def test_the_exit_code_names_the_signal_when_no_restarts_are_left(program):
    code, output = run(program, "-n", "2", "--max-restarts", "1", mode="crash")

    assert code == 128 + signal.SIGKILL
    assert output.splitlines()[-1] == "[launch] worker 1 was ended by SIGKILL"


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_no_process_is_left_behind(program, number, code):
    launcher = subprocess.Popen(
        command(program, "-n", "2", mode="wait"),
        env=environment(CHILD="" if number == signal.SIGKILL else "1"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: len(list(program.glob("*.ready"))) == 2)
        started = pids(program)
        assert all(map(is_running, started))
        launcher.send_signal(number)
        assert launcher.wait(SECONDS) == code
        wait_until(lambda: not any(map(is_running, started)))
    finally:
        if launcher.poll() is None:
            launcher.kill()
            launcher.wait()


def test_addresses_are_on_the_loopback_interface_unless_hosts_are_named():
    addresses = Cluster(3).addresses()
    assert len(set(addresses)) == 3
    assert all(address.startswith("127.0.0.1:") for address in addresses)
    cluster = Cluster(2, ["a:1000", "b"], host_rank=1)
    assert cluster.addresses() == ["a:1000", "a:1001", "b:29400", "b:29401"]
    assert list(cluster.ranks) == [2, 3]
    assert len(set(free_ports(20))) == 20


def test_a_failure_says_how_a_worker_ended():
    assert str(Failure(3, 1)) == "worker 3 failed with exit code 1"
    assert str(Failure(0, 128 + signal.SIGSEGV)) == "worker 0 was ended by SIGSEGV"


def test_the_number_of_workers_is_positive(program):
    process = subprocess.run(
        command(program, "-n", "0"), capture_output=True, text=True, timeout=SECONDS
    )
    assert process.returncode == 2
    assert "argument -n: expected a positive integer, not 0" in process.stderr
