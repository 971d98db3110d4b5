// Einstein sums by the ops there are: diagonals are strided slices, letters of one operand are
// summed over, and pairs of operands, from left to right, meet in a matrix product.
#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lazy/ops/core/functions.h"
#include "lazy/ops/linear/matmul.h"

namespace lazuli::lazy {
namespace {

// A dim's name: its letter, or kDots + i for the i-th from the right of those that "..." stands
// for.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kDots = 256;

// Where it is first; the size if it is not there.
int64_t FirstOf(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) - labels.begin();
}

bool Has(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::string Text(Label label) {
  return label < kDots ? Str("'", std::string(1, static_cast<char>(label)), "'") : "'...'";
}

// The letters of an operand or of the result, and where in the equation each stands.
struct Term {
  std::string letters;
  std::vector<std::size_t> places;
  std::size_t place = 0;  // where it begins
  int dots = -1;          // the letter that "..." stands before
};

class Equation {
 public:
  explicit Equation(std::string_view text) : text_(text) {
    terms_.emplace_back();
    for (std::size_t i = 0; i < text.size(); ++i) i += Read(i);
  }

  // The names of an operand's dims.
  Labels OperandLabels(std::size_t i, const Shape& shape) const {
    const Term& term = terms_[i];
    const int64_t rest = shape.rank() - static_cast<int64_t>(term.letters.size());
    if (rest < 0 || (rest > 0 && term.dots < 0)) {
      Fail(term.place, Str("operand ", i, ", ", shape, ", has rank ", shape.rank(),
                           " and the letters \"", term.letters, "\""));
    }
    return Expanded(term, rest);
  }
  // The names of the result's dims, with so many for "...".
  Labels ResultLabels(int64_t dots) const {
    if (has_result_) {
      CheckLettersAreKnown();
      return Expanded(result_, result_.dots < 0 ? 0 : dots);
    }
    std::map<char, int> count;
    for (const Term& term : terms_) {
      for (const char letter : term.letters) ++count[letter];
    }
    Term once;
    once.dots = 0;
    for (const auto& [letter, times] : count) {
      if (times == 1) once.letters += letter;
    }
    return Expanded(once, dots);
  }

  std::size_t operands() const { return terms_.size(); }
  const Term& term(std::size_t i) const { return terms_[i]; }

  [[noreturn]] void Fail(std::size_t place, const std::string& what) const {
    ThrowRecordError("einsum", InvalidArgument("\"", text_, "\", position ", place, ": ", what));
  }

 private:
  // Reads what stands at i; returns how many characters beyond it were read, too.
  std::size_t Read(std::size_t i) {
    Term& term = has_result_ ? result_ : terms_.back();
    const char c = text_[i];
    if (c == ' ') return 0;
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      if (has_result_ && term.letters.find(c) != std::string::npos)
        Fail(i, Str("'", std::string(1, c), "' is in the result twice"));
      term.letters += c;
      term.places.push_back(i);
      return 0;
    }
    if (text_.substr(i, 3) == "...") {
      if (term.dots >= 0) Fail(i, "a second \"...\"");
      term.dots = static_cast<int>(term.letters.size());
      return 2;
    }
    if (text_.substr(i, 2) == "->") {
      if (has_result_) Fail(i, "a second \"->\"");
      has_result_ = true;
      return 1;
    }
    if (c != ',' || has_result_) Fail(i, Str("'", std::string(1, c), "' has no meaning here"));
    terms_.emplace_back();
    terms_.back().place = i + 1;
    return 0;
  }

  static Labels Expanded(const Term& term, int64_t dots) {
    Labels labels(term.letters.begin(), term.letters.end());
    Labels between;
    for (int64_t d = dots; d-- > 0;) between.push_back(kDots + static_cast<int>(d));
    labels.insert(labels.begin() + std::max(term.dots, 0), between.begin(), between.end());
    return labels;
  }

  void CheckLettersAreKnown() const {
    for (std::size_t i = 0; i < result_.letters.size(); ++i) {
      const char letter = result_.letters[i];
      const bool known = std::any_of(terms_.begin(), terms_.end(), [&](const Term& term) {
        return term.letters.find(letter) != std::string::npos;
      });
      if (!known) Fail(result_.places[i], Str("'", std::string(1, letter), "' is of no operand"));
    }
  }

  std::string_view text_;
  std::vector<Term> terms_;
  Term result_;
  bool has_result_ = false;
};

// A tensor whose dims have names, each another.
struct Named {
  Tensor x;
  Labels labels;

