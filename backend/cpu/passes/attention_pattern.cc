#include "backend/cpu/passes/attention_pattern.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "backend/cpu/passes/widened_copy.h"
#include "ir/hlo/dot_dims.h"
#include "ir/types/literal.h"
#include "lowering/passes/match.h"

namespace lazuli::cpu {
namespace {

namespace m = lowering::m;
using hlo::Instruction;
using hlo::Opcode;
using lowering::Match;
using Roles = std::vector<int64_t>;

constexpr double kNone = -std::numeric_limits<double>::infinity();
// Steps between a product and softmax, and operations that masks are made of.
constexpr int kMostSteps = 16;
// Instructions that are looked at for steps: either operand of a sum may lead to the product.
constexpr int kMostTried = 64;

std::size_t At(int64_t i) { return static_cast<std::size_t>(i); }
bool Has(const Roles& roles, int64_t role) {
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

// What a dot makes of an operand whose dims have roles, and of the other one.
struct DotRoles {
  Instruction* other = nullptr;
  Roles other_roles, result, contracted;
};
std::optional<DotRoles> RolesFrom(const Instruction& dot, const Instruction* operand,
                                  const Roles& roles, int64_t inner) {
  const auto& attrs = dot.attrs_as<hlo::DotAttrs>();
  const bool is_lhs = dot.operand(0) == operand;
  if (is_lhs == (dot.operand(1) == operand)) return std::nullopt;
  const Dims& batch = is_lhs ? attrs.lhs_batch_dims : attrs.rhs_batch_dims;
  const Dims& other_batch = is_lhs ? attrs.rhs_batch_dims : attrs.lhs_batch_dims;
  const Dims& contracted = is_lhs ? attrs.lhs_contracting_dims : attrs.rhs_contracting_dims;
  const Dims& other_contracted = is_lhs ? attrs.rhs_contracting_dims : attrs.lhs_contracting_dims;
  DotRoles made;
  made.other = dot.operand(is_lhs ? 1 : 0);
  made.other_roles.assign(At(made.other->shape().rank()), inner);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    made.other_roles[At(other_batch[i])] = roles[At(batch[i])];
    made.result.push_back(roles[At(batch[i])]);
  }
  for (std::size_t i = 0; i < contracted.size(); ++i) {
    made.other_roles[At(other_contracted[i])] = roles[At(contracted[i])];
    made.contracted.push_back(roles[At(contracted[i])]);
  }
  if (std::count(made.other_roles.begin(), made.other_roles.end(), inner) != 1) return std::nullopt;
  Roles free;
  for (int64_t d : hlo::FreeDims(operand->shape(), batch, contracted)) free.push_back(roles[At(d)]);
  if (!is_lhs) made.result.push_back(inner);
  made.result.insert(made.result.end(), free.begin(), free.end());
  if (is_lhs) made.result.push_back(inner);
  return made;
}

// The roles of both operands' dims where the result's are those of the weights.
struct OperandRoles {
  Roles lhs, rhs;
};
std::optional<OperandRoles> RolesOfOperands(const Instruction& dot, int64_t inner) {
  const auto& attrs = dot.attrs_as<hlo::DotAttrs>();
  if (attrs.lhs_contracting_dims.size() != 1) return std::nullopt;
  const Shape &lhs = dot.operand(0)->shape(), &rhs = dot.operand(1)->shape();
  OperandRoles roles{Roles(At(lhs.rank()), inner), Roles(At(rhs.rank()), inner)};
  int64_t role = 0;
  for (std::size_t i = 0; i < attrs.lhs_batch_dims.size(); ++i, ++role)
    roles.lhs[At(attrs.lhs_batch_dims[i])] = roles.rhs[At(attrs.rhs_batch_dims[i])] = role;
  for (int64_t d : hlo::FreeDims(lhs, attrs.lhs_batch_dims, attrs.lhs_contracting_dims))
    roles.lhs[At(d)] = role++;
  for (int64_t d : hlo::FreeDims(rhs, attrs.rhs_batch_dims, attrs.rhs_contracting_dims))
    roles.rhs[At(d)] = role++;
  return roles;
}

bool Reduces(const Instruction* i, Opcode with) {
  if (i->opcode() != Opcode::kReduce || i->operand_count() != 2) return false;
  const Instruction* root = i->to_apply()->root();
  return root->opcode() == with && root->operand(0)->opcode() == Opcode::kParameter &&
         root->operand(1)->opcode() == Opcode::kParameter && root->operand(0) != root->operand(1);
}

class PatternMatcher {
 public:
  explicit PatternMatcher(Instruction* weights) { p_.weights = weights; }

