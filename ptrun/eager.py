"""Start a second and a half sooner: keep torch's compiler out of eager training.

Every torch optimizer imports `torch._dynamo`, which takes about as long as `import torch` itself, only to mark graph
breaks for a compiler that an eager run never starts. Until something asks for the compiler in earnest, a stand-in
answers those two calls; anything else on it, or below it, imports the real one.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from ptrun.interrupt import ending_at_once

NAME = "torch._dynamo"


class _StandIn(ModuleType):
    def graph_break(self, *_: Any, **__: Any) -> None:
        """Mark nothing: no graph is being captured."""

    def disable(self, function: Callable[..., Any], *_: Any, **__: Any) -> Callable[..., Any]:
        """Return the function as it is: nothing is compiled."""
        return function

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(NAME) is self:
            del sys.modules[NAME]
        return getattr(import_module(NAME), name)


def import_torch() -> None:
    """Import torch, with the stand-in in the compiler's place unless that is loaded already."""
    with ending_at_once():
        import torch  # noqa: F401  # first: the stand-in would hide the real module from it
    sys.modules.setdefault(NAME, _StandIn(NAME))
