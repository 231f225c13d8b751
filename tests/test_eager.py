"""The stand-in that keeps torch's compiler out of eager training, and out of nobody's way."""

import subprocess
import sys
from pathlib import Path

import pytest

STOCHASTIC = Path(__file__).parent / "recipes" / "stochastic.py"

COMPILES = f"""
import sys
from ptrun.main import run
assert run(["train", {str(STOCHASTIC)!r}, "--quiet"]) == 0
assert type(sys.modules["torch._dynamo"]).__name__ == "_StandIn"

import torch
model = torch.nn.Linear(3, 2)
x = torch.ones(4, 3)
compiled = torch.compile(model, backend="eager", fullgraph=True)
assert torch.equal(compiled(x), model(x))
real = sys.modules["torch._dynamo"]
assert type(real).__name__ == "module"
assert real.utils.counters["stats"]["unique_graphs"] == 1

optimizer = torch.optim.SGD(compiled.parameters(), lr=0.1)  # its methods were decorated by the stand-in
before = model.weight.clone()
compiled(x).sum().backward()
optimizer.step()
assert torch.allclose(model.weight, before - 0.1 * 4)

from ptrun.eager import import_torch
import_torch()
assert sys.modules["torch._dynamo"] is real
"""

IMPORTS = """
import torch
from ptrun.eager import import_torch
import_torch()
torch.optim.SGD([torch.zeros(1)], lr=0.1)
import torch._dynamo.config
assert torch._dynamo.config.cache_size_limit >= 1
from torch._dynamo import disable, graph_break
assert graph_break.__module__.startswith("torch._dynamo")
"""


@pytest.mark.parametrize("code", [COMPILES, IMPORTS], ids=["compiles", "imports"])
def test_the_compiler_works_after_the_stand_in(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