  std::optional<AttentionPattern> Match(bool is_body) {
    if (!MatchWeights(is_body) || !ParseSteps(p_.logits, 0) || !MatchScores() || !MatchUsers() ||
        !MatchSteps())
      return std::nullopt;
    return std::move(p_);
  }

 private:
  Instruction* Inside(Instruction* i) {
    p_.inside.push_back(i);
    return i;
  }
  // A broadcast along the keys of what it returns; null if it is none.
  Instruction* AlongKeys(Instruction* i) {
    if (i->opcode() != Opcode::kBroadcast) return nullptr;
    const Dims& dims = i->attrs_as<hlo::DimensionsAttrs>().dimensions;
    return Roles(dims.begin(), dims.end()) == p_.RowRoles() ? i->operand(0) : nullptr;
  }
  bool IsReduceOver(const Instruction* i, const Instruction* x, Opcode with, double init) const {
    const Dims& dims =
        i->opcode() == Opcode::kReduce ? i->attrs_as<hlo::DimensionsAttrs>().dimensions : Dims{};
    return Reduces(i, with) && i->operand(0) == x && dims.size() == 1 && dims[0] == p_.key_role &&
           lowering::IsSplatOf(i->operand(1), init);
  }

  bool MatchWeights(bool is_body) {
    Instruction *sum = nullptr, *exp = nullptr, *shifted = nullptr, *most = nullptr;
    if (!lowering::Match(p_.weights,
                         m::Divide(m::Exponential(&exp, m::Subtract(&shifted, m::Op(&p_.logits),
                                                                    m::Broadcast(&most, m::Op()))),
                                   m::Broadcast(&sum, m::Op()))))
      return false;
    const Shape& shape = p_.weights->shape();
    if ((shape.dtype() != DType::kF32 && shape.dtype() != DType::kF64) ||
        shape.num_elements() == 0 || shape.rank() < 2)
      return false;
    p_.dims.assign(shape.dims().begin(), shape.dims().end());
    // The dimension that is summed is the one that the broadcast adds.
    const Dims& kept = sum->attrs_as<hlo::DimensionsAttrs>().dimensions;
    if (static_cast<int64_t>(kept.size()) != shape.rank() - 1) return false;
    for (int64_t d = 0; d < shape.rank(); ++d)
      if (std::find(kept.begin(), kept.end(), d) == kept.end()) p_.key_role = d;
    p_.largest = AlongKeys(most);
    p_.divisor = AlongKeys(sum);
    if (p_.largest == nullptr || p_.divisor == nullptr) return false;
    for (Instruction* i : {p_.weights, exp, shifted, most, sum}) Inside(i);
    if (is_body && p_.largest->opcode() == Opcode::kParameter &&
        p_.divisor->opcode() == Opcode::kParameter)
      return true;
    return MatchSoftmax(exp);
  }

  // largest and divisor, plain or for rows that see nothing.
  bool MatchSoftmax(const Instruction* exp) {
    Instruction *most = p_.largest, *sum = p_.divisor;
    Instruction *some = nullptr, *also = nullptr, *x = nullptr;
    p_.safe = lowering::Match(p_.divisor, m::Select(m::Op(&some), m::Op(&sum), m::Scalar(1)));
    if (p_.safe) {
      if (!lowering::Match(p_.largest, m::Select(m::Op(&also), m::Op(&most), m::Scalar(0))) ||
          also != some || !lowering::Match(some, m::Compare(m::Op(&x), m::Scalar(kNone))) ||
          x != most ||
          some->attrs_as<hlo::CompareAttrs>().direction != hlo::ComparisonDirection::kNe)
        return false;
      Inside(some);
      Inside(p_.largest);
      Inside(p_.divisor);
    }
    Inside(most);
    Inside(sum);
    return IsReduceOver(most, p_.logits, Opcode::kMaximum, kNone) &&
           IsReduceOver(sum, exp, Opcode::kAdd, 0);
  }

