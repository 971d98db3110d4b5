"""PyTorch's downloads of models, which lazuli.hub refuses."""

from lazuli.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
