"""Prints pip constraints for the oldest versions that `pyproject.toml` declares.

    python tools/oldest_versions.py > constraints.txt

A requirement such as `numpy>=2.0` becomes `numpy==2.0`. `make oldest` installs the package with
these constraints, so that the declared minimums are what the tests run with.
"""

from __future__ import annotations

import pathlib
import re
import sys
import tomllib

PYPROJECT = pathlib.Path(__file__).parent.parent / "pyproject.toml"
MINIMUM = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*>=\s*(?P<version>[0-9.]+)")

# The others are tools whose old versions do not work with new versions of their dependencies.
EXTRAS = ("xla", "keras")


def constraints(project: dict) -> list[str]:
    """Returns a line `name==version` for each requirement that states a minimum."""
    optional = project.get("optional-dependencies", {})
    requirements = [*project["dependencies"], *(r for e in EXTRAS for r in optional.get(e, ()))]
    lines = []
    for requirement in requirements:
        minimum = MINIMUM.match(requirement)
        if minimum is None:
            raise ValueError(
                f"Expected a requirement with a minimum version, such as 'numpy>=2.0'; received "
                f"{requirement!r} in {PYPROJECT.name}."
            )
        lines.append(f"{minimum['name']}=={minimum['version']}")
    return lines


def main() -> None:
    """Prints the constraints."""
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    sys.stdout.write("\n".join(constraints(project)) + "\n")


if __name__ == "__main__":
    main()
