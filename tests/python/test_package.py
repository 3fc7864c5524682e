"""The package as such: what importing it costs, and that its stubs say what there is."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import cuvil

FOLDER = Path(cuvil.__file__).parent


def loaded_after(statement: str) -> str:
    code = f"{statement}\nprint(open('/proc/self/maps').read())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout


def test_the_loader_comes_without_the_compiler():
    maps = loaded_after("import cuvil.runtime, cuvil; cuvil.Module; cuvil.__version__")
    assert "_runtime" in maps
    for name in ("LLVM", "clang", "_compiler"):
        assert name not in maps
    assert "_compiler" in loaded_after("import cuvil; cuvil.ir.pass_names()")
    assert "_compiler" in loaded_after("from cuvil import compile, backends")


def test_the_names_of_the_package():
    for name in cuvil.__all__:
        assert getattr(cuvil, name) is not None
        assert name in dir(cuvil)
    assert {name for name in dir(cuvil) if not name.startswith("_")} == set(cuvil.__all__)
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = cuvil.nothing
    assert (FOLDER / "py.typed").exists()


def stub(name: str) -> dict[str, ast.AST]:
    tree = ast.parse((FOLDER / f"{name}.pyi").read_text())
    return members(tree.body)


def members(body: list[ast.stmt]) -> dict[str, ast.AST]:
    found = {}
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = node
    return found


def own_names(thing: object) -> set[str]:
    ours = {name for name in vars(thing) if not name.startswith("_") or name in ("_manifest", "__version__")}
    kept = ("__init__", "__call__", "__iter__", "__len__")
    return ours | {name for name in kept if inspect.isclass(thing) and name in vars(thing)}


def parameters(function: object) -> list[str] | None:
    """Names of the parameters as the extension tells them; None where it does not."""
    if text := getattr(function, "__text_signature__", None):
        return [p for p in inspect.signature(function).parameters if p != "self"] if text else None
    signatures = getattr(function, "__nb_signature__", None)
    if not signatures:
        return None
    tree = ast.parse(signatures[0][0].replace("\\0", "object") + ": ...")
    arguments = tree.body[0].args
    return [a.arg for a in arguments.args + arguments.kwonlyargs if a.arg != "self"]


@pytest.mark.parametrize("name", ["_runtime", "_compiler"])
def test_stubs_match_the_extensions(name: str):
    module = importlib.import_module(f"cuvil.{name}")
    declared = stub(name)
    assert set(declared) == own_names(module)
    for thing, node in declared.items():
        if isinstance(node, ast.FunctionDef):
            check_function(getattr(module, thing), node)
        if not isinstance(node, ast.ClassDef):
            continue
        inside = members(node.body)
        there = own_names(getattr(module, thing))
        # A class that Python cannot make has an __init__ that only refuses.
        assert set(inside) | {"__init__"} == there | {"__init__"}, thing
        for member, definition in inside.items():
            if isinstance(definition, ast.FunctionDef) and not definition.decorator_list:
                check_function(getattr(getattr(module, thing), member), definition)


def check_function(function: object, node: ast.FunctionDef) -> None:
    real = parameters(function)
    if real is None or node.name in ("__call__", "__iter__", "__len__"):
        return
    arguments = node.args.args + node.args.kwonlyargs
    assert [a.arg for a in arguments if a.arg != "self"] == [p for p in real if p not in ("attributes",)], node.name
