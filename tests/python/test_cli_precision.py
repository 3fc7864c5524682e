"""cuvil compile --precision, and what shows it."""

import json
from pathlib import Path

import pytest


def test_says_how_far_outputs_are_from_f32(cli, mlp_text: Path, tmp_path: Path):
    done = cli(
        "compile", mlp_text, "--precision", "int8-weights", "--input", "x=[[1,0,0,0],[0,0,1,0]]", "--report", "r.json"
    )
    assert done.returncode == 0, done.stderr
    heading, columns, row, last = done.stdout.splitlines()
    assert heading == "int8-weights against f32, given inputs"
    assert columns.split() == ["output", "type", "max", "abs", "of", "largest"]
    assert row.split()[:2] == ["y", "f32[2,3]"]
    # The rows are 0.5, -1, 2 and 3, 1, 1, in steps of 3 / 127, 2 / 127 and 4 / 127: 0.5 is off by 0.0039.
    absolute, of_largest = map(float, row.split()[2:])
    assert 0.003 < absolute < 0.5 * 4 / 127
    assert of_largest == pytest.approx(absolute / 3, rel=0.01)
    assert last.startswith("mlp.cuvil: ")
    (error,) = json.loads((tmp_path / "r.json").read_text())["precision_errors"]
    assert error["output"] == "y"
    assert error["max_absolute"] == pytest.approx(absolute, rel=0.01)
    assert "int8-weights" in cli("inspect", "mlp.cuvil").stdout
    assert "gemm_i8" in cli("inspect", "mlp.cuvil", "--kernels").stdout


@pytest.mark.parametrize("level", ["v2", "v3", "v4"])
def test_random_inputs_need_sizes(cli, mlp_text: Path, level: str):
    arguments = ["compile", mlp_text, "--precision", "bf16-weights", "--isa", level]
    done = cli(*arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    assert "not compared with f32: x: f32[N,4]: the size N is open; give it as --size N=1" in done.stderr
    sized = cli(*arguments, "--size", "N=5")
    assert sized.returncode == 0, sized.stderr
    # These weights have few digits.
    assert sized.stdout.splitlines()[2].split() == ["y", "f32[5,3]", "0", "0"]
    assert cli(*arguments, "--size", "N=5", "--quiet").stdout == ""
    wrong = cli(*arguments, "--input", "x=[[1,2,3]]")
    assert wrong.returncode == 1
    assert "expected [N,4]" in wrong.stderr


def test_other_verbs_take_it(cli, mlp_text: Path):
    same = cli("verify", mlp_text, "--size", "N=3", "--precision", "bf16-weights")
    assert same.returncode == 0, same.stderr
    other = cli("verify", mlp_text, "--input", "x=[[1,0,0,0]]", "--precision", "int8-weights")
    assert other.returncode == 1
    assert "DIFFERS" in other.stdout
    assert cli("verify", mlp_text, "--size", "N=3", "--precision", "int8-weights", "--atol", "0.1").returncode == 0
