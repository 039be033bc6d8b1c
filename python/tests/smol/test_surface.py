"""Names, signatures and fields are those of smolmachines 1.32.2 (tests/fixtures/smol, recorded from it)."""

import dataclasses
import importlib
import inspect
from typing import Any

import smol


def signature(function: Any) -> list[list[Any]]:
    return [
        [p.name, p.kind.name.lower(), None if p.default is inspect.Parameter.empty else repr(p.default)]
        for p in inspect.signature(function).parameters.values()
    ]


def test_AllPublicNamesAreImportable(surface):
    assert sorted(smol.__all__) == surface["names"]
    assert all(hasattr(smol, name) for name in surface["names"])


def test_SubmodulesHoldTheNamesThatProgramsImportFromThem(surface):
    for module, names in surface["submodules"].items():
        held = vars(importlib.import_module(f"smol.{module}"))
        assert set(names) <= held.keys(), module


def test_TheVersionIsThatOfTheInterfaceAndTheEngineIsNamed():
    assert tuple(map(int, smol.__version__.split("."))) >= (1, 27)
    assert smol.__engine__ == "holt"


def test_DataTypesHaveTheFieldsOrderAndDefaults(surface):
    for name, wanted in surface["dataclasses"].items():
        kind = getattr(smol, name)
        fields = [
            [f.name, None if f.default is dataclasses.MISSING else repr(f.default), f.repr]
            for f in dataclasses.fields(kind)
        ]
        assert fields == wanted["fields"], name
        assert kind.__dataclass_params__.frozen == wanted["frozen"], name
        assert not hasattr(kind, "__slots__"), name
        for member in wanted["members"]:
            assert hasattr(kind, member), f"{name}.{member}"


def test_ErrorsHaveTheClassTreeAndConstructors(surface):
    for name, wanted in surface["errors"].items():
        kind = getattr(smol, name)
        bases = [base.__name__ for base in kind.__mro__[1:-2]]
        assert bases == wanted["bases"], name
        assert signature(kind.__init__) == wanted["init"], name


def test_FunctionsHaveTheSignatures(surface):
    for name, wanted in surface["functions"].items():
        assert signature(getattr(smol, name)) == wanted, name


def test_ClassesHaveTheMembersSignaturesAndKinds(surface):
    for class_name, members in surface["classes"].items():
        kind = getattr(smol, class_name)
        for member, wanted in members.items():
            where = f"{class_name}.{member}"
            found = inspect.getattr_static(kind, member)
            if wanted["kind"] == "property":
                assert isinstance(found, property), where
                continue
            held = {staticmethod: "staticmethod", classmethod: "classmethod"}.get(type(found), "method")
            assert held == wanted["kind"], where
            function = found if held == "method" else found.__func__
            assert awaitable(function) == wanted["call"], where
            assert signature(function) == wanted["parameters"], where


def awaitable(function: Any) -> str:
    if inspect.isasyncgenfunction(function):
        return "asyncgen"
    return "async" if inspect.iscoroutinefunction(function) else "plain"
