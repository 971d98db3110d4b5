// Compiled programs kept on disk between processes: a program that an earlier process compiled is read
// instead of compiled.
//
// A program is found by its module, source lines included, since errors and profiles say them; by all
// compile options; and by the processor and the libraries. Not kept are programs that a compile says
// something about or that somebody looks at: with instructions for the evaluator, with passes of the
// user's, with replaced kernels, and compiles that are dumped.
#pragma once

#include <optional>
#include <string>

#include "backend/runtime/program.h"

namespace lazuli::cpu {

class ProgramStore {
 public:
  // Of one compile of this module, which runs next.
  ProgramStore(hlo::Module& module, const CompileOptions& options);

  // What an earlier process left; none if there is nothing, or if nothing is kept.
  std::optional<ThunkProgram> Find() const;
  void Keep(const ThunkProgram& program) const;

 private:
  std::string name_;  // of the module, which is not in the key: it counts compiles
  std::string key_;   // empty: this program is not kept
};

}  // namespace lazuli::cpu