  // From softmax's operand inwards to the product. The first step is the innermost.
  bool ParseSteps(Instruction* x, int depth) {
    if (depth > kMostSteps || ++tried_ > kMostTried) return false;
    const std::size_t count = p_.steps.size(), inside = p_.inside.size();
    Inside(x);
    if (x->opcode() == Opcode::kDot) {
      p_.scores = x;
      return true;
    }
    const auto then = [&](Instruction* inner, const PatternStep& step) {
      if (!ParseSteps(inner, depth + 1)) {
        p_.steps.resize(count);
        p_.inside.resize(inside + 1);
        return false;
      }
      p_.steps.push_back(step);
      return true;
    };
    Instruction *a = nullptr, *b = nullptr, *mask = nullptr;
    const Instruction* number = nullptr;
    if (lowering::Match(x, m::Multiply(m::Op(&a), m::Splat(&number))))
      return then(a, {.number = number->literal().AsDouble(0)});
    if (lowering::Match(x, m::Divide(m::Op(&a), m::Splat(&number))))
      return then(a, {.number = 1 / number->literal().AsDouble(0)});
    if (x->opcode() == Opcode::kAdd) {
      a = x->operand(0);
      b = x->operand(1);
      return then(a, {.kind = PatternStep::Kind::kAdd, .array = b}) ||
             then(b, {.kind = PatternStep::Kind::kAdd, .array = a});
    }
    PatternStep hide{.kind = PatternStep::Kind::kHide};
    if (lowering::Match(x, m::Select(m::Op(&mask), m::Op(&a), m::Splat(&number)))) {
      hide.number = number->literal().AsDouble(0);
      hide.array = mask;
      return then(a, hide);
    }
    if (lowering::Match(x, m::Select(m::Op(&mask), m::Splat(&number), m::Op(&a)))) {
      hide.number = number->literal().AsDouble(0);
      hide.array = mask;
      hide.shown = false;
      return then(a, hide);
    }
    return false;
  }

  bool MatchScores() {
    const auto roles = RolesOfOperands(*p_.scores, p_.inner_role());
    if (!roles) return false;
    const bool key_first = Has(roles->lhs, p_.key_role);
    Instruction* const key = p_.scores->operand(key_first ? 0 : 1);
    Instruction* const query = p_.scores->operand(key_first ? 1 : 0);
    const Roles& key_roles = key_first ? roles->lhs : roles->rhs;
    const Roles& query_roles = key_first ? roles->rhs : roles->lhs;
    const DType dtype = p_.weights->shape().dtype();
    if (Has(query_roles, p_.key_role) || key->shape().dtype() != dtype ||
        query->shape().dtype() != dtype)
      return false;
    for (std::size_t d = 0; d < query_roles.size(); ++d) {
      const int64_t role = query_roles[d];
      if (role == p_.inner_role())
        p_.depth = query->shape().dim(static_cast<int64_t>(d));
      else if (!Has(key_roles, role) && (p_.row_role < 0 || p_.dims[At(role)] > 1))
        p_.row_role = role;
    }
    if (p_.row_role < 0 || p_.depth == 0) return false;
    return SetMatrix(p_.query, query, query_roles, p_.row_role) &&
           SetMatrix(p_.key, key, key_roles, p_.key_role);
  }

  // The operand of a product by its roles; an equal one if it is set already.
  bool SetMatrix(PatternMatrix& matrix, Instruction* operand, const Roles& roles,
                 int64_t row_role) {
    if (operand->shape().dtype() != p_.weights->shape().dtype()) return false;
    // The kernel multiplies scores by the factors of both, and nothing by those of other operands.
    const bool scales = &matrix == &p_.query || &matrix == &p_.key;
    const auto through = scales ? ViewThrough::kFactors : ViewThrough::kWidening;
    auto found = p_.MatrixOf(ViewOf(operand, through), roles, row_role, p_.inner_role());
    if (!found) return false;
    if (matrix.base != nullptr) return matrix == *found;
    matrix = *std::move(found);
    return true;
  }

