// Random tensor programs: made from a seed, run in several ways, shortened when two ways differ.
//
// A program is a list of steps over numbered tensors. Each step makes a tensor or writes to one in
// place. Every tensor of a program has one shape, so that what is left when a step is dropped is a program.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <lazuli/lazuli.h>

namespace lazuli::fuzz {

struct Step {
  std::size_t op = 0;               // number in the tables of op.h
  std::vector<std::size_t> inputs;  // numbers of tensors: arguments first, then results of steps
  std::int64_t dim = 0;
  double number = 0;
};

struct Program {
  std::uint64_t seed = 0;  // of the arguments' elements and of random numbers
  std::int64_t side = 0;   // of every tensor
  std::vector<Step> steps;
  std::string ToString() const;  // reads like the C++ that a user would write
};

std::size_t NumOps();
std::string_view OpText(std::size_t op);  // "%x + %y"
// Whether devices give the same bits for the op: not where they sum products in orders of their
// own.
bool SameBitsOnEveryDevice(const Program& program);

Program RandomProgram(std::uint64_t seed, std::size_t steps);

enum class Syncs { kNone, kRandom, kAll };
// The bytes of every tensor at the end, argument and result, in order.
using Outcome = std::vector<std::vector<unsigned char>>;
Outcome Run(const Program& program, const Device& device, Syncs syncs);

// A program for which `fails` holds, but for no program with one step less.
Program Minimize(Program program, const std::function<bool(const Program&)>& fails);

}  // namespace lazuli::fuzz
