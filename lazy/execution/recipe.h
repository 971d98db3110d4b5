// A recipe: what a function did with tensors when it was recorded, and how to do it again without the
// function.
//
// The function's program is that of the sync at its end. The leaves of the program are elements of
// places: arguments, tensors from outside that the function used, gradients of either. The results
// of the program become elements of places that the function writes to, of its results, and of
// gradients. Numbers are those of the recording, or come from arguments, random generators and what
// counts on the host.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "lazy/execution/executor.h"
#include "lazy/execution/make_run.h"
#include "lazy/tensor/tape.h"
#include "lazy/tensor/tensor.h"
#include "lazy/tensor/watch.h"

namespace lazuli::lazy {

struct Recipe {
  // What the thread has switched on, and what flags say: guards.
  enum Mode : std::size_t { kGrad, kInference, kFloat, kAutocast, kDevice, kFlags, kModes };

  // A storage that was there before the call.
  struct Place {
    enum class Kind : uint8_t { kArgument, kBaseOfArgument, kCaptured, kGradient };
    Kind kind = Kind::kCaptured;
    int32_t index = -1;  // of an argument; of a gradient: of its owner in `owners`
    StoragePtr storage;  // of what is captured
    // Captured tensors that have the storage, and whether they require a gradient.
    std::vector<std::pair<IntrusivePtr<TensorImpl>, bool>> tensors;
    Shape shape;                // of a gradient
    bool is_number = false;     // there was no data but a number
    int32_t same_data = -1;     // the first place with the same data, if it is another one
    SiteId site = ir::kNoSite;  // that used it first
  };
  // What an argument was.
  struct ArgumentGuard {
    Shape shape, base_shape;
    backend::Device device;
    bool requires_grad = false, is_inference = false, is_number = false, is_view = false;
    Dims strides;
    int64_t offset = 0;
    int32_t same_tensor = 0, same_storage = 0,
            same_base = 0;  // the first argument with the same one
    uint64_t id = 0;        // of its storage
    bool is_fixed = true;   // the storage is a guard: none of another one was recorded
  };
  // Of an old tensor whose gradient the function changes, or uses.
  struct Owner {
    int32_t argument = -1;          // which argument it is; -1: it is captured
    IntrusivePtr<TensorImpl> impl;  // if it is captured
    bool had_grad = false;
  };
  struct Scalar {
    enum class Kind : uint8_t { kConstant, kPlace, kDraw, kAction };
    Kind kind = Kind::kConstant;
    int32_t index = -1, part = 0;  // of `draws` or `actions` or places, and which of its numbers
    uint64_t cell = 0;
    SiteId site = ir::kNoSite;
  };
  struct DrawnNumbers {
    Generator generator;
    int64_t numbers;
  };
  struct Action {
    std::shared_ptr<HostAction> action;
    uint64_t what = 0;
    std::size_t count = 0;  // of numbers
  };
  // Elements: an output of the program, what a place had, or data of the recording.
  struct Content {
    enum class Kind : uint8_t { kOutput, kPlace, kConstant, kNumber };
    Kind kind = Kind::kOutput;
    int32_t index = -1;
    uint64_t cell = 0;  // of a number
    bool operator==(const Content&) const = default;
  };
  struct ProgramRoot {
    int32_t replaced = -1;  // the place that it is written over; -2 - i: constant i; -1: none
    int32_t before = -1;
    bool is_wanted = false, is_view = false;
    Shape shape;
  };
  struct PlaceWrite {
    int32_t place;
    Content content;
    NodePtr node;  // of the place's shape: stands for the elements for a moment
  };
  // A storage that the function makes; perhaps a view of a place or of an earlier one.
  struct NewStorage {
    Shape shape;
    Content content;
    bool is_view = false;
    int32_t base = -1;  // a place, or -1 - i: storage i
    Dims strides;
    int64_t offset = 0;
  };
  // A tensor: an argument, or one that the function makes.
  struct TensorRef {
    enum class Kind : uint8_t { kNone, kArgument, kNew };
    Kind kind = Kind::kNone;
    int32_t index = -1;  // of an argument, of `tensors`
    bool operator==(const TensorRef&) const = default;
  };
  struct NewTensor {
    int32_t storage = -1;  // a place, or -1 - i: new storage i
    TensorRef base;        // what it is a view of; a new one comes before it
    TensorImpl::ViewKind view_kind = TensorImpl::ViewKind::kPlain;
  };
  struct Gradient {
    int32_t owner;
    TensorRef to;
  };

  std::vector<uint64_t> modes;  // what the thread had switched on
  std::vector<ArgumentGuard> arguments;
  std::vector<Place> places;
  std::vector<Owner> owners;
  absl::flat_hash_set<const Storage*> captured_bases;

  CachedProgramPtr program;  // null: nothing runs
  backend::Device device;
  backend::CompileOptions options;
  SiteId site = ir::kNoSite;
  std::vector<int32_t> inputs;  // by data leaf: a place, or -1 - i: constant i
  std::vector<SiteId> input_sites;
  std::vector<DataPtr> constants;
  std::vector<Scalar> scalars;
  std::vector<DrawnNumbers> draws;
  std::vector<Action> actions;
  std::vector<ProgramRoot> roots;
  PooledVector<Run::Check> checks, nans;
  bool waits_for_doubts = false;  // something new is written over, which a failed check cannot undo

  std::vector<int32_t> donated;  // places of arguments whose elements the call takes
  std::vector<PlaceWrite> writes;
  std::vector<NewStorage> storages;
  std::vector<NewTensor> tensors;
  std::vector<TensorRef> results;
  std::vector<Gradient> gradients;
};

// Makes a view of a tensor's storage.
using ViewMaker = std::unique_ptr<View> (*)(const Tensor& base, const Dims& strides,
                                            int64_t offset);

// The data of an argument that was given to a call for good: whoever reads it gets an error.
DataPtr TakenData(const Shape& shape, backend::Device device);

// What of the second recording differs from the first, so that neither tells what the next call does;
// empty if nothing does but arguments.
absl::StatusOr<std::string> WhatDiffers(const Recipe& first, const Recipe& second);
// The same of the arguments, and of what the thread had switched on.
std::string WhyOther(const Recipe& first, const Recipe& second);
// Of two recordings in which nothing differs: arguments that do are no guards any more.
void Generalize(const Recipe& from, Recipe& to);

// Why the recipe is not one of a call with these arguments; empty if it is one.
std::string WhyNot(const Recipe& recipe, absl::Span<const uint64_t> modes,
                   absl::Span<const Tensor> arguments);

// Runs the recipe, of which WhyNot() says nothing. Else, with nothing changed, why the function is to be
// called after all: an argument has failed, say.
absl::StatusOr<std::string> RunRecipe(const Recipe& recipe, absl::Span<const Tensor> arguments,
                                      ViewMaker make_view, Tensors& results);

}  // namespace lazuli::lazy
