// Helpers of the tests of lazy/: tensors on a device, and counters of what happened.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/client/registry.h"
#include "backend/interpreter/interpreter.h"
#include "ir/support/metrics.h"
#include "lazy/execution/sync.h"
#include "lazy/ops/core/functions.h"
#include "lazy/tensor/status_error.h"
#include "lazy/tensor/tape.h"
#include "lazy/tensor/tensor.h"

namespace lazuli::lazy {

// Where tests compute; on the interpreter unless they say otherwise.
inline backend::ComputationClient*& TestClient() {
  static backend::ComputationClient* client = [] {
    interpreter::RegisterInterpreter(2);
    InitializeExecution();
    return *backend::FindClient("interpreter");
  }();
  return client;
}
inline backend::Device TestDevice(int ordinal = 0) { return {TestClient(), ordinal}; }

template <class T>
Tensor Of(std::initializer_list<int64_t> dims, std::initializer_list<T> values, int ordinal = 0) {
  return FromLiteral(Literal::FromValues<T>(dims, values), TestDevice(ordinal));
}
inline Tensor Floats(std::initializer_list<float> values) {
  return Of<float>({static_cast<int64_t>(values.size())}, values);
}

template <class T = float>
std::vector<T> Values(const Tensor& tensor) {
  const Literal literal = ToLiteral(tensor);
  const auto data = literal.data<T>();
  return {data.begin(), data.end()};
}

// A tensor and a number in one expression, as a user writes them.
inline Value Slot(double v, DType dtype = DType::kF32) { return Number(v).Slot(dtype); }

inline Tensor WithGrad(Tensor tensor) {
  tensor.impl()->mutable_autograd().requires_grad = true;
  return tensor;
}
inline Tensor GradOf(const Tensor& tensor) {
  return tensor.impl()->autograd() != nullptr ? tensor.impl()->autograd()->grad : Tensor();
}

// How much a counter has grown since the object was made.
class Counted {
 public:
  explicit Counted(ir::Counter counter) : counter_(counter), start_(ir::Get(counter)) {}
  int64_t operator()() const { return ir::Get(counter_) - start_; }

 private:
  ir::Counter counter_;
  int64_t start_;
};

// Compilations, and runs of programs: cached ones and new ones.
struct Work {
  Counted compiled{ir::Counter::kUncachedCompile}, cached{ir::Counter::kCachedCompile};
  int64_t compiles() const { return compiled(); }
  int64_t runs() const { return compiled() + cached(); }
};

inline absl::Status Sync(bool wait = true) {
  return GetEngine().Sync(Context::Current(), wait, SyncReason::kUser);
}

// The message and code of the StatusError that `f` throws; OK if it throws none.
template <class F>
absl::Status ErrorOf(F&& f) {
  try {
    f();
  } catch (const StatusError& error) {
    return error.status();
  }
  return absl::OkStatus();
}

// The statement throws a StatusError of this code with this message, and records nothing.
#define EXPECT_STATUS(status_code, message, ...)                                   \
  do {                                                                             \
    const Counted recorded(ir::Counter::kNodesRecorded);                           \
    const int64_t pending = Context::Current().pending_count();                    \
    const absl::Status status = ErrorOf([&] { __VA_ARGS__; });                     \
    EXPECT_EQ(status.code(), absl::StatusCode::status_code) << status;             \
    EXPECT_EQ(Message(status), message);                                           \
    EXPECT_EQ(recorded(), 0) << "nodes were recorded before: " << Message(status); \
    EXPECT_EQ(Context::Current().pending_count(), pending);                        \
  } while (false)

}  // namespace lazuli::lazy