  int64_t Size(Label label) const { return x.dim(FirstOf(labels, label)); }
};

int64_t Product(const Named& named, const Labels& labels) {
  int64_t product = 1;
  for (const Label label : labels) product *= named.Size(label);
  return product;
}

Named Ordered(const Named& named, const Labels& order) {
  if (named.labels == order) return named;
  Dims dims;
  for (const Label label : order) dims.push_back(FirstOf(named.labels, label));
  return {Permute(named.x, dims), order};
}

// The elements at equal positions of dims a < b, which have one name: every n + 1-th of n x n.
Named Diagonal(const Named& named, std::size_t a, std::size_t b) {
  Dims order, dims;
  Labels labels;
  for (std::size_t d = 0; d < named.labels.size(); ++d) {
    if (d == a || d == b) continue;
    order.push_back(static_cast<int64_t>(d));
    dims.push_back(named.x.dim(static_cast<int64_t>(d)));
    labels.push_back(named.labels[d]);
  }
  labels.push_back(named.labels[b]);
  order.push_back(static_cast<int64_t>(a));
  order.push_back(static_cast<int64_t>(b));
  const int64_t n = named.x.dim(static_cast<int64_t>(b));
  dims.push_back(n * n);
  const Tensor square = Reshape(Permute(named.x, order), dims);
  Dims starts(dims.size(), 0), strides(dims.size(), 1);
  strides.back() = n + 1;
  return {Slice(square, starts, dims, strides), std::move(labels)};
}

Named WithoutRepeats(Named named) {
  for (std::size_t b = 0; b < named.labels.size();) {
    const auto a = static_cast<std::size_t>(FirstOf(named.labels, named.labels[b]));
    if (a == b) {
      ++b;
      continue;
    }
    named = Diagonal(named, a, b);
    b = 0;
  }
  return named;
}

// Without the dims whose name `drop` says; summed over, as the dtype it has unless the sum widens.
template <class F>
Named Without(const Named& named, F drop, bool widens = false) {
  Dims dims;
  Labels labels;
  for (std::size_t d = 0; d < named.labels.size(); ++d) {
    if (drop(named.labels[d]))
      dims.push_back(static_cast<int64_t>(d));
    else
      labels.push_back(named.labels[d]);
  }
  if (dims.empty()) return named;
  const Tensor sum = Sum(named.x, dims);
  return {widens ? sum : To(sum, named.x.dtype()), std::move(labels)};
}

// The product of two, summed over the names that are of both and not kept.
Named Contract(Named a, Named b, const Labels& kept) {
  // What only one has is summed as any sum: integers as s64.
  a = Without(a, [&](Label l) { return !Has(kept, l) && !Has(b.labels, l); }, /*widens=*/true);
  b = Without(b, [&](Label l) { return !Has(kept, l) && !Has(a.labels, l); }, /*widens=*/true);
  Labels batch, left, right, inner;
  for (const Label l : a.labels)
    (!Has(b.labels, l) ? left : Has(kept, l) ? batch : inner).push_back(l);
  for (const Label l : b.labels) {
    if (!Has(a.labels, l)) right.push_back(l);
  }
  // Without names to sum over, the same shapes multiply element by element.
  const bool product = !inner.empty();
  if (product) CheckFactors("einsum", a.x, b.x);
  const auto joined = [](Labels x, const Labels& y, const Labels& z) {
    x.insert(x.end(), y.begin(), y.end());
    x.insert(x.end(), z.begin(), z.end());
    return x;
  };
  const Labels result = joined(batch, left, right);
  Dims dims;
  for (const Label l : result) dims.push_back(Has(a.labels, l) ? a.Size(l) : b.Size(l));
  const int64_t n = Product(a, batch), rows = Product(a, left), columns = Product(b, right),
                k = Product(a, inner);
  const Tensor x = Ordered(a, joined(batch, left, inner)).x,
               y = Ordered(b, joined(batch, inner, right)).x;
  const Tensor l = Reshape(x, batch.empty() ? Dims{rows, k} : Dims{n, rows, k}),
               r = Reshape(y, batch.empty() ? Dims{k, columns} : Dims{n, k, columns});
  return {Reshape(product ? Matmul(l, r) : Mul(l, r), dims), result};
}

// The sizes that names have; 1 stretches.
std::map<Label, int64_t> Sizes(const Equation& equation, const std::vector<Named>& operands) {
  std::map<Label, int64_t> sizes;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto& [x, labels] = operands[i];
    for (std::size_t d = 0; d < labels.size(); ++d) {
      const Label label = labels[d];
      const int64_t n = x.dim(static_cast<int64_t>(d));
      int64_t& size = sizes.try_emplace(label, n).first->second;
      const int64_t own = operands[i].Size(label);
      if (own != n || (size != n && size != 1 && n != 1)) {
        const Term& term = equation.term(i);
        const std::size_t at =
            label < kDots ? term.letters.find(static_cast<char>(label)) : std::string::npos;
        equation.Fail(at < term.places.size() ? term.places[at] : term.place,
                      Str(Text(label), " is ", n, " in operand ", i, ", ", x.shape(), ", and ",
                          own != n ? own : size, " before"));
      }
      if (n != 1) size = n;
    }
  }
  return sizes;
}

}  // namespace

Tensor Einsum(std::string_view text, absl::Span<const Tensor> xs) {
  const Equation equation(text);
  if (equation.operands() != xs.size()) {
    equation.Fail(0,
                  Str("there are ", equation.operands(), " operands, but ", xs.size(), " tensors"));
  }
  std::vector<Named> operands;
  int64_t dots = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    operands.push_back({xs[i], equation.OperandLabels(i, xs[i].shape())});
    dots = std::max(dots, xs[i].rank() - static_cast<int64_t>(equation.term(i).letters.size()));
  }
  const Labels result = equation.ResultLabels(dots);
  const auto sizes = Sizes(equation, operands);
  for (Named& named : operands) {
    named = WithoutRepeats(std::move(named));
    const Named whole = named;  // what stretches has no dim: it is a factor all along it
    named = Without(whole, [&](Label l) { return whole.Size(l) != sizes.at(l); });
  }
  Named all = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) {
    Labels kept = result;
    for (std::size_t later = i + 1; later < operands.size(); ++later)
      kept.insert(kept.end(), operands[later].labels.begin(), operands[later].labels.end());
    all = Contract(std::move(all), operands[i], kept);
  }
  // The sum of a single operand is a sum: that of integers has s64.
  all = Without(all, [&](Label l) { return !Has(result, l); }, /*widens=*/xs.size() == 1);
  return Ordered(all, result).x;
}

}  // namespace lazuli::lazy
