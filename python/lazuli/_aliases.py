"""Modules that PyTorch divides a package into, and that programs import by name: `from
lazuli.nn.modules.conv import Conv2d`.

Each is another name of the package that has what is in it.
"""

import functools
import importlib
import sys
import types

# The package, and the modules that stand for it.
_ALIASES = {
    "nn": {"nn.modules": "activation batchnorm channelshuffle container conv distance dropout "
           "flatten fold instancenorm linear loss normalization padding pixelshuffle pooling rnn "
           "sparse transformer upsampling"},
    "nn.adaptive": {"nn.modules": "adaptive"}, "nn.lazy": {"nn.modules": "lazy"},
    "nn.utils": {"nn.utils": "clip_grad convert_parameters spectral_norm weight_norm"},
    "nn.parallel": {"nn.parallel": "data_parallel distributed"},
    "optim":
    {"optim": "adadelta adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd sparse_adam"},
    "autograd": {"autograd": "anomaly_mode variable"},
    "profiler": {"autograd": "profiler"},
    "amp.cpu": {"cpu": "amp"}, "amp.cuda": {"cuda": "amp"},
    "cuda": {"cuda": "memory random streams"},
    "distributions.categorical": {"distributions": "multinomial one_hot_categorical"},
    "distributions.derived":
    {"distributions": "gumbel half_cauchy half_normal inverse_gamma kumaraswamy log_normal "
     "logistic_normal pareto weibull"},
    "distributions.discrete": {"distributions": "bernoulli binomial continuous_bernoulli geometric "
                               "negative_binomial poisson"},
    "distributions.distribution": {"distributions": "exp_family"},
    "distributions.location_scale":
    {"distributions": "cauchy generalized_pareto laplace normal studentT uniform"},
    "distributions.multivariate":
    {"distributions": "lkj_cholesky lowrank_multivariate_normal multivariate_normal wishart"},
    "distributions.positive":
    {"distributions": "beta chi2 dirichlet exponential fishersnedecor gamma"},
    "distributions.relaxed": {"distributions": "relaxed_bernoulli relaxed_categorical"},
    "distributions.transformed":
    {"distributions": "independent mixture_same_family transformed_distribution"},
}
_SETTINGS = "cuda cudnn mkl mkldnn mps openmp"  # objects of backends that are modules in PyTorch


class _Alias(types.ModuleType):
    """A module with the names of another one."""

    def __init__(self, name, target):
        super().__init__(name, f"{target}, under the name that a part of it has in PyTorch.")
        self.__dict__["_target"], self.__path__ = target, []

    def __getattr__(self, name):
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        target = importlib.import_module(self._target)
        if name == "__all__":
            return [own for own in dir(target) if not own.startswith("_")]
        try:
            return getattr(target, name)
        except AttributeError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None

    def __dir__(self):
        return self.__all__


def register():
    """Makes the modules importable, and sets them as attributes of their package unless the names
    are taken."""
    backends = sys.modules["lazuli.backends"]
    for name in _SETTINGS.split():
        sys.modules[f"lazuli.backends.{name}"] = getattr(backends, name)
    sys.modules["lazuli.nn.modules"].__getattr__ = functools.partial(getattr,
                                                                     sys.modules["lazuli.nn"])
    for target, places in _ALIASES.items():
        for place, names in places.items():
            for name in names.split():
                path = f"lazuli.{place}.{name}"
                if path in sys.modules:
                    continue
                sys.modules[path] = made = _Alias(path, f"lazuli.{target}")
                package = sys.modules.get(f"lazuli.{place}")
                if package is not None and name not in vars(package):
                    setattr(package, name, made)
