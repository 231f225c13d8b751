"""The settings of an experiment: types and bounds, and where each value came from."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ptrun.errors import UsageError, check_utf8, did_you_mean


class Config(BaseModel):
    """The fields that every recipe has; a recipe's own `Config` adds to them and sets other defaults.

    Values are checked when a config is made: unknown fields, wrong types, values out of bounds and numbers
    that are not finite are refused.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True)

    data: str = Field("auto", description="data set by name; auto: the recipe's own, or digits where that is missing")
    seed: int = Field(0, ge=0, lt=2**32, description="decides initial weights, order and augmentation")
    epochs: int = Field(1, ge=1, description="passes over the training set")
    batch_size: int = Field(64, ge=1, description="images per optimizer step")
    val_fraction: float = Field(0.0, ge=0, lt=1, description="share of the training set held out to choose `best`")


@dataclass(frozen=True)
class Layer:
    """Some settings from one place: `{"lr": "0.1"}` from "flag"."""

    source: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Resolved:
    """A checked config and the source of each of its values ("default" where nobody set it)."""

    config: Config
    sources: dict[str, str]

    def as_json(self) -> dict[str, dict[str, Any]]:
        """Return `{field: {"value": …, "source": …}}`, the form kept in a run's config.json."""
        values = self.config.model_dump(mode="json")
        return {name: {"value": values[name], "source": self.sources[name]} for name in values}


def resolve(recipe: str, kind: type[Config], layers: list[Layer]) -> Resolved:
    """Merge layers, strongest first, over the defaults of `kind`; raise one UsageError that names all faults."""
    values: dict[str, Any] = {}
    sources = dict.fromkeys(kind.model_fields, "default")
    faults: list[str] = []
    for layer in reversed(layers):
        for name, value in layer.values.items():
            if name not in kind.model_fields:
                hint = did_you_mean(name, kind.model_fields) or f" (ptrun show {recipe} lists its fields)"
                faults.append(f"no field '{name}' ({layer.source}){hint}")
                continue
            values[name] = _none_if_allowed(kind, name, value)
            sources[name] = layer.source
    try:
        config = kind(**values)
        if not faults:
            return Resolved(config, sources)
    except ValidationError as error:
        faults += [_fault(item, sources) for item in error.errors()]
    raise UsageError(f"{recipe}: {'; '.join(faults)}")


def preset_layer(recipe: str, presets: Mapping[str, Mapping[str, Any]], name: str) -> Layer:
    """Return the fields that a recipe's preset changes."""
    if name not in presets:
        known = f"it has {', '.join(presets)}" if presets else "it has none"
        raise UsageError(f"{recipe} has no preset '{name}' ({known}){did_you_mean(name, presets)}")
    return Layer(f"preset {name}", presets[name])


def file_layer(path: Path) -> Layer:
    """Return the fields of a TOML file, or of the config.json of a run."""
    check_utf8("--config", str(path))
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin with a byte order mark
        document = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"--config {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--config {path} is neither TOML nor JSON: {error}") from None
    try:
        if "fields" in document:  # a run's config.json keeps each value beside its source
            document = {name: entry["value"] for name, entry in document["fields"].items()}
        return Layer(str(path), {**document})
    except (AttributeError, KeyError, TypeError):
        raise UsageError(f"--config {path} must hold fields and values, like `lr = 0.1`") from None


def variable_layers(kind: type[Config], environ: Mapping[str, str]) -> list[Layer]:
    """Return a layer for each `PTRUN_<FIELD>` variable that is set."""
    names = {f"PTRUN_{name.upper()}": name for name in kind.model_fields}
    return [Layer(variable, {name: environ[variable]}) for variable, name in names.items() if variable in environ]


def bounds(info: Any) -> str:
    """Return a field's type and bounds as text: "int, ≥ 1" or "sgd | adam"."""
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    limits = [f"{signs[key]} {getattr(m, key)}" for m in info.metadata for key in signs if hasattr(m, key)]
    return ", ".join([_type_name(info.annotation), *limits])


def _type_name(kind: Any) -> str:
    options = get_args(kind)
    if options:
        return " | ".join(_type_name(option) for option in options)
    return "none" if kind is type(None) else getattr(kind, "__name__", str(kind))


def _none_if_allowed(kind: type[Config], name: str, value: Any) -> Any:
    optional = type(None) in get_args(kind.model_fields[name].annotation)
    return None if optional and isinstance(value, str) and value.lower() == "none" else value


def _fault(item: Any, sources: Mapping[str, str]) -> str:
    reason = item["msg"][0].lower() + item["msg"][1:]
    if not item["loc"]:  # of several fields together
        return str(reason)
    name = str(item["loc"][0])
    return f"{name} = {item['input']!r} ({sources[name]}): {reason}"