  // The products of weights, and the gradient. Value is known after them.
  bool MatchUsers() {
    Instruction* sloped = nullptr;  // weights * dweights
    for (Instruction* user : p_.weights->users()) {
      if (user->opcode() == Opcode::kDot) {
        if (!MatchProduct(user)) return false;
      } else if (Instruction* other = FactorBeside(user, p_.weights);
                 other != nullptr && other->opcode() == Opcode::kDot) {
        sloped = user;
      }
    }
    if (sloped != nullptr) return MatchSlopes(sloped);
    // A gradient of the value alone is not worth its own kernel.
    return p_.value.base != nullptr && p_.dvalue.dot == nullptr;
  }
  static Instruction* FactorBeside(Instruction* product, const Instruction* x) {
    Instruction* other = nullptr;
    return lowering::Match(product, m::Multiply(m::Is(x), m::Op(&other))) ? other : nullptr;
  }

  bool MatchProduct(Instruction* dot) {
    const auto roles = RolesFrom(*dot, p_.weights, p_.WeightRoles(), p_.inner_role());
    if (!roles || roles->contracted.size() != 1) return false;
    const bool is_result = roles->contracted[0] == p_.key_role;
    if (!is_result && roles->contracted[0] != p_.row_role) return false;
    PatternResult& made = is_result ? p_.result : p_.dvalue;
    if (made.dot != nullptr || Has(roles->other_roles, is_result ? p_.row_role : p_.key_role))
      return false;
    made = Leaving(dot, roles->result);
    SetWidth(*roles->other, roles->other_roles);
    return SetMatrix(is_result ? p_.value : p_.dresult, roles->other, roles->other_roles,
                     roles->contracted[0]);
  }
  PatternResult Leaving(Instruction* dot, const Roles& roles) {
    PatternResult result{dot, dot, roles, 1};
    const auto only_user = [&]() -> Instruction* {
      const auto users = result.made->users();
      return users.size() == 1 && !result.made->IsRoot() ? users[0] : nullptr;
    };
    const Instruction* number = nullptr;
    Instruction* user = only_user();
    if (user != nullptr &&
        lowering::Match(user, m::Multiply(m::Is(result.made), m::Splat(&number)))) {
      result.factor = number->literal().AsDouble(0);
      Inside(std::exchange(result.made, user));
      user = only_user();
    }
    if (user != nullptr && user->opcode() == Opcode::kConvert && IsHalf(user->shape().dtype()))
      Inside(std::exchange(result.made, user));
    return result;
  }
  void SetWidth(const Instruction& operand, const Roles& roles) {
    const auto inner = std::find(roles.begin(), roles.end(), p_.inner_role());
    p_.width = operand.shape().dim(inner - roles.begin());
  }

  bool MatchSlopes(Instruction* sloped) {
    Instruction* const dweights = Inside(FactorBeside(Inside(sloped), p_.weights));
    const auto roles = RolesOfOperands(*dweights, p_.inner_role());
    if (!roles) return false;
    const bool value_first = Has(roles->lhs, p_.key_role);
    const Roles& value_roles = value_first ? roles->lhs : roles->rhs;
    const Roles& dresult_roles = value_first ? roles->rhs : roles->lhs;
    if (Has(value_roles, p_.row_role) || Has(dresult_roles, p_.key_role)) return false;
    Instruction* const value = dweights->operand(value_first ? 0 : 1);
    SetWidth(*value, value_roles);
    if (!SetMatrix(p_.value, value, value_roles, p_.key_role) ||
        !SetMatrix(p_.dresult, dweights->operand(value_first ? 1 : 0), dresult_roles, p_.row_role))
      return false;
    Instruction* sum = nullptr;
    for (Instruction* user : sloped->users())
      if (IsReduceOver(user, sloped, Opcode::kAdd, 0)) sum = Inside(user);
    if (sum == nullptr) return false;
    Instruction* const dlogits = SlopesOfLogits(sloped, dweights, sum);
    return dlogits != nullptr && MatchSlopesOfSteps(Inside(dlogits));
  }

