// Packed sequences: what is in them, layers of them, mistakes.
#include "lazuli/nn/packed_sequence.h"

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "lazuli/lazuli.h"
#include "tests/support/expect_error.h"

namespace lazuli::nn::utils::rnn {
namespace {

using test::ErrorOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Step t of sequence i is 10 i + t, and 99 beyond the lengths 2, 3, 1.
Tensor Steps() { return tensor({{0.f, 10.f, 20.f}, {1.f, 11.f, 99.f}, {99.f, 12.f, 99.f}}); }
Tensor Lengths() { return tensor({2, 3, 1}); }
std::vector<float> Floats(const Tensor& x) { return x.flatten().to_vector<float>(); }
std::vector<std::int64_t> Integers(const Tensor& x) { return x.to_vector<std::int64_t>(); }

TEST(PackedSequenceTest, StepsFollowOneAnother) {
  const PackedSequence packed = pack_padded_sequence(Steps(), Lengths(), false, false);
  EXPECT_THAT(Floats(packed.data()), ElementsAre(10, 0, 20, 11, 1, 12));
  EXPECT_THAT(Integers(packed.batch_sizes()), ElementsAre(3, 2, 1));
  EXPECT_THAT(Integers(packed.sorted_indices()), ElementsAre(1, 0, 2));
  EXPECT_THAT(Integers(packed.unsorted_indices()), ElementsAre(1, 0, 2));
  EXPECT_THAT(packed.lengths(), ElementsAre(3, 2, 1));
}

TEST(PackedSequenceTest, PaddingBringsTheBatchBack) {
  const PackedSequence packed = pack_padded_sequence(Steps().t(), Lengths(), true, false);
  const auto [x, lengths] = pad_packed_sequence(packed);
  EXPECT_THAT(Floats(x), ElementsAre(0, 10, 20, 1, 11, 0, 0, 12, 0));
  EXPECT_THAT(Integers(lengths), ElementsAre(2, 3, 1));
  const auto [longer, same] = pad_packed_sequence(packed, true, -1, 4);
  EXPECT_THAT(Floats(longer), ElementsAre(0, 1, -1, -1, 10, 11, 12, -1, 20, -1, -1, -1));
}

TEST(PackedSequenceTest, IsMadeOfItsData) {
  const PackedSequence made = pack_padded_sequence(Steps(), Lengths(), false, false);
  const PackedSequence packed(made.data(), made.batch_sizes(), made.sorted_indices());
  EXPECT_THAT(Floats(packed.padded()), ElementsAre(10, 0, 20, 11, 1, 0, 12, 0, 0));
  EXPECT_THAT(Integers(packed.unsorted_indices()), ElementsAre(1, 0, 2));
  EXPECT_EQ(packed.to(kFloat64).data().dtype(), kFloat64);
  EXPECT_THAT(Integers(invert_permutation(tensor({2, 0, 1}))), ElementsAre(1, 2, 0));
}

TEST(PackedSequenceTest, SequencesAreStacked) {
  const std::vector<Tensor> rows{tensor({1.f, 2.f}), tensor({3.f})};
  EXPECT_THAT(Floats(pad_sequence(rows)), ElementsAre(1, 3, 2, 0));
  EXPECT_THAT(Floats(pad_sequence(rows, true, 9, "left")), ElementsAre(1, 2, 9, 3));
  EXPECT_THAT(Floats(pack_sequence(rows).data()), ElementsAre(1, 3, 2));
}

// The results are those of each sequence alone, and so are gradients.
TEST(PackedSequenceTest, LayersEndWithEachSequence) {
  nn::LSTM layer(3, 4, [] {
    nn::LSTMOptions options;
    options.num_layers = 2, options.bidirectional = true, options.batch_first = true;
    return options;
  }());
  layer.to(kFloat64);
  const Tensor x = randn({3, 5, 3}, kFloat64).requires_grad_(true);
  const std::vector<std::int64_t> lengths{2, 5, 1};
  const nn::LSTM::State first(randn({4, 3, 4}, kFloat64), randn({4, 3, 4}, kFloat64));
  const auto [packed, last] = layer.forward_with_packed_input(
      pack_padded_sequence(x, tensor({2, 5, 1}), true, false), first);
  const Tensor y = std::get<0>(pad_packed_sequence(packed, true));
  Tensor sum;
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto at = [&](const Tensor& state) { return state.narrow(1, i, 1); };
    const std::int64_t length = lengths[static_cast<std::size_t>(i)];
    const auto [alone, state] =
        layer(x.narrow(0, i, 1).narrow(1, 0, length),
              nn::LSTM::State(at(std::get<0>(first)), at(std::get<1>(first))));
    EXPECT_TRUE(allclose(y.narrow(0, i, 1).narrow(1, 0, length), alone, 1e-12, 1e-12)) << i;
    EXPECT_TRUE(allclose(at(std::get<0>(last)), std::get<0>(state), 1e-12, 1e-12)) << i;
    EXPECT_TRUE(allclose(at(std::get<1>(last)), std::get<1>(state), 1e-12, 1e-12)) << i;
    sum = sum.defined() ? sum + alone.square().sum() : alone.square().sum();
  }
  const Tensor ours = grad({y.square().sum()}, {x})[0], theirs = grad({sum}, {x})[0];
  EXPECT_TRUE(allclose(ours, theirs, 1e-12, 1e-12));
}

TEST(PackedSequenceTest, OtherLengthsCompileNothing) {
  const nn::GRU layer(3, 4);
  const Tensor x = randn({5, 2, 3});
  const auto run = [&](const Tensor& lengths) {
    const auto [y, last] = layer.forward_with_packed_input(pack_padded_sequence(x, lengths));
    return last.sum().item<float>();
  };
  (void)run(tensor({5, 3}));
  (void)run(tensor({5, 2}));
  const std::int64_t before = metrics::counter("UncachedCompile");
  (void)run(tensor({5, 1}));
  EXPECT_EQ(metrics::counter("UncachedCompile"), before);
}

TEST(PackedSequenceTest, ErrorsNameTheMistake) {
  const auto pack = [](const Tensor& lengths) {
    return ErrorOf([&] { (void)pack_padded_sequence(Steps(), lengths); });
  };
  EXPECT_THAT(pack(tensor({1, 2, 3})), HasSubstr("must be sorted in decreasing order"));
  EXPECT_THAT(pack(tensor({3, 2, 0})), HasSubstr("an element in 'lengths' that is <= 0"));
  EXPECT_THAT(pack(tensor({3, 2})), HasSubstr("got 2 (batch_size=3)"));
  EXPECT_THAT(pack(tensor({4, 2, 1})), HasSubstr("a length of 4 is above the 3 steps"));
  const PackedSequence packed = pack_padded_sequence(Steps(), Lengths(), false, false);
  EXPECT_THAT(ErrorOf([&] { (void)pad_packed_sequence(packed, false, 0, 2); }),
              HasSubstr("got total_length=2 and max sequence length being 3"));
  EXPECT_THAT(ErrorOf([&] { (void)nn::GRU(1, 4).forward_with_packed_input(packed); }),
              HasSubstr("packed data must have 2 dims"));
  EXPECT_THAT(ErrorOf([] { (void)pad_sequence({}); }), HasSubstr("an empty list"));
  EXPECT_THAT(ErrorOf([] { (void)PackedSequence(zeros({3}), tensor({1, 2})); }),
              HasSubstr("batch_sizes must decrease"));
  EXPECT_THAT(ErrorOf([] { (void)PackedSequence().data(); }), HasSubstr("it has no sequences"));
}

}  // namespace
}  // namespace lazuli::nn::utils::rnn
