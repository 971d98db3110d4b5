"""HLO modules to read, change, compile and run.

    module = lz.hlo.HloModule.parse(text)
    module.run_passes(["simplify", "dce"])
    y, = module.compile().run([x])
"""

from lazuli._C.hlo import *  # noqa: F403