  bool IsAlongKeys(Instruction* i, const Instruction* x) {
    if (i->opcode() != Opcode::kBroadcast || AlongKeys(i) != x) return false;
    Inside(i);
    return true;
  }
  // weights * (dweights - sum) as the op writes it, weights * dweights - weights * sum as PyTorch
  // does, or weights * dweights + weights * -sum as JAX does.
  Instruction* SlopesOfLogits(Instruction* sloped, Instruction* dweights, Instruction* sum) {
    for (Instruction* user : p_.weights->users()) {
      Instruction *difference = FactorBeside(user, p_.weights), *mean = nullptr;
      if (difference != nullptr &&
          lowering::Match(difference, m::Subtract(m::Is(dweights), m::Op(&mean))) &&
          IsAlongKeys(mean, sum)) {
        Inside(difference);
        return user;
      }
    }
    for (Instruction* user : sloped->users()) {
      Instruction *product = nullptr, *mean = nullptr, *x = nullptr;
      if (lowering::Match(user,
                          m::Subtract(m::Is(sloped), m::Multiply(&product, m::Op(), m::Op())))) {
        mean = FactorBeside(product, p_.weights);
        if (mean == nullptr || !IsAlongKeys(mean, sum)) continue;
        Inside(product);
        return user;
      }
      if (!lowering::Match(user, m::Add(m::Is(sloped), m::Multiply(&product, m::Op(), m::Op()))))
        continue;
      mean = FactorBeside(product, p_.weights);
      if (mean == nullptr) continue;
      Instruction* inner = AlongKeys(mean);
      Instruction* const negated = inner != nullptr ? inner : mean;
      if (!lowering::Match(negated, m::Negate(m::Op(&x)))) continue;
      if (inner != nullptr ? x != sum : !IsAlongKeys(x, sum)) continue;
      for (Instruction* i : {product, mean, negated}) Inside(i);
      return user;
    }
    return nullptr;
  }

  // The steps in reverse, each the one user of the one before.
  bool MatchSlopesOfSteps(Instruction* slopes) {
    for (auto step = p_.steps.rbegin(); step != p_.steps.rend(); ++step) {
      if (step->kind == PatternStep::Kind::kAdd) continue;
      if (slopes->users().size() != 1) return false;
      Instruction* const next = slopes->users()[0];
      const Instruction* number = nullptr;
      if (step->kind == PatternStep::Kind::kHide) {
        const bool fits =
            step->shown
                ? lowering::Match(next, m::Select(m::Is(step->array), m::Is(slopes), m::Scalar(0)))
                : lowering::Match(next, m::Select(m::Is(step->array), m::Scalar(0), m::Is(slopes)));
        if (!fits) return false;
      } else if (lowering::Match(next, m::Multiply(m::Is(slopes), m::Splat(&number)))) {
        if (number->literal().AsDouble(0) != step->number) return false;
      } else if (lowering::Match(next, m::Divide(m::Is(slopes), m::Splat(&number)))) {
        if (1 / number->literal().AsDouble(0) != step->number) return false;
      } else {
        return false;
      }
      slopes = Inside(next);
    }
    for (Instruction* user : slopes->users()) {
      if (user->opcode() != Opcode::kDot) return false;
      const auto roles = RolesFrom(*user, slopes, p_.WeightRoles(), p_.inner_role());
      if (!roles || roles->contracted.size() != 1) return false;
      const bool is_query = roles->contracted[0] == p_.key_role;
      if (!is_query && roles->contracted[0] != p_.row_role) return false;
      PatternResult& made = is_query ? p_.dquery : p_.dkey;
      if (made.dot != nullptr || !SetMatrix(is_query ? p_.key : p_.query, roles->other,
                                            roles->other_roles, roles->contracted[0]))
        return false;
      made = Leaving(user, roles->result);
    }
    return p_.dquery.dot != nullptr || p_.dkey.dot != nullptr;
  }

