// compile(): functions whose calls are replayed, without running or recording what is in them.
//
//   auto step = lazuli::compile([&](const Tensor& x, const Tensor& y) {
//     optimizer.zero_grad();
//     Tensor loss = nn::functional::cross_entropy(net.forward(x), y);
//     loss.backward();
//     optimizer.step();
//     return loss;
//   });
//   for (const auto& [x, y] : loader) losses.push_back(step(x, y));
//
// A call is recorded: the function runs as it is, and what it reads, writes and draws is noted. Once
// two recordings agree, calls are replayed: their program runs on the elements that arguments and
// captured tensors have now, and its results are what the function would have given, bit for bit.
// Parameters, buffers, gradients and the state of optimisers are updated, random generators move on, and
// optimisers count their steps with their present learning rate.
//
// Guards are shapes, dtypes, devices and sharing of arguments, arguments that are no tensors, and
// what the thread has switched on (NoGrad, Autocast, the default dtype). If one fails, the call is
// recorded anew; explain() says why. A function is called each time, and that is said once on standard
// error, if it reads elements, returns what requires a gradient, keeps tensors that it does not return, or
// computes with numbers that are others in each call.
//
// What cannot be seen is a guard of nobody: other values of captured variables that are no tensors, a
// captured tensor that takes another one's place in its variable, and what the function does beside
// tensors, as printing. forget() has the next calls recorded anew.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "lazuli/export.h"
#include "lazuli/tensor.h"

namespace lazuli {

namespace internal {

// What a compiled function has of its calls. Copies share it.
class LAZULI_API CallCache {
 public:
  CallCache(std::string name, SourceLocation loc);
  // The results of a call with these tensors; `key` are guards. The function gives the results.
  // `donated`: the tensors whose elements are given up, by their numbers.
  std::vector<Tensor> Call(const std::vector<Tensor>& arguments, std::vector<std::uint64_t> key,
                           const std::vector<std::int64_t>& donated,
                           const std::function<std::vector<Tensor>()>& function) const;
  std::string Explain() const;
  void Forget() const;
  // The calls from now on are made, since the function does this: said once.
  void Refuse(const std::string& why) const;
  std::int64_t replays() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Arguments as tensors and guards.
struct FlatCall {
  std::vector<Tensor> tensors;
  std::vector<std::uint64_t> key;

  void Add(const Tensor& tensor) {
    key.push_back(tensor.defined() ? 1 : 0);
    if (tensor.defined()) tensors.push_back(tensor);
  }
  void Add(const std::vector<Tensor>& list) {
    key.push_back(list.size());
    for (const Tensor& tensor : list) Add(tensor);
  }
  void Add(const std::string& text) {
    key.push_back(text.size());
    for (const char c : text) key.push_back(static_cast<unsigned char>(c));
  }
  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void Add(T value) {
    if constexpr (std::is_floating_point_v<T>) {
      std::array<std::uint64_t, (sizeof(T) + 7) / 8> bits{};
      const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
      for (std::size_t i = 0; i < sizeof(T); ++i)
        bits[i / 8] |= static_cast<std::uint64_t>(bytes[i]) << (i % 8 * 8);
      key.insert(key.end(), bits.begin(), bits.end());
    } else {
      key.push_back(static_cast<std::uint64_t>(value));
    }
  }
};

// Results as a list, and back.
template <class R>
struct FlatResult {
  static std::vector<Tensor> List(R result) {
    return std::apply([](auto&&... each) { return std::vector<Tensor>{each...}; },
                      std::move(result));
  }
  static R Of(std::vector<Tensor> list) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return R{std::move(list[I])...};
    }(std::make_index_sequence<std::tuple_size_v<R>>());
  }
};
template <>
struct FlatResult<Tensor> {
  static std::vector<Tensor> List(Tensor result) { return {std::move(result)}; }
  static Tensor Of(std::vector<Tensor> list) { return std::move(list[0]); }
};
template <>
struct FlatResult<std::vector<Tensor>> {
  static std::vector<Tensor> List(std::vector<Tensor> result) { return result; }
  static std::vector<Tensor> Of(std::vector<Tensor> list) { return list; }
};

}  // namespace internal

struct CompileOptions {
  std::string name = "a compiled function";  // in messages
  // Arguments, counted tensor by tensor, whose elements each call takes: results of their shape get
  // their memory. Who reads such a tensor afterwards gets an error.
  std::vector<std::int64_t> donate = {};
};

// A function with the calls of it that are known. Its arguments are tensors, vectors of tensors,
// numbers, enumerators and strings; its result is a tensor, a vector, tuple, pair or array of
// tensors, or nothing. Several threads may call it. Copies share what is known.
template <class F>
class Compiled {
 public:
  Compiled(F function, const CompileOptions& options, SourceLocation loc)
      : function_(std::move(function)), cache_(options.name, loc), donated_(options.donate) {}

  template <class... A>
  auto operator()(const A&... arguments) const {
    using Result = std::invoke_result_t<const F&, const A&...>;
    internal::FlatCall call;
    (call.Add(arguments), ...);
    if constexpr (std::is_void_v<Result>) {
      cache_.Call(call.tensors, std::move(call.key), donated_, [&] {
        function_(arguments...);
        return std::vector<Tensor>();
      });
    } else {
      using Flat = internal::FlatResult<Result>;
      return Flat::Of(cache_.Call(call.tensors, std::move(call.key), donated_,
                                  [&] { return Flat::List(function_(arguments...)); }));
    }
  }

  // How many calls were replayed and recorded, and why the last one was not replayed.
  std::string explain() const { return cache_.Explain(); }
  std::int64_t replays() const { return cache_.replays(); }
  // The next calls are recorded anew.
  void forget() const { cache_.Forget(); }

 private:
  F function_;
  internal::CallCache cache_;
  std::vector<std::int64_t> donated_;
};

// The function, whose calls are replayed.
template <class F>
Compiled<F> compile(F function, const CompileOptions& options = {},
                    SourceLocation loc = SourceLocation::current()) {
  return Compiled<F>(std::move(function), options, loc);
}

}  // namespace lazuli
