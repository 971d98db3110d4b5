// Evaluates HLO text: Eval("ENTRY e { ... }", {x, y}).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ir/evaluator/evaluator.h"
#include "tests/support/hlo_test.h"

namespace lazuli {

inline absl::StatusOr<ir::Literal> TryEval(std::string_view text,
                                           std::initializer_list<ir::Literal> arguments = {}) {
  auto module = ParseHlo(text);
  std::vector<const ir::Literal*> pointers;
  for (const ir::Literal& argument : arguments) pointers.push_back(&argument);
  return hlo::Evaluate(*module, pointers);
}

// The value; a failure ends the program with its message.
inline ir::Literal Eval(std::string_view text, std::initializer_list<ir::Literal> arguments = {}) {
  auto result = TryEval(text, arguments);
  LAZULI_CHECK(result.ok(), ir::Message(result.status()));
  return *std::move(result);
}

inline std::string EvalText(std::string_view text,
                            std::initializer_list<ir::Literal> arguments = {}) {
  return Eval(text, arguments).ToString();
}

inline std::string ErrorOf(std::string_view text,
                           std::initializer_list<ir::Literal> arguments = {}) {
  auto result = TryEval(text, arguments);
  return result.ok() ? "no error" : std::string(ir::Message(result.status()));
}

}  // namespace lazuli