  // Masks one by one, each of which can be read where it lies.
  bool MatchSteps() {
    std::vector<PatternStep> steps;
    for (const PatternStep& step : p_.steps)
      if (!AddStep(step, steps, 0)) return false;
    p_.steps = std::move(steps);
    return true;
  }
  bool AddStep(PatternStep step, std::vector<PatternStep>& to, int depth) {
    if (step.kind != PatternStep::Kind::kHide || depth > kMostSteps) {
      to.push_back(step);
      return step.array == nullptr || CanRead(step.array);
    }
    Instruction *x = nullptr, *y = nullptr;
    if (lowering::Match(step.array, m::Not(m::Op(&x)))) {
      step.array = x;
      step.shown = !step.shown;
      return AddStep(step, to, depth + 1);
    }
    const bool splits = step.shown ? lowering::Match(step.array, m::And(m::Op(&x), m::Op(&y)))
                                   : lowering::Match(step.array, m::Or(m::Op(&x), m::Op(&y)));
    if (!splits) {
      to.push_back(step);
      return CanRead(step.array);
    }
    PatternStep other = step;
    step.array = x;
    other.array = y;
    return AddStep(step, to, depth + 1) && AddStep(other, to, depth + 1);
  }
  bool CanRead(Instruction* array) const {
    // A condition of a select may be one for all elements.
    return array->shape().rank() == p_.inner_role() &&
           p_.MatrixOf(ViewOf(array, ViewThrough::kWidening), p_.WeightRoles(), p_.row_role,
                       p_.key_role)
               .has_value();
  }

