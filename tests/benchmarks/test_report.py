"""Tests the benchmark report: tables, goals, comparison of results, environments."""

import ast
from pathlib import Path

import pytest

import benchmarks
from benchmarks import environments, growth, neighbors, processes, report
from benchmarks.goals import GOALS, Goal, Limit
from benchmarks.peers import COMPILED_PEERS, INPUT_PIPELINE_PEERS, KERAS_PEERS, PEER_BY_NAME, PEERS
from benchmarks.report import Report, Result
from benchmarks.workloads import (
    COMPILED,
    DERIVATIVES,
    DESCRIPTIONS,
    KERAS,
    KERAS_LOOPS,
    MEMORY,
    MODELS,
    PIPELINES,
    STEPS,
)

FOLDER = Path(benchmarks.__file__).parent


@pytest.fixture
def square():
    return Result("square", "s", {"retrograde": 2e-5, "tensorflow": 5e-4, "torch": 1.5e-5})


def test_the_section_about_growth_has_both_tables():
    cell = {"seconds": 0.002, "megabytes": 3.0}
    measured = {("explain", size): cell for size in growth.CALLS}
    measured |= {("training step", size): cell for size in growth.BATCHES}
    measured["explain", growth.CALLS[-1]] = None

    section = growth.section(measured)

    assert section.startswith(growth.HEADING)
    assert section.count("| explain ") == section.count("| training step ") == 1
    assert section.count("2.00 ms") == len(measured) - 1


@pytest.mark.parametrize("stage", growth.STAGES)
def test_every_stage_of_growth_runs(stage):
    assert growth.measure_one(stage, 10)["seconds"] > 0


def workloads_of(path):
    """Returns the names of the functions with the decorator `@workload`."""
    functions = [n for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)]
    return {
        f.name for f in functions if any(ast.unparse(d) == "workload" for d in f.decorator_list)
    }


NEIGHBORS_ONLY = set(neighbors.ROWS) - set(DESCRIPTIONS)


@pytest.mark.parametrize("name", neighbors.PEERS)
def test_peers_measured_with_neighbors_have_all_workloads(name):
    module = PEER_BY_NAME[name].workloads.removeprefix("benchmarks.")

    assert set(neighbors.ROWS) <= workloads_of(FOLDER / f"{module}.py")


def test_the_section_about_neighbors_is_replaced():
    times = {"retrograde": (1e-3, 2e-3), "torch": (1e-3, 2e-3)}
    slow = {"retrograde": (3e-3, 4e-3), "torch": (2e-3, 9e-3)}
    measured = {(n, "small_mlp"): times if n == "none" else slow for n in neighbors.NEIGHBORS}
    section = neighbors.tables(measured)
    page = report.with_section("# Benchmarks\n\nText.\n", section)

    assert neighbors.slowdowns(measured)["one core", "small_mlp"] == (3.0, 2.0)
    assert "except for `small_mlp` (one loop of products)" in section
    assert report.with_section(page, section) == page
    assert report.section_of(page, neighbors.HEADING).rstrip() == section.rstrip()


@pytest.mark.parametrize("module", sorted({peer.workloads for peer in PEERS}))
def test_every_module_has_every_workload(module):
    name = f"{module.removeprefix('benchmarks.')}.py"

    assert workloads_of(FOLDER / name) - NEIGHBORS_ONLY == set(STEPS | MEMORY)
    assert workloads_of(FOLDER / name.replace("workloads", "derivatives")) == set(DERIVATIVES)


@pytest.mark.parametrize("module", sorted({peer.workloads for peer in INPUT_PIPELINE_PEERS}))
def test_every_module_with_pipelines_has_all_of_them(module):
    name = f"{module.removeprefix('benchmarks.')}.py"

    assert workloads_of(FOLDER / name.replace("workloads", "pipelines")) == set(PIPELINES)


