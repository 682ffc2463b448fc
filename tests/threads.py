"""Runs threads concurrently."""

import sys
import threading


def run_concurrently(*works):
    """Runs functions in one thread each, and raises the first error.

    All start at the same time, and Python switches between them often.
    """
    barrier, errors = threading.Barrier(len(works)), []

    def run(work):
        try:
            barrier.wait(60)
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]
