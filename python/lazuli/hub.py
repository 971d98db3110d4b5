"""PyTorch's models of the net, which lazuli does not fetch; so that programs which import this
module run up to there."""

import os

from lazuli import _C


def _none(*arguments, **named):
    """Raises an error."""
    raise _C.UnimplementedError("hub: nothing is fetched from the net; download the file, and give "
                                "its path to lazuli.load()")


load = load_state_dict_from_url = download_url_to_file = list = help = _none
_dir = None


def get_dir():
    """The folder in which PyTorch keeps its downloads."""
    if _dir is not None:
        return _dir
    return os.path.join(os.environ.get("TORCH_HOME", os.path.join(
        os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "torch")), "hub")


def set_dir(d):
    """Sets that folder."""
    global _dir
    _dir = os.path.expanduser(d)
