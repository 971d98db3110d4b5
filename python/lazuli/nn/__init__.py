"""Neural networks: modules that own parameters, the usual layers, and losses.

    class Net(lz.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = lz.nn.Linear(784, 100), lz.nn.Linear(100, 10)

        def forward(self, x):
            return self.fc2(lz.relu(self.fc1(x)))
"""

from lazuli._C.nn import *  # noqa: F403
import lazuli.nn.functional  # noqa: E402: over the one of _C, which has the losses alone
import lazuli.nn.init  # noqa: E402: as well
from lazuli.nn.loss import *  # noqa: F403
from lazuli.nn._hooks import (  # noqa: E402
    register_module_forward_hook, register_module_forward_pre_hook,
    register_module_full_backward_hook, register_module_full_backward_pre_hook)
import lazuli.nn.module  # noqa: E402
import lazuli.nn._states  # noqa: E402
from lazuli.nn.containers import (  # noqa: E402
    ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential)
from lazuli.nn.layers import *  # noqa: F403
from lazuli.nn.adaptive import *  # noqa: F403
from lazuli.nn.lazy import *  # noqa: F403
from lazuli.nn.linear_cross_entropy import *  # noqa: F403
from lazuli.nn.recurrent import *  # noqa: F403
from lazuli.nn._kinds import (  # noqa: E402
    RNNCellBase, _BatchNorm, _ConvNd, _ConvTransposeNd, _DropoutNd, _InstanceNorm, _Loss, _NormBase,
    _WeightedLoss)
import lazuli.nn.modules  # noqa: E402
import lazuli.nn.parallel  # noqa: E402
import lazuli.nn.parameter  # noqa: E402
import lazuli.nn.utils  # noqa: E402: over the one of _C
from lazuli.nn.parallel import DataParallel  # noqa: E402
from lazuli.nn.parameter import (  # noqa: E402
    Buffer, UninitializedBuffer, UninitializedParameter)
from lazuli.nn.synchronized import SyncBatchNorm  # noqa: E402
import lazuli.nn.attention  # noqa: E402
