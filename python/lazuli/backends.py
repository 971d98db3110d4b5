"""What programs set of PyTorch's libraries for a kind of device. There is none of them: the
settings are kept and say nothing.

    lz.backends.cudnn.benchmark = True
    lz.backends.mps.is_available()  # False
"""


class _Library:
    """Settings of a library that is not there."""

    def __init__(self, **settings):
        self.__dict__.update(settings)

    def is_available(self):
        """False."""
        return False

    is_built = is_available

    def version(self):
        """None."""
        return None


cudnn = _Library(enabled=True, benchmark=False, deterministic=False, allow_tf32=True,
                 benchmark_limit=10)
cuda = _Library(matmul=_Library(allow_tf32=False, allow_fp16_reduced_precision_reduction=True,
                                allow_bf16_reduced_precision_reduction=True))
mps, mkl, openmp = _Library(), _Library(), _Library()
mkldnn = _Library(enabled=True, allow_tf32=True)
