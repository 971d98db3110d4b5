// What the verifier lets through evaluates to a value or an error, however odd: damaged uses of all
// opcodes that are still modules.

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "ir/evaluator/evaluator.h"
#include "tests/ir/hlo/damage.h"
#include "tests/ir/hlo/hlo_text.h"

namespace lazuli::hlo {
namespace {

constexpr int64_t kMaxBytes = 1 << 16;
constexpr int64_t kMaxAttribute = 1 << 12;

// Loops may not end, and large windows take long without being of interest.
bool IsQuick(const Module& module) {
  for (const auto& computation : module.computations()) {
    for (const auto& i : computation->instructions()) {
      if (i->opcode() == Opcode::kWhile || i->shape().byte_size() > kMaxBytes) return false;
      const Window* window = nullptr;
      if (const auto* attrs = std::get_if<WindowAttrs>(&i->attrs())) window = &attrs->window;
      if (const auto* attrs = std::get_if<ConvolutionAttrs>(&i->attrs())) window = &attrs->window;
      if (window == nullptr) continue;
      for (const WindowDim& dim : *window) {
        if (dim.size > kMaxAttribute) return false;
      }
    }
  }
  return true;
}

TEST(EvaluatorFuzzTest, WhatVerifiesEvaluates) {
  Random random(5);
  int evaluated = 0;
  for (const auto& [name, text] : OpcodeTexts()) {
    for (int round = 0; round < FuzzRounds(); ++round) {
      const std::string damaged = round == 0 ? text : Damaged(text, random);
      const auto module = ParseModule(damaged);
      if (!module.ok() || !IsQuick(**module)) continue;
      std::vector<Literal> arguments;
      std::vector<const Literal*> pointers;
      for (const Instruction* parameter : (*module)->entry()->parameters())
        arguments.emplace_back(parameter->shape());
      for (const Literal& argument : arguments) pointers.push_back(&argument);
      if (const char* last = std::getenv("LAZULI_FUZZ_LAST"); last != nullptr)
        std::ofstream(last) << damaged;  // what a crash was about
      const auto value = Evaluate(**module, pointers);
      if (value.ok()) {
        ++evaluated;
        EXPECT_TRUE(Compatible(value->shape(), (*module)->entry()->root()->shape())) << damaged;
      }
    }
  }
  EXPECT_GT(evaluated, 300);
}

}  // namespace
}  // namespace lazuli::hlo