@pytest.mark.parametrize("module", sorted({peer.workloads for peer in COMPILED_PEERS}))
def test_every_module_has_every_compiled_function(module):
    assert workloads_of(FOLDER / f"{module.removeprefix('benchmarks.')}.py") == set(COMPILED)


def test_all_keras_models_exist():
    assert workloads_of(FOLDER / "keras_models.py") == set(KERAS | MODELS | KERAS_LOOPS)
    assert {peer.workloads for peer in KERAS_PEERS} == {"benchmarks.keras_models"}


def test_goals_name_known_workloads():
    assert {goal.workload for goal in GOALS} <= set(DESCRIPTIONS)


def test_goals_name_known_peers():
    named = {
        getattr(goal, name, None) for goal in GOALS for name in ("numerator", "denominator", "peer")
    }

    assert named <= {*PEER_BY_NAME, "numpy", None}


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (2.5, "s", "2.50 s"),
        (0.0456, "s", "45.6 ms"),
        (0.000999, "s", "999 us"),
        (0.0009999, "s", "1.00 ms"),
        (5.74e-7, "s", "574 ns"),
        (653.7, "MB", "654 MB"),
    ],
)
def test_value_has_three_digits_and_a_unit(value, unit, expected):
    assert report.format_value(value, unit) == expected


def test_ratio_is_peer_over_retrograde(square):
    assert square.ratio("tensorflow", "retrograde") == pytest.approx(25)


def test_ratio_of_a_missing_or_failed_peer_is_none(square):
    square.failures["torch"] = "out of memory"

    assert square.ratio("jax", "retrograde") is None
    assert square.ratio("torch", "retrograde") is None


def test_value_table_shows_a_dash_for_a_missing_peer(square):
    assert report.value_table([square], ["retrograde", "tensorflow", "jax"]) == (
        "| workload | retrograde | tensorflow | ratio | jax | ratio |\n"
        "| -------- | ---------: | ---------: | ----: | --: | ----: |\n"
        "| square   |    20.0 us |     500 us |  25.0 |   - |     - |"
    )


def test_goal_table_shows_which_goals_are_met(square):
    goals = [
        Goal("square", "tensorflow", "retrograde", 20),
        Goal("square", "torch", "retrograde", 1),
        Goal("square", "retrograde", "torch", 1.5, at_most=True),
        Goal("square", "jax", "retrograde", 1),
        Goal("import", "retrograde", "numpy", 1.5, at_most=True),
    ]

    rows = report.goal_table(goals, [square]).splitlines()[2:]

    assert [[cell.strip() for cell in row.strip("|").split("|")] for row in rows] == [
        ["square", "tensorflow / retrograde >= 20", "25.0", "met"],
        ["square", "torch / retrograde >= 1", "0.75", "not met"],
        ["square", "retrograde / torch <= 1.5", "1.33", "met"],
        ["square", "jax / retrograde >= 1", "-", "not measured"],
    ]


def test_a_limit_is_in_microseconds():
    call = Result("call", "s", {"retrograde_function": 4.2e-6, "retrograde_xla": 7e-6})
    limits = [Limit("call", peer, 5) for peer in ("retrograde_function", "retrograde_xla", "jax")]

    rows = report.goal_table(limits, [call]).splitlines()[2:]

    assert [[cell.strip() for cell in row.strip("|").split("|")] for row in rows] == [
        ["call", "retrograde_function in us <= 5", "4.20", "met"],
        ["call", "retrograde_xla in us <= 5", "7.00", "not met"],
        ["call", "jax in us <= 5", "-", "not measured"],
    ]


