"""States of optimisers as safetensors files, which C++ reads and writes, too."""

import os
from collections import defaultdict

from lazuli import _C
from lazuli._C import Tensor


def _text(value):
    return ("none" if value is None else str(value).lower() if isinstance(value, bool)
            else repr(float(value)))


def _number(text):
    return {"none": None, "true": True,
            "false": False}[text] if text in ("none", "true", "false") else float(text)


def save(optimizer, path):
    """Writes the state of an optimiser as a safetensors file: tensors, and options and counts as
    text."""
    tensors, texts = ({}, {"optimizer": type(optimizer).__name__,
                           "groups": str(len(optimizer.param_groups))})
    packed = optimizer.state_dict()
    for i, group in enumerate(packed["param_groups"]):
        texts[f"group.{i}.parameters"] = str(len(group["params"]))
        for key, value in group.items():
            if isinstance(value, tuple) and len(value) == 2:
                texts[f"group.{i}.{key}.first"], texts[f"group.{i}.{key}.second"] = map(_text,
                                                                                        value)
            elif value is None or isinstance(value, (bool, int, float, Tensor)):
                texts[f"group.{i}.{key}"] = _text(value.item() if isinstance(value, Tensor)
                                                  else value)
    for i, kept in packed["state"].items():
        for key, value in kept.items():
            if key in optimizer._counted:
                texts[f"{i}.{key}"] = _text(value.item())
            elif isinstance(value, Tensor):
                tensors[f"{i}.{key}"] = value
            elif value is not None:
                raise TypeError(f"save: '{key}' of the state of {type(optimizer).__name__} is a "
                                f"{type(value).__name__}, which a safetensors file has not; pickle "
                                "state_dict()")
    _C.save_safetensors(tensors | {"__metadata__": texts}, path)


def load(optimizer, path):
    """Loads such a file; nothing changes unless everything fits."""
    try:
        _load(optimizer, path)
    except (KeyError, IndexError, ValueError, TypeError) as error:
        name = os.fsdecode(path)
        if isinstance(error, _C.Error) and name in str(error):
            raise
        raise _C.InvalidArgumentError(
            f"load: {name} is not a state of this optimiser: {error}") from error


def _load(optimizer, path):
    file = _C.load_safetensors(path)
    texts = file.pop("__metadata__", {})
    name = type(optimizer).__name__
    if texts.get("optimizer") != name:
        raise _C.InvalidArgumentError(f"{name}: the state is of {texts.get('optimizer')}")
    if texts["groups"] != str(len(optimizer.param_groups)):
        raise _C.InvalidArgumentError(f"{name}: the state is of {texts['groups']} groups, there "
                                      f"are {len(optimizer.param_groups)}")
    packed = optimizer.state_dict()
    for i, group in enumerate(packed["param_groups"]):
        prefix, pairs = f"group.{i}.", defaultdict(dict)
        for key, text in texts.items():
            option, _, part = key.removeprefix(prefix).partition(".")
            if not key.startswith(prefix) or option == "parameters":
                continue
            if part:
                pairs[option][part] = _number(text)
            else:
                old = group.get(option)
                value = _number(text)
                group[option] = (int(value) if isinstance(old, int) and
                                 not isinstance(old, bool) and value == int(value) else value)
        group.update({option: (both["first"], both["second"]) for option, both in pairs.items()})
        if texts[prefix + "parameters"] != str(len(group["params"])):
            raise _C.InvalidArgumentError(
                f"{name}: group {i} of the state is of {texts[prefix + 'parameters']} parameters, "
                f"there are {len(group['params'])}")
    state = defaultdict(dict)
    for key, value in [*((k, _number(t)) for k, t in texts.items() if k[0].isdigit()),
                       *file.items()]:
        number, _, kept = key.partition(".")
        state[int(number)][kept] = value
    optimizer.load_state_dict({"state": dict(state), "param_groups": packed["param_groups"]})
