"""What torch.compile(backend="lazuli") finds by that name: the backend, and recurrent layers in its
graphs.

Without allow_rnn dynamo leaves LSTM, GRU and RNN to eager, at a graph break. The setting is
dynamo's, for all backends of the process.
"""

import torch._dynamo

from lazuli.torch._backend import backend

__all__ = ["backend"]
torch._dynamo.config.allow_rnn = True
