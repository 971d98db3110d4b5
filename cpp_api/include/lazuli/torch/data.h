// Data sets in LibTorch's words: examples, transforms, samplers and the loader that makes batches.
//
//   auto set = torch::data::datasets::MNIST("data/mnist")
//                  .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
//                  .map(torch::data::transforms::Stack<>());
//   auto loader = torch::data::make_data_loader(std::move(set), 64);
//   for (auto& batch : *loader) net->forward(batch.data);
//
// Transforms record ops, so batches are made by the thread that loops, and what a transform does is
// part of the step's program. lazuli::data::DataLoader reads ahead on a thread of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lazuli/data.h"
#include "lazuli/torch/tensor.h"

namespace lazuli::torch_names {

namespace serialize {
class InputArchive;
class OutputArchive;
}  // namespace serialize

namespace data {

namespace example {
struct NoTarget {};
}  // namespace example

template <class Data = Tensor, class Target = Tensor>
struct Example {
  using DataType = Data;
  using TargetType = Target;
  Example() = default;
  Example(Data d, Target t) : data(std::move(d)), target(std::move(t)) {}
  Data data;
  Target target;
};
template <class Data>
struct Example<Data, example::NoTarget> {
  using DataType = Data;
  using TargetType = example::NoTarget;
  Example() = default;
  Example(Data d) : data(std::move(d)) {}  // NOLINT(google-explicit-constructor)
  Data data;
};
using TensorExample = Example<Tensor, example::NoTarget>;

namespace transforms {

// From all examples of a batch to what the loader gives, or to other examples.
template <class Input, class Output>
struct BatchTransform {
  using InputBatchType = Input;
  using OutputBatchType = Output;
  virtual ~BatchTransform() = default;
  virtual Output apply_batch(Input batch) = 0;
};

// What makes one batch of examples, and a function that does.
template <class T, class Batch = std::vector<T>>
using Collation = BatchTransform<Batch, T>;
template <class Input, class Output>
struct BatchLambda;
template <class T, class Batch = std::vector<T>>
using Collate = BatchLambda<Batch, T>;

// From example to example.
template <class Input, class Output>
struct Transform : BatchTransform<std::vector<Input>, std::vector<Output>> {
  virtual Output apply(Input input) = 0;
  std::vector<Output> apply_batch(std::vector<Input> batch) override {
    std::vector<Output> result;
    result.reserve(batch.size());
    for (Input& input : batch) result.push_back(apply(std::move(input)));
    return result;
  }
};

// A function as a transform.
template <class Input, class Output = Input>
struct Lambda : Transform<Input, Output> {
  explicit Lambda(std::function<Output(Input)> f) : function(std::move(f)) {}
  Output apply(Input input) override { return function(std::move(input)); }
  std::function<Output(Input)> function;
};
template <class Input, class Output = Input>
struct BatchLambda : BatchTransform<Input, Output> {
  explicit BatchLambda(std::function<Output(Input)> f) : function(std::move(f)) {}
  Output apply_batch(Input batch) override { return function(std::move(batch)); }
  std::function<Output(Input)> function;
};

// Of the data alone.
template <class Target = Tensor>
struct TensorTransform : Transform<Example<Tensor, Target>, Example<Tensor, Target>> {
  virtual Tensor operator()(Tensor input) = 0;
  Example<Tensor, Target> apply(Example<Tensor, Target> input) override {
    input.data = (*this)(std::move(input.data));
    return input;
  }
};
template <class Target = Tensor>
struct TensorLambda : TensorTransform<Target> {
  explicit TensorLambda(std::function<Tensor(Tensor)> f) : function(std::move(f)) {}
  Tensor operator()(Tensor input) override { return function(std::move(input)); }
  std::function<Tensor(Tensor)> function;
};

// (x - mean) / deviation of data [C, H, W], with a number for all channels or one for each.
template <class Target = Tensor>
struct Normalize : TensorTransform<Target> {
  struct Numbers : std::vector<double> {
    Numbers(double number) : std::vector<double>{number} {}  // NOLINT(google-explicit-constructor)
    Numbers(std::initializer_list<double> numbers) : std::vector<double>(numbers) {}
    Numbers(std::vector<double> numbers)  // NOLINT(google-explicit-constructor)
        : std::vector<double>(std::move(numbers)) {}
  };
  Normalize(const Numbers& m, const Numbers& d) : mean(Channels(m)), stddev(Channels(d)) {}
  Tensor operator()(Tensor input) override { return (input - mean) / stddev; }
  Tensor mean, stddev;

