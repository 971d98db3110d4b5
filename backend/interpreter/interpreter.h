// The platform "interpreter": runs modules with ir/evaluator, on the caller's thread. Every other
// backend is compared with it.
#pragma once

namespace lazuli::interpreter {

// Makes "interpreter:0", "interpreter:1", ... known to the registry.
void RegisterInterpreter(int num_devices = 1);

}  // namespace lazuli::interpreter
