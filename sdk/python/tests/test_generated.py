"""What is generated is current, and every operation of the contract has a method or a reason (SDK-01)."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from chorus_sdk import Agent, Callback, Room, Session, __version__, sync
from chorus_sdk.testing import find_binary

ROOT = Path(__file__).parent.parent
OPERATIONS = ROOT / "tests" / "operations.toml"


def load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_current(files: dict[Path, str], command: str) -> None:
    for path, text in files.items():
        assert path.read_text() == text, f"{path.name} is not current: run {command}"


def test_the_types_are_those_of_the_binary() -> None:
    made = load_script("generate_types").generate(find_binary())
    assert_current(made, "python scripts/generate_types.py PATH-OF-CHORUS")


def test_the_sync_face_is_that_of_the_async_one() -> None:
    assert_current(load_script("generate_sync").generate(), "python scripts/generate_sync.py")


def contract_operations() -> dict[str, Any]:
    printed = subprocess.run([find_binary(), "openapi"], check=True, capture_output=True, text=True).stdout
    methods = {"get", "post", "put", "patch", "delete"}
    found = {}
    for path, item in json.loads(printed)["paths"].items():
        for method, operation in item.items():
            if method in methods:
                found[operation["operationId"]] = (method, path)
    return found


def test_every_operation_has_a_method_or_a_reason() -> None:
    table = tomllib.loads(OPERATIONS.read_text())
    classes = {"Agent": Agent, "Room": Room, "Callback": Callback, "Session": Session}
    for operation, target in table["methods"].items():
        owner, _, method = target.partition(".")
        assert callable(getattr(classes[owner], method, None)), f"{operation}: there is no {target}"
    listed = set(table["methods"]) | set(table["exceptions"])
    assert set(contract_operations()) - listed == set(), "operations without a method or a reason in operations.toml"
    assert listed - set(contract_operations()) == set(), "operations that the contract no longer has"


@pytest.mark.parametrize(("asynchronous", "face"), [(Agent, sync.Agent), (Room, sync.Room), (Session, sync.Session)])
def test_both_faces_have_the_same_names(asynchronous: type, face: type) -> None:
    def public(kind: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}

    missing = public(asynchronous) - public(face) - {"decide_reply"}
    assert missing == {"handle", "id", "instrument"} & missing


def test_the_version_is_that_of_the_hub() -> None:
    """SDK-21: the minor version of the SDK is that of the hub it comes with."""
    printed = subprocess.run([find_binary(), "--version"], check=True, capture_output=True, text=True).stdout
    hub = re.fullmatch(r"chorus (\d+\.\d+)\..*\s*", printed)
    assert hub is not None and __version__.startswith(f"{hub[1]}.")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__
