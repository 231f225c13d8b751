"""Recipe fields on the command line: `--lr 0.05`, `--batch-size=64`, `--no-nesterov` and `lr=0.05`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

from ptrun.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from ptrun.config import Config

BOOLEANS = {"true", "false", "yes", "no", "on", "off", "1", "0"}


@dataclass
class FieldArguments:
    """What a command line leaves for the recipe: raw tokens, and the machine options they may be typos of."""

    tokens: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)

    def parse(self, recipe: str, kind: "type[Config]") -> dict[str, str]:
        """Return `{field: text}`; raise UsageError for unknown, incomplete or contradictory tokens."""
        taken = [name for name in kind.model_fields if f"--{name.replace('_', '-')}" in self.options]
        if taken:
            raise UsageError(f"{recipe}: the command has options called {', '.join(taken)}; rename these fields")
        values: dict[str, str] = {}
        tokens = list(self.tokens)
        while tokens:
            name, value = self._take(recipe, kind, tokens)
            if values.setdefault(name, value) != value:
                raise UsageError(f"{name} is given twice: {values[name]} and {value}; leave one out")
        return values

    def _take(self, recipe: str, kind: "type[Config]", tokens: list[str]) -> tuple[str, str]:
        token = tokens.pop(0)
        key, equals, value = token.partition("=")
        if not token.startswith("-") and not equals:
            raise UsageError(f"unexpected argument '{token}'; a field is set with --{token} VALUE or {token}=VALUE")
        name = key.lstrip("-").replace("-", "_")
        if not equals and name.startswith("no_") and name not in kind.model_fields and _is_bool(kind, name[3:]):
            return name[3:], "false"
        if name not in kind.model_fields:
            raise UsageError(f"{recipe} has no option '{key}'{self._suggest(key, kind)}")
        if equals:
            return name, value
        if _is_bool(kind, name) and not (tokens and tokens[0].lower() in BOOLEANS):
            return name, "true"
        if not tokens or tokens[0].startswith("--"):
            raise UsageError(f"{key} needs a value, like {key} {_example(kind, name)}")
        return name, tokens.pop(0)

    def _suggest(self, key: str, kind: "type[Config]") -> str:
        flags = [f"--{name.replace('_', '-')}" for name in kind.model_fields]
        hint = did_you_mean("--" + key.lstrip("-").replace("_", "-"), [*flags, *self.options])
        return hint or "; ptrun train RECIPE --help lists all of them"


class RecipeCommand(TyperCommand):
    """A command whose argument is a recipe and which takes that recipe's fields as options.

    Options of the command itself stay Typer's; all other tokens are kept in `ctx.obj` until the recipe is known.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Split `args` into the recipe and Typer's own options, and the recipe's fields."""
        parts = split_arguments(args, *_option_arities(self.params, ctx), _is_recipe)
        ctx.obj = FieldArguments(parts.fields, [o for o in parts.options if o.startswith("--")])
        ctx.meta["ptrun.recipe"] = parts.recipe
        return super().parse_args(ctx, ([parts.recipe] if parts.recipe else []) + parts.own)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the command's options, then the fields of the recipe if one was named."""
        super().format_options(ctx, formatter)
        if ctx.meta["ptrun.recipe"]:
            from ptrun.config import bounds
            from ptrun.registry import find_outline

            outline = find_outline(ctx.meta["ptrun.recipe"])
            with formatter.section(f"Fields of {outline.name}"):
                formatter.write_dl(
                    (
                        f"--{name.replace('_', '-')}",
                        f"{info.description or ''}  [{bounds(info)}; default: {info.default}]",
                    )
                    for name, info in outline.config.model_fields.items()
                )


@dataclass(frozen=True)
class Parts:
    """A command line in parts."""

    recipe: str | None
    own: list[str]
    fields: list[str]
    options: list[str]


def split_arguments(
    args: Sequence[str], valued: set[str], flags: set[str], is_recipe: Callable[[str, str], bool]
) -> Parts:
    """Find the recipe among options in any order.

    The recipe is the first word that cannot be the value of an unknown option before it; where every word
    could be one (`--lr 0.1 --nesterov lenet`), it is the first for which `is_recipe(option, word)`.
    """
    own: list[str] = []
    fields: list[str] = []
    candidates: list[int] = []
    recipe: str | None = None
    queue = list(args)
    while queue:
        token = queue.pop(0)
        key = token.partition("=")[0]
        if token == "--":  # only words follow
            recipe = queue.pop(0) if recipe is None and queue else recipe
            fields += queue
            break
        if key in flags or (key in valued and "=" in token):
            own.append(token)
        elif key in valued:
            own += [token, *queue[:1]]
            del queue[:1]
        elif token.startswith("-") or ("=" in token and "/" not in key):  # ./a=b.py is a file
            fields.append(token)
        elif recipe is None and not (fields and fields[-1].startswith("-") and "=" not in fields[-1]):
            recipe = token
        else:
            candidates.append(len(fields))
            fields.append(token)
    if recipe is None:
        place = next((i for i in candidates if is_recipe(fields[i - 1], fields[i])), None)
        recipe = None if place is None else fields.pop(place)
    return Parts(recipe, own, fields, sorted(valued | flags))


def _is_recipe(option: str, word: str) -> bool:
    from ptrun.config import Config
    from ptrun.registry import names_recipe

    # The fields that every recipe has all take a value: in `--data fashion` no recipe is named.
    return option.lstrip("-").replace("-", "_") not in Config.model_fields and names_recipe(word)


def _option_arities(params: Sequence[Any], ctx: Any) -> tuple[set[str], set[str]]:
    options = [p for p in params if p.param_type_name == "option"]
    valued = {name for p in options if not p.is_flag for name in p.opts}
    flags = {name for p in options if p.is_flag for name in [*p.opts, *p.secondary_opts]}
    return valued, flags | set(ctx.help_option_names)


def _is_bool(kind: "type[Config]", name: str) -> bool:
    return name in kind.model_fields and kind.model_fields[name].annotation is bool


def _example(kind: "type[Config]", name: str) -> Any:
    return kind.model_fields[name].default