 private:
  static Tensor Channels(const std::vector<double>& numbers) {
    const std::vector<float> floats(numbers.begin(), numbers.end());
    return from_data(floats.data(), kFloat32, {static_cast<std::int64_t>(floats.size()), 1, 1});
  }
};

// One example of tensors with one dim more.
template <class E = Example<>>
struct Stack;
template <>
struct Stack<Example<>> : BatchTransform<std::vector<Example<>>, Example<>> {
  Example<> apply_batch(std::vector<Example<>> examples) override {
    std::vector<Tensor> data, targets;
    for (Example<>& e : examples) {
      data.push_back(std::move(e.data));
      targets.push_back(std::move(e.target));
    }
    return {stack(data), stack(targets)};
  }
};
template <>
struct Stack<TensorExample> : BatchTransform<std::vector<TensorExample>, TensorExample> {
  TensorExample apply_batch(std::vector<TensorExample> examples) override {
    std::vector<Tensor> data;
    for (TensorExample& e : examples) data.push_back(std::move(e.data));
    return stack(data);
  }
};

}  // namespace transforms

namespace datasets {

template <class Source, class Transform>
class MapDataset;
template <class Batch>
inline constexpr bool kIsOptional = false;
template <class Batch>
inline constexpr bool kIsOptional<std::optional<Batch>> = true;

// What gives a batch for indices. map() gives it with a transform, which is applied to each batch.
template <class Self, class Batch = std::vector<Example<>>, class Request = ArrayRef<std::size_t>>
class BatchDataset {
 public:
  using SelfType = Self;
  using BatchType = Batch;
  using BatchRequestType = Request;
  static constexpr bool is_stateful = kIsOptional<Batch>;
  virtual ~BatchDataset() = default;
  virtual Batch get_batch(Request request) = 0;
  virtual std::optional<std::size_t> size() const = 0;
  template <class T>
  MapDataset<Self, T> map(T transform) & {
    return {static_cast<Self&>(*this), std::move(transform)};
  }
  template <class T>
  MapDataset<Self, T> map(T transform) && {
    return {static_cast<Self&&>(*this), std::move(transform)};
  }
};

// A stream: it gives the next examples, as many as it is asked for, until a StreamSampler ends.
template <class Self, class Batch = std::vector<Example<>>>
using StreamDataset = BatchDataset<Self, Batch, std::size_t>;

// A data set with a state: it decides which examples come next, and get_batch() gives nothing when
// there are no more. reset() begins anew.
template <class Self, class Batch = std::vector<Example<>>, class Request = std::size_t>
class StatefulDataset : public BatchDataset<Self, std::optional<Batch>, Request> {
 public:
  virtual void reset() = 0;
  // Of the place in the stream; nothing unless a data set says what.
  virtual void save(serialize::OutputArchive& /*archive*/) const {}
  virtual void load(serialize::InputArchive& /*archive*/) {}
};
template <class Set>
concept IsStateful = Set::is_stateful;

// What gives one example for an index.
template <class Self, class SingleExample = Example<>>
class Dataset : public BatchDataset<Self, std::vector<SingleExample>> {
 public:
  using ExampleType = SingleExample;
  virtual ExampleType get(std::size_t index) = 0;
  std::vector<ExampleType> get_batch(ArrayRef<std::size_t> indices) override {
    std::vector<ExampleType> batch;
    batch.reserve(indices.size());
    for (const std::size_t i : indices) batch.push_back(get(i));
    return batch;
  }
};

template <class Source, class Transform>
using MappedBatch =
    std::conditional_t<IsStateful<Source>, std::optional<typename Transform::OutputBatchType>,
                       typename Transform::OutputBatchType>;
template <class Source, class Transform>
class MapDataset
    : public BatchDataset<MapDataset<Source, Transform>, MappedBatch<Source, Transform>,
                          typename Source::BatchRequestType> {
 public:
  using DatasetType = Source;
  using TransformType = Transform;
  MapDataset(Source source, Transform transform)
      : source_(std::move(source)), transform_(std::move(transform)) {}
  MappedBatch<Source, Transform> get_batch(typename Source::BatchRequestType request) override {
    if constexpr (IsStateful<Source>) {
      auto batch = source_.get_batch(request);
      if (!batch) return std::nullopt;
      return transform_.apply_batch(*std::move(batch));
    } else {
      return transform_.apply_batch(source_.get_batch(request));
    }
  }
  std::optional<std::size_t> size() const override { return source_.size(); }
  void reset()
    requires IsStateful<Source>
  {
    source_.reset();
  }
  const Source& dataset() const { return source_; }
  const Transform& transform() const { return transform_; }

 private:
  Source source_;
  Transform transform_;
};

// The rows of a tensor.
class TensorDataset : public Dataset<TensorDataset, TensorExample> {
 public:
  explicit TensorDataset(Tensor rows) : tensor(std::move(rows)) {}
  explicit TensorDataset(const std::vector<Tensor>& rows) : tensor(stack(rows)) {}
  TensorExample get(std::size_t index) override { return tensor[static_cast<std::int64_t>(index)]; }
  std::optional<std::size_t> size() const override {
    return static_cast<std::size_t>(tensor.size(0));
  }
  Tensor tensor;
};

// Handwritten digits: data f32 [1, 28, 28] in [0, 1], not normalised; targets s64 [].
class LAZULI_API MNIST : public Dataset<MNIST> {
 public:
  enum class Mode : std::uint8_t { kTrain, kTest };
  // Files and errors are those of lazuli::data::Mnist.
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain, LAZULI_LOC);
  Example<> get(std::size_t index) override;
  std::optional<std::size_t> size() const override;
  bool is_train() const { return mode_ == Mode::kTrain; }
  // All of them: f32 [n, 1, 28, 28] and s64 [n].
  Tensor images(LAZULI_LOC) const;
  Tensor targets(LAZULI_LOC) const;

