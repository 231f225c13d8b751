"""ptrun: a command-line experiment runner for PyTorch.

This is all that a recipe needs to import. Each name is imported when it is first used: `ptrun --help` needs neither
torch nor pydantic.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import Field

    from ptrun.config import Config
    from ptrun.data.images import Images
    from ptrun.data.imageset import ImageSet
    from ptrun.schedules import schedule
    from ptrun.trained import Trained, load

__version__ = "0.1.0"
__all__ = ["Config", "Field", "ImageSet", "Images", "Trained", "__version__", "load", "schedule"]

_HOMES = {
    "Config": "ptrun.config",
    "Field": "pydantic",
    "Images": "ptrun.data.images",
    "ImageSet": "ptrun.data.imageset",
    "schedule": "ptrun.schedules",
    "Trained": "ptrun.trained",
    "load": "ptrun.trained",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ptrun' has no attribute '{name}'")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
