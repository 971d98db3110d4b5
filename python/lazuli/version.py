"""The version, and those of what PyTorch is built with: none of it is there."""

__version__ = "0.1.0"
cuda = hip = xpu = git_version = None
debug = False