 private:
  Mode mode_;
  lazuli::data::Mnist files_;
};

}  // namespace datasets

template <class Self, class SingleExample = Example<>>
using Dataset = datasets::Dataset<Self, SingleExample>;

namespace samplers {

// In which order a loader takes examples.
template <class Request = std::vector<std::size_t>>
class Sampler {
 public:
  virtual ~Sampler() = default;
  // Begins anew, with another number of examples if there is one.
  virtual void reset(std::optional<std::size_t> new_size = std::nullopt) = 0;
  // The next indices, fewer at the end, and then none.
  virtual std::optional<Request> next(std::size_t batch_size) = 0;
};

class LAZULI_API SequentialSampler : public Sampler<> {
 public:
  explicit SequentialSampler(std::size_t size) : size_(size) {}
  void reset(std::optional<std::size_t> new_size = std::nullopt) override;
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;
  std::size_t index() const { return index_; }

 private:
  std::size_t size_, index_ = 0;
};

// Each reset() draws a new order, which follows manual_seed().
class LAZULI_API RandomSampler : public Sampler<> {
 public:
  explicit RandomSampler(std::size_t size) : order_(size) { RandomSampler::reset(); }
  void reset(std::optional<std::size_t> new_size = std::nullopt) override;
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;
  std::size_t index() const { return index_; }

 private:
  std::vector<std::size_t> order_;
  std::size_t index_ = 0;
};

// What a sampler asks for, other than indices.
struct CustomBatchRequest {
  virtual ~CustomBatchRequest() = default;
  virtual std::size_t size() const = 0;
};
// A number of examples, which a stream is asked for.
class BatchSize : public CustomBatchRequest {
 public:
  explicit BatchSize(std::size_t size) : size_(size) {}
  std::size_t size() const override { return size_; }
  operator std::size_t() const { return size_; }  // NOLINT(google-explicit-constructor)

 private:
  std::size_t size_;
};

// Ends an epoch after so many examples of a stream.
class LAZULI_API StreamSampler : public Sampler<BatchSize> {
 public:
  explicit StreamSampler(std::size_t epoch_size) : epoch_size_(epoch_size) {}
  void reset(std::optional<std::size_t> new_size = std::nullopt) override;
  std::optional<BatchSize> next(std::size_t batch_size) override;

 private:
  std::size_t epoch_size_, taken_ = 0;
};

}  // namespace samplers

// Options of a loader, which are built. Those of workers say nothing here.
class DataLoaderOptions {
 public:
  DataLoaderOptions(std::size_t batch_size = 1)  // NOLINT(google-explicit-constructor)
      : batch_size_(batch_size) {}
  DataLoaderOptions& batch_size(std::size_t v) { return batch_size_ = v, *this; }
  DataLoaderOptions& drop_last(bool v) { return drop_last_ = v, *this; }
  DataLoaderOptions& workers(std::size_t) { return *this; }
  DataLoaderOptions& max_jobs(std::size_t) { return *this; }
  DataLoaderOptions& timeout(std::chrono::milliseconds) { return *this; }
  DataLoaderOptions& enforce_ordering(bool) { return *this; }
  std::size_t batch_size() const { return batch_size_; }
  bool drop_last() const { return drop_last_; }