def test_compiled_functions_have_a_separate_table(square):
    call = Result("call", "s", {"retrograde_eager": 2e-6, "jax_jit": 5e-6})
    names = ["retrograde", "tensorflow", "retrograde_eager", "jax_jit"]

    text = Report(names, [square, call], {}, {}, ()).text()

    assert "| compiled | retrograde_eager | jax_jit |" in text
    assert "| call     |          2.00 us | 5.00 us |" in text
    assert "| workload | retrograde | tensorflow | ratio |" in text


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ([[1.0, 1.0]], [[1.0005, 1.0005]], True),
        ([[1.0, 1.0]], [[1.002, 1.002]], False),
        ([[1e-9, 5.0]], [[-1e-9, 5.0]], True),  # sums that cancel
        ([[1.0, 1.0]], [[1.0, 1.0], [2.0, 2.0]], False),
        ([[float("nan"), float("nan")]], [[1.0, 1.0]], False),
    ],
)
def test_checksums_are_compared_relative_to_the_magnitudes(one, two, expected):
    assert report.checksums_agree(one, two) is expected


def test_a_peer_with_different_results_is_named(square):
    good, bad = [[1.0, 1.0]], [[2.0, 2.0]]
    square.checksums = {"retrograde": bad, "tensorflow": good, "torch": good}

    assert report.disagreements([square]) == ["square: retrograde differs from tensorflow."]


def test_agreement_names_the_compared_workloads(square):
    square.checksums = {"retrograde": [[1.0, 1.0]], "torch": [[1.0, 1.0]]}

    assert report.agreement_text([square]) == (
        "All peers computed the same results in square (relative tolerance 0.001)."
    )
    assert report.agreement_text([Result("import", "s")]) == "No results were compared."


def test_noisy_measurements_are_listed(square):
    square.rounds = {"torch": [4e-3, 90e-3, 120e-3], "jax": [1e-3, 1.1e-3, 1.2e-3]}

    assert report.noisy_lines([square]) == ["- square, torch: best 4.00 ms, median 90.0 ms"]


def test_relative_line():
    memory = Result("memory_50_layers", "MB", {"torch": 600.0, "jax": 900.0})

    assert report.relative_line(memory, "torch") == (
        "memory_50_layers, relative to torch (600 MB): jax 1.50."
    )
    assert report.relative_line(memory, "numpy") is None


def test_text_has_the_reasons_for_missing_values(square):
    square.failures["torch"] = "out of memory"
    text = Report(
        ["retrograde", "torch", "jax"], [square], {"jax": "not installed"}, {}, GOALS
    ).text()

    assert "- jax: not installed\n- square, torch: out of memory" in text


def test_page_has_machine_versions_and_date(square):
    versions = {"torch": {"version": "2.13.0", "numpy": "2.4.6"}}
    run = Report(["retrograde", "torch"], [square], {}, versions, GOALS)

    text = report.page(run, {"Memory": "24 GB"}, "2026-01-31", rounds=7)

    assert "- Memory: 24 GB" in text
    assert "| torch |  2.13.0 | 2.4.6 |" in text
    assert text.endswith("Measured on 2026-01-31.\n")


def test_environment_is_current_only_with_the_same_marker(tmp_path):
    marker = environments.marker_text(("torch==2.13.0",), "3.11.7")
    assert not environments.is_current(tmp_path, marker)

    (tmp_path / environments.MARKER).write_text(marker)
    assert environments.is_current(tmp_path, marker)
    assert not environments.is_current(
        tmp_path, environments.marker_text(("torch==2.14.0",), "3.11.7")
    )
    assert not environments.is_current(
        tmp_path, environments.marker_text(("torch==2.13.0",), "3.12.0")
    )


def fake_python(folder, script):
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_the_error_of_a_process_has_the_last_line_of_stderr(tmp_path):
    python = fake_python(tmp_path, "echo first >&2; echo last >&2; exit 3")

    with (
        processes.WorkerProcess(python, PEERS[0]) as worker,
        pytest.raises(processes.PeerError, match=r"^the process ended with status 3: last$"),
    ):
        worker.request("versions")


def test_a_process_that_does_not_reply_is_killed(tmp_path):
    python = fake_python(tmp_path, "exec sleep 60")

    with (
        processes.WorkerProcess(python, PEERS[0], time_limit=0.2) as worker,
        pytest.raises(processes.PeerError, match=r"^no reply within 0\.2 s$"),
    ):
        worker.request("versions")
