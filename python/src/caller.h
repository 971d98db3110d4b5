// The line of the Python program that called the library.
//
// What is recorded while a Caller lives carries the line of the nearest Python frame outside of
// this package. A frame is known by its code object and its position in the bytecode; the table of
// those seen gives the interned site in a few nanoseconds, so a file and line are looked up once
// for each place in the program. Needs the GIL, which guards the table.
#pragma once

#include <string>
#include <vector>

#include "lazy/tensor/site_scope.h"

namespace lazuli::python {

// Frames of code whose file begins with one of these are not the user's: the package, and what
// calls it for users (copy.deepcopy).
void SetOwnFiles(std::vector<std::string> beginnings);

ir::SiteId CallerSite();

class Caller {
 public:
  // An outer scope wins, as in C++.
  Caller() : scope_(lazy::CurrentSite() == ir::kNoSite ? CallerSite() : lazy::CurrentSite()) {}

 private:
  lazy::SiteScope scope_;
};

}  // namespace lazuli::python