 private:
  std::size_t batch_size_;
  bool drop_last_ = false;
};

// What loops over a data set in batches. Each begin() is a new epoch.
template <class Batch>
class DataLoaderBase {
 public:
  using BatchType = Batch;
  virtual ~DataLoaderBase() = default;

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = BatchType;
    using difference_type = std::ptrdiff_t;
    using pointer = BatchType*;
    using reference = BatchType&;
    BatchType& operator*() { return *batch_; }
    BatchType* operator->() { return &*batch_; }
    Iterator& operator++() {
      batch_.reset();
      batch_ = loader_->Next();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.batch_; }

   private:
    friend class DataLoaderBase;
    explicit Iterator(DataLoaderBase* loader) : loader_(loader), batch_(loader->Next()) {}
    DataLoaderBase* loader_;
    std::optional<BatchType> batch_;
  };
  Iterator begin() {
    Reset();
    return Iterator(this);
  }
  std::default_sentinel_t end() const { return {}; }
  const DataLoaderOptions& options() const { return options_; }

 protected:
  explicit DataLoaderBase(const DataLoaderOptions& options) : options_(options) {
    if (options_.batch_size() == 0)
      throw Error(ErrorCode::kInvalidArgument,
                  "make_data_loader: batch_size is 0, it must be at least 1");
  }

 private:
  virtual void Reset() = 0;
  virtual std::optional<BatchType> Next() = 0;
  DataLoaderOptions options_;
};

// Of a data set that gives what a sampler asks for.
template <class Set, class Sampler>
class StatelessDataLoader : public DataLoaderBase<typename Set::BatchType> {
 public:
  StatelessDataLoader(Set set, Sampler sampler, const DataLoaderOptions& options)
      : DataLoaderBase<typename Set::BatchType>(options),
        set_(std::move(set)),
        sampler_(std::move(sampler)) {}

 private:
  void Reset() override { sampler_.reset(); }
  std::optional<typename Set::BatchType> Next() override {
    const DataLoaderOptions& options = this->options();
    const auto request = sampler_.next(options.batch_size());
    if (!request || (options.drop_last() && request->size() < options.batch_size()))
      return std::nullopt;
    return set_.get_batch(*request);
  }
  Set set_;
  Sampler sampler_;
};

// Of a data set that decides itself what comes next.
template <class Set>
class StatefulDataLoader : public DataLoaderBase<typename Set::BatchType::value_type> {
 public:
  StatefulDataLoader(Set set, const DataLoaderOptions& options)
      : DataLoaderBase<typename Set::BatchType::value_type>(options), set_(std::move(set)) {}

 private:
  void Reset() override { set_.reset(); }
  typename Set::BatchType Next() override { return set_.get_batch(this->options().batch_size()); }
  Set set_;
};

template <class Set, class Sampler>
  requires requires(Sampler s) { s.next(1); }
std::unique_ptr<StatelessDataLoader<Set, Sampler>> make_data_loader(
    Set set, Sampler sampler, const DataLoaderOptions& options = {}) {
  return std::make_unique<StatelessDataLoader<Set, Sampler>>(std::move(set), std::move(sampler),
                                                             options);
}
template <datasets::IsStateful Set>
std::unique_ptr<StatefulDataLoader<Set>> make_data_loader(Set set,
                                                          const DataLoaderOptions& options = {}) {
  return std::make_unique<StatefulDataLoader<Set>>(std::move(set), options);
}
// Throws Error(kInvalidArgument) for a data set that does not know its size.
template <class Sampler = samplers::RandomSampler, class Set>
  requires(!datasets::IsStateful<Set>)
std::unique_ptr<StatelessDataLoader<Set, Sampler>> make_data_loader(
    Set set, const DataLoaderOptions& options = {}) {
  const std::optional<std::size_t> size = set.size();
  if (!size)
    throw Error(
        ErrorCode::kInvalidArgument,
        "make_data_loader: the data set does not know its size, so a sampler must be given");
  return make_data_loader(std::move(set), Sampler(*size), options);
}

}  // namespace data
}  // namespace lazuli::torch_names
