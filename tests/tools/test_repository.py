"""The files for contributors agree with the Makefile and with pyproject.toml."""

import pathlib
import re
import tomllib

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def load_yaml(path):
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_workflows_run_targets_that_exist(path):
    jobs = load_yaml(path)["jobs"].values()
    commands = [step.get("run", "") for job in jobs for step in job["steps"]]
    used = {name for text in commands for name in re.findall(r"\bmake ([a-z-]+)", text)}

    assert used <= TARGETS
    assert all(job["runs-on"] for job in jobs)


def test_workflows_test_all_supported_versions():
    ci = load_yaml(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    declared = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d", c)]

    assert ci["test"]["strategy"]["matrix"]["python"] == declared
    assert {"lint", "test", "oldest", "docs", "dist"} <= {*ci}


@pytest.mark.parametrize("path", FORMS, ids=lambda p: p.name)
def test_issue_forms_have_the_fields_that_github_needs(path):
    form = load_yaml(path)

    if path.name != "config.yml":
        assert form["name"]
        assert form["description"]
        assert all(field["attributes"]["label"] for field in form["body"])


def test_every_documented_target_exists_and_every_target_is_documented():
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    documented = set(re.findall(r"`make ([a-z-]+)", contributing))
    listed = set(re.findall(r"^([a-z-]+):.*##", MAKEFILE, re.MULTILINE))

    assert documented <= TARGETS
    assert listed - {"help", "clean"} <= documented


def test_the_citation_has_the_version_of_the_project():
    citation = load_yaml(ROOT / "CITATION.cff")

    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Repository"]


def test_commit_hooks_run_tools_that_make_installs():
    hooks = [h for r in load_yaml(ROOT / ".pre-commit-config.yaml")["repos"] for h in r["hooks"]]
    tools = {hook["entry"].split()[0].removeprefix(".venv/bin/") for hook in hooks}

    installed = {re.split(r"[^\w-]", r)[0] for r in PROJECT["optional-dependencies"]["dev"]}
    assert tools <= installed | {"python"}