  AttentionPattern p_;
  int tried_ = 0;
};

// A position along a dimension of a plane: iota + shift.
struct Position {
  int64_t dim = 0, shift = 0;
};
std::optional<Position> PositionOf(Instruction* i) {
  Position position;
  Instruction* x = nullptr;
  const Instruction* number = nullptr;
  if (lowering::Match(i, m::Add(m::Op(&x), m::Splat(&number)))) {
    position.shift = static_cast<int64_t>(number->literal().AsDouble(0));
    i = x;
  }
  if (i->opcode() == Opcode::kBroadcast && i->operand(0)->opcode() == Opcode::kIota &&
      i->operand(0)->shape().rank() == 1) {
    position.dim = i->attrs_as<hlo::DimensionsAttrs>().dimensions[0];
    return position;
  }
  if (i->opcode() != Opcode::kIota) return std::nullopt;
  position.dim = i->attrs_as<hlo::IotaAttrs>().iota_dimension;
  return position;
}

}  // namespace

int64_t AttentionPattern::batch() const {
  int64_t batch = 1;
  for (int64_t role = 0; role < inner_role(); ++role)
    if (role != row_role && role != key_role) batch *= dims[At(role)];
  return batch;
}

std::vector<int64_t> AttentionPattern::WeightRoles() const {
  Roles roles;
  for (int64_t role = 0; role < inner_role(); ++role) roles.push_back(role);
  return roles;
}
std::vector<int64_t> AttentionPattern::RowRoles() const {
  Roles roles = WeightRoles();
  roles.erase(roles.begin() + key_role);
  return roles;
}

std::optional<PatternMatrix> AttentionPattern::MatrixOf(const StridedView& view,
                                                        const std::vector<int64_t>& roles,
                                                        int64_t row, int64_t column) const {
  PatternMatrix matrix;
  matrix.base = view.base;
  matrix.offset = view.offset;
  matrix.scale = view.scale;
  const auto axis_of = [&](int64_t role) {
    const auto at = std::find(roles.begin(), roles.end(), role);
    return at == roles.end() ? StridedView::Axis{}
                             : Joined(view.axes[static_cast<std::size_t>(at - roles.begin())]);
  };
  const StridedView::Axis rows = axis_of(row), columns = axis_of(column);
  if (rows.size() > 1 || columns.size() > 1) return std::nullopt;
  if (!rows.empty()) matrix.row = rows[0].stride;
  if (!columns.empty()) matrix.column = columns[0].stride;
  for (int64_t role = 0; role < inner_role(); ++role) {
    if (role == row_role || role == key_role) continue;
    StridedView::Axis axis = axis_of(role);
    if (axis.empty() && dims[At(role)] > 1) axis = {{dims[At(role)], 0}};
    matrix.batch.push_back(std::move(axis));
  }
  return matrix;
}

std::vector<int64_t> PatternMatrix::Offsets() const {
  std::vector<int64_t> offsets{offset};
  for (const StridedView::Axis& axis : batch) {
    for (const StridedView::Run& run : axis) {
      std::vector<int64_t> more;
      for (int64_t at : offsets)
        for (int64_t i = 0; i < run.size; ++i) more.push_back(at + i * run.stride);
      offsets = std::move(more);
    }
  }
  return offsets;
}

std::optional<int64_t> CausalShift(const AttentionPattern& pattern, const PatternStep& step) {
  if (step.kind != PatternStep::Kind::kHide) return std::nullopt;
  const StridedView view = ViewOf(step.array, ViewThrough::kWidening);
  const auto matrix =
      pattern.MatrixOf(view, pattern.WeightRoles(), pattern.row_role, pattern.key_role);
  Instruction* const compare = view.base;
  if (!matrix || compare->opcode() != Opcode::kCompare || compare->shape().rank() != 2 ||
      compare->shape().dim(0) != pattern.rows() || compare->shape().dim(1) != pattern.keys() ||
      matrix->offset != 0 || matrix->row != pattern.keys() || matrix->column != 1 ||
      std::any_of(matrix->batch.begin(), matrix->batch.end(), [](const auto& axis) {
        return axis.size() > 1 || (!axis.empty() && axis[0].stride != 0);
      }))
    return std::nullopt;
  const auto x = PositionOf(compare->operand(0)), y = PositionOf(compare->operand(1));
  if (!x || !y || x->dim == y->dim) return std::nullopt;
  using enum hlo::ComparisonDirection;
  hlo::ComparisonDirection direction = compare->attrs_as<hlo::CompareAttrs>().direction;
  // As key + shift <= row: `row >= key` and `not (row < key)` are, too.
  Position key = *x, row = *y;
  if (key.dim == 0) {
    std::swap(key, row);
    direction = direction == kGe   ? kLe
                : direction == kGt ? kLt
                : direction == kLe ? kGe
                : direction == kLt ? kGt
                                   : kEq;
  }
  if (!step.shown) direction = direction == kGt ? kLe : direction == kGe ? kLt : kEq;
  if (direction != kLe && direction != kLt) return std::nullopt;
  return row.shift - key.shift - (direction == kLt ? 1 : 0);
}

std::optional<AttentionPattern> MatchAttention(Instruction* weights, bool is_body) {
  return PatternMatcher(weights).Match(is_body);
}

namespace {

bool ReadsParameters(const AttentionPattern& pattern) {
  const auto is_parameter = [](const Instruction* i) {
    return i == nullptr || i->opcode() == Opcode::kParameter;
  };
  return is_parameter(pattern.query.base) && is_parameter(pattern.key.base) &&
         is_parameter(pattern.value.base) && is_parameter(pattern.dresult.base) &&
         std::all_of(pattern.steps.begin(), pattern.steps.end(), [&](const PatternStep& step) {
           return step.array == nullptr || CausalShift(pattern, step) ||
                  is_parameter(ViewOf(step.array, ViewThrough::kWidening).base);
         });
}

}  // namespace

std::optional<AttentionPattern> MatchAttentionBody(const hlo::Computation& body) {
  for (const auto& i : body.instructions()) {
    if (i->opcode() != Opcode::kDivide) continue;
    auto pattern = MatchAttention(i.get(), /*is_body=*/true);
    if (pattern && ReadsParameters(*pattern)) return pattern;
  }
  return std::nullopt;
}

bool IsClosed(const AttentionPattern& pattern) {
  std::set<const Instruction*> known(pattern.inside.begin(), pattern.inside.end());
  for (const PatternResult* made :
       {&pattern.result, &pattern.dquery, &pattern.dkey, &pattern.dvalue})
    known.insert(made->made);
  return std::all_of(pattern.inside.begin(), pattern.inside.end(), [&](const Instruction* i) {
    if (i == pattern.largest || i == pattern.divisor) return true;  // results of the fusion
    return !i->IsRoot() && std::all_of(i->users().begin(), i->users().end(),
                                       [&](const auto* user) { return known.contains(user); });
  });
}

}  // namespace lazuli::cpu
