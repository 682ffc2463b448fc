"""Compiled programs are cached on disk, so that a second process compiles nothing."""

import os
import subprocess
import sys

import pytest

from retrograde.program import compilation_cache

pytestmark = pytest.mark.xla

PROGRAM = """
import jax, retrograde as tf
jax.numpy.sin(1.0)  # JAX compiles before the cache is enabled
hits = []
jax.monitoring.register_event_listener(
    lambda name, **_: hits.append(name.rsplit("/", 1)[-1]) if "compilation_cache" in name else None
)
v = tf.Variable([1.0, 2.0])

@tf.function(jit_compile=True)
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sin(v * x))
    v.assign_sub(tape.gradient(loss, v))
    return loss

x = tf.constant([0.5, 0.25])
step(x)  # the first call traces
print(float(step(x)))
print(hits.count("cache_hits"), hits.count("cache_misses"))
"""


ON = {"JAX_ENABLE_COMPILATION_CACHE": "true"}


def run(home, **environ):
    environ = os.environ | {"XDG_CACHE_HOME": str(home)} | environ
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], env=environ, capture_output=True, text=True
    )
    assert not process.returncode, process.stderr
    loss, counts = process.stdout.splitlines()
    return loss, tuple(map(int, counts.split()))


def test_a_second_process_uses_the_cache(tmp_path):
    loss, (hits, misses) = run(tmp_path, **ON)
    assert not hits
    assert misses
    assert run(tmp_path, **ON) == (loss, (misses, 0))


def test_jax_settings_disable_the_cache(tmp_path):
    run(tmp_path, JAX_ENABLE_COMPILATION_CACHE="false")
    assert not list(tmp_path.iterdir())


def test_jax_settings_select_the_directory(tmp_path):
    own = tmp_path / "own"
    run(tmp_path, **ON, JAX_COMPILATION_CACHE_DIR=str(own))
    assert not (tmp_path / "retrograde").exists()


def test_a_corrupt_entry_is_compiled_again(tmp_path):
    loss, (_, misses) = run(tmp_path, **ON)
    entries = list(tmp_path.rglob("*-cache"))
    assert len(entries) == misses
    for entry in entries:
        entry.write_bytes(b"corrupt")
    environ = os.environ | {"XDG_CACHE_HOME": str(tmp_path)} | ON
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environ, capture_output=True, text=True
    )
    assert process.stdout.splitlines()[0] == loss


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="the mode of files is POSIX")
def test_a_directory_that_others_can_write_to_is_not_used(tmp_path):
    directory = tmp_path / "cache"
    assert compilation_cache._is_private(directory)
    assert directory.stat().st_mode & 0o777 == 0o700
    directory.chmod(0o770)
    assert not compilation_cache._is_private(directory)


def test_a_directory_that_cannot_be_created_is_not_used(tmp_path):
    (tmp_path / "file").write_text("")
    assert not compilation_cache._is_private(tmp_path / "file" / "cache")
