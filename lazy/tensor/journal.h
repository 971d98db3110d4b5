// Journal: what a function that is traced does to tensors from outside the trace, to undo it.
//
// A trace computes nothing, so nothing outside may see what it writes: elements, gradients, the storage
// of a tensor whose data is replaced. The context of the trace has a journal, in which each of them is
// noted before it changes for the first time.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lazy/tensor/tensor.h"
#include "lazy/tensor/watch.h"

namespace lazuli::lazy {

// A storage that the context of the trace takes over, as its owner had it.
struct JournalEntry {
  StoragePtr storage;
  IntrusivePtr<Context> owner;
  Value value;
  DataPtr data, replaced;
  bool pending = false;
  uint64_t version = 0;
};

class Outside;

class Journal {
 public:
  explicit Journal(Outside* outside = nullptr) : outside_(outside) {}
  // Of a trace whose parameters are the tensors from outside, too; null for others.
  Outside* outside() const { return outside_; }
  void Note(JournalEntry taken) { taken_.push_back(std::move(taken)); }
  void NoteGrad(TensorImpl& tensor);
  void NoteStorage(TensorImpl& tensor);
  const std::vector<JournalEntry>& taken() const { return taken_; }
  // Everything is as it was before. `context`: that of the trace, which is not used any more.
  void Undo(Context& context);

 private:
  struct Grad {
    IntrusivePtr<TensorImpl> tensor;
    Tensor grad;
  };
  struct Data {
    IntrusivePtr<TensorImpl> tensor;
    StoragePtr storage;
    IntrusivePtr<TensorImpl> base;
  };
  Outside* outside_;
  std::vector<JournalEntry> taken_;
  std::vector<Grad> grads_;
  std::vector<Data> data_;
};

// For whoever changes the gradient or the storage of a tensor: notes what it is, if this thread traces.
// Throws FailedPrecondition if the trace may not change tensors from outside.
inline void NoteGrad(TensorImpl& tensor) {
  if (Watch* const watch = Watch::Current()) [[unlikely]]
    watch->NoteGrad(tensor);
  if (Journal* const journal = Context::Current().journal()) [[unlikely]]
    journal->NoteGrad(tensor);
}
inline void NoteStorage(TensorImpl& tensor) {
  if (Watch* const watch = Watch::Current()) [[unlikely]]
    watch->NoteChange(tensor, "the data");
  if (Journal* const journal = Context::Current().journal()) [[unlikely]]
    journal->NoteStorage(tensor);
}

}  // namespace lazuli::lazy
