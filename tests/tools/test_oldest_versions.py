"""tools/oldest_versions.py: constraints for the oldest versions that pyproject.toml declares."""

import tomllib

import pytest

from tools import oldest_versions


def test_each_requirement_becomes_its_minimum():
    project = {
        "dependencies": ["numpy>=2.1", "ml_dtypes >= 0.5"],
        "optional-dependencies": {"xla": ["jax[cpu]>=0.8,<1"], "keras": [], "docs": ["mkdocs>=1"]},
    }

    assert oldest_versions.constraints(project) == ["numpy==2.1", "ml_dtypes==0.5", "jax==0.8"]


def test_a_requirement_without_a_minimum_is_refused():
    with pytest.raises(ValueError, match=r"such as 'numpy>=2\.0'; received 'scipy' in pyproject"):
        oldest_versions.constraints({"dependencies": ["scipy"]})


def test_all_requirements_of_the_project_are_constrained(capsys):
    oldest_versions.main()
    lines = capsys.readouterr().out.splitlines()
    project = tomllib.loads(oldest_versions.PYPROJECT.read_text())["project"]

    extras = project["optional-dependencies"]
    expected = [*project["dependencies"], *extras["xla"], *extras["keras"]]
    assert len(lines) == len(expected)
    assert {line.partition("==")[0] for line in lines} >= {"numpy", "scipy", "jax", "keras"}
