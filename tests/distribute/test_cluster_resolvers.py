"""Tests cluster resolvers: the workers of a cluster, and the task of a process."""

import json
from types import SimpleNamespace

import pytest

import retrograde as tf
from retrograde.distribute.cluster_resolver import expand_counts, expand_hostlist
from retrograde.distribute.multi_worker import _worker
from tests.namespaces.helpers import assert_raises

resolvers = tf.distribute.cluster_resolver


def test_a_cluster_spec_has_addresses_by_job_and_task():
    spec = tf.train.ClusterSpec({"worker": ["a:1", "b:2"], "ps": {1: "c:3"}})

    assert spec.jobs == ["ps", "worker"]
    assert spec.as_dict() == {"worker": ["a:1", "b:2"], "ps": {1: "c:3"}}
    assert (spec.num_tasks("worker"), spec.task_indices("ps")) == (2, [1])
    assert (spec.task_address("worker", 1), spec.job_tasks("ps")) == ("b:2", [None, "c:3"])
    assert spec == tf.train.ClusterSpec(spec)
    assert spec
    assert not tf.train.ClusterSpec({})
    assert repr(tf.train.ClusterSpec({"w": ["a:1"]})) == "ClusterSpec({'w': ['a:1']})"


def test_a_cluster_spec_refuses_other_values():
    assert_raises(
        lambda: tf.train.ClusterSpec(["a:1"]),
        TypeError,
        "`cluster` must be a dictionary mapping one or more job names to lists of network "
        "addresses, or a `ClusterSpec`. Received: ['a:1'].",
    )
    assert_raises(
        lambda: tf.train.ClusterSpec({"worker": "a:1"}),
        TypeError,
        "The tasks of job 'worker' must be a list or a dictionary. Received: 'a:1'.",
    )
    assert_raises(
        lambda: tf.train.ClusterSpec({"worker": [1]}),
        TypeError,
        "The addresses of job 'worker' must be strings. Received: 1.",
    )
    spec = tf.train.ClusterSpec({"worker": ["a:1"]})
    assert_raises(lambda: spec.num_tasks("ps"), ValueError, "No such job in cluster: 'ps'.")
    assert_raises(
        lambda: spec.task_address("worker", 1), ValueError, "No task with index 1 in job 'worker'."
    )


def test_tf_config_names_the_workers_and_this_task(monkeypatch):
    cluster = {"chief": ["a:1"], "worker": ["b:2", "c:3"], "ps": ["d:4"]}
    task = {"type": "worker", "index": 1}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    resolver = resolvers.TFConfigClusterResolver()

    assert resolver.cluster_spec().as_dict() == cluster
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
    assert (resolver.master(), resolver.master("chief", 0, "grpc")) == ("c:3", "grpc://a:1")
    assert _worker(resolver) == (2, 3, "a:1")
    assert _worker(resolvers.TFConfigClusterResolver("chief", 0)) == (0, 3, "a:1")
    assert _worker(resolvers.TFConfigClusterResolver("evaluator", 0)) == (0, 1, "")


def test_localhost_is_the_loopback_interface():
    spec = tf.train.ClusterSpec({"worker": ["localhost:12", "localhost:13"]})
    resolver = resolvers.SimpleClusterResolver(spec, task_type="worker", task_id=1)

    assert _worker(resolver) == (1, 2, "127.0.0.1:12")


def test_without_tf_config_there_is_one_worker(monkeypatch):
    for name in ("TF_CONFIG", "SLURM_STEP_NODELIST", "JAX_COORDINATOR_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    assert strategy.num_replicas_in_sync == 1
    assert strategy.cluster_resolver.task_id is None
    assert strategy.run(lambda x: x + 1, args=(tf.constant(1),)).numpy() == 2


def test_a_broken_tf_config_is_reported(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "{")
    with pytest.raises(ValueError, match=r"TF_CONFIG is not JSON: .* Received: '{'"):
        tf.distribute.MultiWorkerMirroredStrategy()
    monkeypatch.setenv("TF_CONFIG", '{"cluster": 3}')
    assert_raises(
        tf.distribute.MultiWorkerMirroredStrategy,
        ValueError,
        "The environment variable TF_CONFIG must be a JSON object with the objects 'cluster' and "
        "'task'. Received: '{\"cluster\": 3}'.",
    )
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker"}}')
    assert_raises(
        tf.distribute.MultiWorkerMirroredStrategy,
        ValueError,
        "MultiWorkerMirroredStrategy: this process is task None of job 'worker', which is not "
        "among the workers {'worker': ['a:1']}. Set 'task' in TF_CONFIG.",
    )


def test_several_resolvers_are_joined():
    specs = [tf.train.ClusterSpec({"worker": [f"{host}:1"]}) for host in "ab"]
    parts = [resolvers.SimpleClusterResolver(s, task_type="worker", task_id=0) for s in specs]
    union = resolvers.UnionResolver(*parts)

    assert union.cluster_spec().as_dict() == {"worker": ["a:1", "b:1"]}
    assert (union.task_type, union.task_id, union.environment) == ("worker", 0, "")


def test_slurm_variables_name_the_workers(monkeypatch):
    monkeypatch.setenv("SLURM_PROCID", "3")
    monkeypatch.setenv("SLURM_STEP_NODELIST", "n[09-10],login")
    monkeypatch.setenv("SLURM_STEP_TASKS_PER_NODE", "2(x2),1")
    resolver = resolvers.SlurmClusterResolver()

    assert resolver.cluster_spec().as_dict() == {
        "worker": ["n09:8888", "n09:8889", "n10:8888", "n10:8889", "login:8888"]
    }
    assert resolver.get_task_info() == ("worker", 3)
    split = resolvers.SlurmClusterResolver({"chief": 1, "worker": 4})
    assert (split.task_type, split.task_id) == ("worker", 2)
    assert_raises(
        lambda: resolvers.SlurmClusterResolver({"worker": 2}),
        ValueError,
        "SlurmClusterResolver: the jobs {'worker': 2} have 2 tasks, but the SLURM step has 5.",
    )
    monkeypatch.delenv("SLURM_PROCID")
    assert_raises(
        resolvers.SlurmClusterResolver,
        RuntimeError,
        "SlurmClusterResolver: the environment variable SLURM_PROCID is not set. Start the program "
        "with srun.",
    )


def test_lists_of_slurm_are_expanded():
    assert expand_hostlist("a[1-3,07]b[1-2],c") == [
        f"a{i}b{j}" for i in ("1", "2", "3", "07") for j in (1, 2)
    ] + ["c"]
    assert expand_counts("3,2(x2)") == [3, 2, 2]


def test_kubernetes_pods_are_found_by_their_labels():
    def pods(label_selector):
        pod = SimpleNamespace(
            status=SimpleNamespace(phase=phase, host_ip="10.0.0.1"),
            metadata=SimpleNamespace(name=label_selector),
        )
        return SimpleNamespace(items=[pod])

    phase = "Running"
    client = SimpleNamespace(list_pod_for_all_namespaces=pods)
    resolver = resolvers.KubernetesClusterResolver(
        {"worker": ["app=x"]}, 99, override_client=client
    )
    assert resolver.cluster_spec().as_dict() == {"worker": ["10.0.0.1:99"]}
    phase = "Pending"
    assert_raises(
        resolver.cluster_spec,
        RuntimeError,
        "Pod 'app=x' is not running; its phase is Pending.",
    )
