"""What a recipe file says of itself, read in milliseconds without importing torch.

The file is read once and executed in two parts, in one namespace: what `Config` and `PRESETS` need at once, the rest
by `Recipe` when torch is there.
"""

import ast
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from ptrun.config import Config
from ptrun.errors import UsageError

REQUIRED = ("model", "data", "optimizer")
LIGHT_IMPORTS = {"ptrun", "typing", "pydantic", "annotated_types", "math", "enum", "dataclasses", "__future__"}


@dataclass(frozen=True)
class Outline:
    """A recipe's name, documentation and fields."""

    name: str
    path: Path
    doc: str
    config: type[Config]
    source: bytes  # as it was read: what runs, and what is kept with the run
    module: ModuleType  # so far with the light part only
    rest: ast.Module
    presets: dict[str, dict[str, Any]] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return self.doc.strip().partition("\n")[0]


def read_outline(path: Path, name: str | None = None) -> Outline:
    """Return the outline of the recipe at `path`; raise UsageError if it is not a recipe."""
    source = _read(path)
    tree = _parse(path, source)
    bound = {name for node in tree.body for name in _bound_names(node)}
    missing = [f"{function}(…)" for function in REQUIRED if function not in bound]
    if "Config" not in bound:
        missing.insert(0, "class Config(ptrun.Config)")
    if missing:
        raise UsageError(f"recipe {path} lacks {', '.join(missing)}; ptrun new FILE --from lenet writes a complete one")
    light = _light_part(tree)
    module = _execute(path, ast.Module(light, type_ignores=[]))
    config = getattr(module, "Config", None)
    if not (isinstance(config, type) and issubclass(config, Config)):
        raise UsageError(f"recipe {path}: Config must be a class derived from ptrun.Config")
    bare = [name for name, info in config.model_fields.items() if info.is_required()]
    if bare:
        raise UsageError(f"recipe {path}: Config gives {', '.join(bare)} no default; every field needs one")
    return Outline(
        name=name or path.stem,
        path=path,
        doc=ast.get_docstring(tree) or "",
        config=config,
        source=source,
        module=module,
        rest=ast.Module([node for node in tree.body if node not in light or _is_future(node)], type_ignores=[]),
        presets=_presets(path, getattr(module, "PRESETS", {})),
        aliases=_aliases(tree),
    )


def aliases_of(path: Path) -> tuple[str, ...]:
    """Return the recipe's aliases without executing anything; empty for a file that gives none."""
    try:
        return _aliases(_parse(path, _read(path)))
    except UsageError:
        return ()


def _aliases(tree: ast.Module) -> tuple[str, ...]:
    assigned = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    values = [node.value for node in assigned if node.value and "ALIASES" in _bound_names(node)]
    try:
        return tuple(map(str, ast.literal_eval(values[0]))) if values else ()
    except (ValueError, TypeError):
        return ()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"recipe {path} cannot be read: {error.strerror}") from None


def _parse(path: Path, source: bytes) -> ast.Module:
    try:
        return ast.parse(source, filename=str(path))
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise UsageError(f"recipe {path}{line} is not valid Python: {reason}") from None


def _bound_names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


def _light_part(tree: ast.Module) -> list[ast.stmt]:
    """Return the statements that bind what Config and PRESETS need, in order; imports of torch are not among them."""
    needed, size = {"Config", "PRESETS"}, 0
    while size < len(needed):
        size = len(needed)
        for node in tree.body:
            if needed & set(_bound_names(node)):
                needed |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    wanted = [node for node in tree.body if needed & set(_bound_names(node)) or _is_future(node)]
    return [node for node in wanted if not _imports_more(node)]


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _imports_more(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").partition(".")[0] not in LIGHT_IMPORTS
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    return any(name.partition(".")[0] not in LIGHT_IMPORTS for name in names)


def _execute(path: Path, tree: ast.Module) -> ModuleType:
    module = ModuleType(f"ptrun_recipe_{path.stem}")
    module.__file__ = str(path.absolute())
    sys.modules[module.__name__] = module  # pydantic looks annotations up in the class's module
    try:
        exec(compile(tree, str(path.absolute()), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        line = line_in(path, error)
        raise UsageError(
            f"recipe {path}{line}: {type(error).__name__}: {_first_line(error)}"
            " (Config and PRESETS are read without torch: literals, typing, math, enum and ptrun only)"
        ) from error
    return module


def line_in(path: Path, error: BaseException) -> str:
    """Return ", line N" for the last line of `path` that `error` passed through; empty if it did not."""
    trace, line = error.__traceback__, 0
    while trace:
        if Path(trace.tb_frame.f_code.co_filename).absolute() == path.absolute():
            line = trace.tb_lineno
        trace = trace.tb_next
    return f", line {line}" if line else ""


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _presets(path: Path, presets: Any) -> dict[str, dict[str, Any]]:
    if not (isinstance(presets, dict) and all(isinstance(fields, dict) for fields in presets.values())):
        raise UsageError(f'recipe {path}: PRESETS must be like {{"paper": {{"lr": 0.1}}}}')
    return presets
