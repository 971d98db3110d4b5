"""PyTorch's models of the net: lazuli.hub says that they are not fetched."""

from lazuli.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
