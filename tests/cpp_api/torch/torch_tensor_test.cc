// Tensors as programs for LibTorch write them; values by PyTorch's definitions.
#include <cstring>
#include <sstream>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/torch.h>

namespace torch = lazuli::torch_names;

namespace {

using testing::ElementsAre;

std::vector<float> Floats(const torch::Tensor& x) {
  return x.to(torch::kFloat32).to_vector<float>();
}
template <class T>
std::string Text(const T& value) {
  std::ostringstream os;
  os << value;
  return os.str();
}

TEST(TorchTensorTest, NumbersStandForListsOfOne) {
  const torch::Tensor x = torch::arange(6).view({2, -1});
  EXPECT_EQ(torch::zeros(3).sizes(), (lazuli::Dims{3}));
  EXPECT_THAT(Floats(x.sum(1)), ElementsAre(3, 12));
  EXPECT_THAT(Floats(x.sum(0, true)), ElementsAre(3, 5, 7));
  EXPECT_EQ(x.view(-1).sizes(), (lazuli::Dims{6}));
  EXPECT_EQ(x.unsqueeze(0).squeeze(0).sizes(), x.sizes());
  EXPECT_EQ(torch::ones({1, 2, 1}).squeeze().sizes(), (lazuli::Dims{2}));
  EXPECT_EQ(torch::tensor(3.0).squeeze(0).dim(), 0);
}

TEST(TorchTensorTest, OptionsSayWhatANewTensorIs) {
  const torch::Tensor x = torch::zeros({2}, torch::dtype(torch::kFloat64).requires_grad(true));
  EXPECT_EQ(x.dtype(), torch::kDouble);
  EXPECT_TRUE(x.requires_grad());
  EXPECT_EQ(
      torch::ones({2, 3}, torch::TensorOptions().dtype(torch::kLong).device(torch::kCPU)).dtype(),
      torch::kInt64);
  EXPECT_EQ(torch::randint(10, {3}).dtype(), torch::kLong);
  EXPECT_FALSE(torch::cuda::is_available());
  EXPECT_THAT([] { torch::ones({2}, torch::kCUDA); },
              testing::ThrowsMessage<lazuli::Error>(
                  "no device \"cuda:0\": the platforms are cpu, interpreter, npu"));
}

TEST(TorchTensorTest, NumbersNestToAnyDepth) {
  EXPECT_EQ(torch::tensor(3.0).item(), 3);
  EXPECT_EQ(torch::tensor({1.0, 2.0}).dtype(), torch::kFloat32);  // the default, as Python's
  EXPECT_EQ(torch::tensor({1, 2}).dtype(), torch::kInt64);
  EXPECT_EQ(torch::tensor({true, false}).dtype(), torch::kBool);
  const torch::Tensor x = torch::tensor({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}}, torch::kFloat64);
  EXPECT_EQ(x.sizes(), (lazuli::Dims{2, 2, 2}));
  EXPECT_THAT(Floats(x), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(Floats(torch::tensor(std::vector<double>{0.5, 2})), ElementsAre(0.5, 2));
  const std::int64_t large = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(torch::tensor({large}).item<std::int64_t>(), large);
  EXPECT_ERROR(kInvalidArgument, "tensor: rows differ in length", torch::tensor({{1, 2}, {3}}));
}

TEST(TorchTensorTest, CountsAsPyTorchDoes) {
  EXPECT_THAT(Floats(torch::arange(7, -3, -4)), ElementsAre(7, 3, -1));
  EXPECT_THAT(Floats(torch::arange(0.5, 2.0, 0.5)), ElementsAre(0.5, 1, 1.5));
  EXPECT_EQ(torch::arange(0, 3).dtype(), torch::kLong);
  EXPECT_EQ(torch::arange(2, 2).numel(), 0);
  EXPECT_ERROR(kInvalidArgument, "arange: step is 0", torch::arange(0, 1, 0));
  EXPECT_ERROR(kInvalidArgument, "arange: steps of 1 lead from 0 away from -1",
               torch::arange(0, -1, 1));
}

TEST(TorchTensorTest, PartsAreWrittenTo) {
  torch::Tensor x = torch::zeros({2, 3});
  x[0][1] = 5;
  x[1] = torch::ones(3);
  x[-1][2] += 1;
  EXPECT_THAT(Floats(x), ElementsAre(0, 5, 0, 1, 1, 2));
  x.index_put_({0, torch::indexing::Slice(1, torch::indexing::None)}, 7);
  EXPECT_THAT(Floats(x.index({"...", 1})), ElementsAre(7, 1));
  EXPECT_THAT(Floats(x.slice(1, 1, 3)), ElementsAre(7, 7, 1, 2));
  EXPECT_THAT(Floats(x.slice(1, -100, 100, 2)), ElementsAre(0, 7, 1, 2));
  EXPECT_EQ(x.index({torch::indexing::None, 0}).sizes(), (lazuli::Dims{1, 3}));
  EXPECT_THAT(Floats(x[torch::tensor({1, 0})].select(1, 2)), ElementsAre(2, 7));
  EXPECT_ERROR(kOutOfRange, "index: index 2 is out of range for dim 0 of size 2", x[2]);
  EXPECT_ERROR(kWrongType, "index: an index is an integer, is 0.5", x[0.5]);
  EXPECT_ERROR(kInvalidArgument, "index: \"..\" is not an index; \"...\" is the only word",
               x.index({"..", 1}));
  torch::Tensor other = x;
  other = torch::ones(1);  // of a variable: another tensor
  EXPECT_EQ(x.dim(), 2);
}

TEST(TorchTensorTest, OperatorsAreThoseOfPython) {
  torch::Tensor x = torch::tensor({5, -7, 6});
  EXPECT_THAT(Floats((x > 0) & (x < 6)), ElementsAre(1, 0, 0));
  EXPECT_THAT(Floats(x % 4), ElementsAre(1, 1, 2));
  EXPECT_THAT(Floats(~x), ElementsAre(-6, 6, -7));
  EXPECT_THAT(Floats(!(x - 5)), ElementsAre(1, 0, 0));
  EXPECT_THAT(Floats(x << 1), ElementsAre(10, -14, 12));
  x -= 1;
  x *= x;
  x ^= 1;
  EXPECT_THAT(Floats(x), ElementsAre(17, 65, 24));
}

TEST(TorchTensorTest, ElementsAreWrittenOnTheHost) {
  torch::Tensor x = torch::zeros({2, 3});
  float* const data = x.data_ptr<float>();
  data[1] = 5;
  const torch::Tensor twice = x * 2;  // recorded before the next write
  data[1] = 7;
  EXPECT_THAT(Floats(twice), ElementsAre(0, 10, 0, 0, 0, 0));
  EXPECT_THAT(Floats(x), ElementsAre(0, 7, 0, 0, 0, 0));
  EXPECT_EQ(x.data_ptr<float>(), data);
  auto a = x.accessor<float, 2>();
  a[1][2] = 3;
  EXPECT_EQ(a.data()[5], 3);
  EXPECT_EQ(x.sum().item(), 10);
  x += 1;  // ends it, until the pointer is asked for again
  EXPECT_THAT(Floats(x), ElementsAre(1, 8, 1, 1, 1, 4));
  EXPECT_EQ(x.data_ptr<float>()[1], 8);
  EXPECT_EQ(x.data_ptr<float>(), data);
}

TEST(TorchTensorTest, WhatIsWrittenOnTheHostIsSeenThroughViews) {
  torch::Tensor x = torch::zeros({2, 2}), column = x.select(1, 1), other = x.clone();
  EXPECT_EQ(column.sum().item(), 0);
  const std::vector<float> row{4, 5};
  std::memcpy(x[1].data_ptr(), row.data(), 2 * sizeof(float));
  EXPECT_THAT(Floats(x), ElementsAre(0, 0, 4, 5));
  EXPECT_THAT(Floats(column), ElementsAre(0, 5));
  column.accessor<float, 1>()[0] = 9;
  EXPECT_THAT(Floats(x), ElementsAre(0, 9, 4, 5));
  EXPECT_THAT(Floats(column + 0), ElementsAre(9, 5));
  EXPECT_THAT(Floats(other), ElementsAre(0, 0, 0, 0));
  torch::Tensor number = torch::full({1}, 2, torch::kLong);
  number.data_ptr<int64_t>()[0] = 6;
  EXPECT_EQ(number.item<int64_t>(), 6);
  torch::Tensor truth = torch::zeros({2}, torch::kBool);
  truth.data_ptr<bool>()[1] = true;
  EXPECT_EQ(truth.to(torch::kInt).sum().item<int>(), 1);
}

TEST(TorchTensorTest, LessonsOfTheHostAreUsedInTraining) {
  torch::Tensor w = torch::ones({2}).requires_grad_(), x = torch::zeros({2});
  for (int step = 1; step <= 3; ++step) {
    float* const data = x.data_ptr<float>();
    data[0] = static_cast<float>(step);
    data[1] = 1;
    (w * x).sum().backward();
    EXPECT_THAT(Floats(w.grad()), ElementsAre(step, 1));
    w.mutable_grad() = torch::Tensor();
    lazuli::mark_step();
  }
  EXPECT_EQ(torch::ones(2).const_data_ptr<float>()[1], 1);
}

TEST(TorchTensorTest, FunctionsWriteToTensors) {
  const torch::Tensor x = torch::tensor({1.0, 2.0}), y = torch::tensor({3.0, 5.0});
  torch::Tensor out = torch::empty(0);
  EXPECT_TRUE(torch::add_out(out, x, y).is_same(out));
  EXPECT_THAT(Floats(out), ElementsAre(4, 7));
  torch::mul_out(out, x, y);
  EXPECT_THAT(Floats(out), ElementsAre(3, 10));
  torch::Tensor values = torch::empty(0), indices = torch::empty(0, torch::kLong);
  torch::sort_out(values, indices, torch::tensor({2.0, 1.0}));
  EXPECT_THAT(Floats(values), ElementsAre(1, 2));
  EXPECT_THAT(Floats(indices), ElementsAre(1, 0));
  torch::Tensor whole = torch::zeros({2}, torch::kLong);
  EXPECT_ERROR(kInvalidArgument, "add_out: the result is f32, out is s64",
               torch::add_out(whole, x, y));
  EXPECT_ERROR(kFailedPrecondition,
               "exp_out: has no gradient; detach() what requires one, or call it under NoGrad",
               torch::exp_out(out, torch::ones(1).requires_grad_()));
  torch::Tensor undefined;
  EXPECT_ERROR(kInvalidArgument, "exp_out: out is an undefined tensor",
               torch::exp_out(undefined, x));
}

TEST(TorchTensorTest, ListsOfSizesStay) {
  const torch::IntArrayRef sizes = torch::ones({2, 3}).sizes(), braces = {4, 5};
  EXPECT_EQ(torch::zeros(sizes).numel(), 6);
  EXPECT_EQ(torch::zeros(torch::IntArrayRef({2, 2})).numel(), 4);
  EXPECT_EQ(braces.vec(), (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(braces.slice(1).size(), 1U);
  EXPECT_EQ(Text(sizes), "[2, 3]");
  const std::vector<int> numbers{1, 2};
  EXPECT_EQ(torch::ArrayRef<int>(numbers).back(), 2);
}

TEST(TorchTensorTest, NumbersAndVectorsAreTensors) {
  EXPECT_EQ(torch::tensor(5).dtype(), torch::kLong);
  EXPECT_EQ(torch::tensor(std::vector<int>{1, 2}).dtype(), torch::kLong);
  EXPECT_EQ(torch::tensor(std::vector<std::uint8_t>{1, 255}).dtype(), torch::kByte);
  EXPECT_EQ(torch::tensor(std::vector<std::int16_t>{1}).dtype(), torch::kShort);
  EXPECT_EQ(torch::tensor(torch::ones(1).item()).dtype(), torch::kFloat);
  EXPECT_EQ(torch::tensor(1.5, torch::kF64).item(), 1.5);
}

TEST(TorchTensorTest, OneIndexNeedsNoBraces) {
  torch::Tensor x = torch::arange(6).view({3, 2});
  EXPECT_THAT(Floats(x.index(torch::tensor({2, 0}))), ElementsAre(4, 5, 0, 1));
  EXPECT_THAT(Floats(x.index(x > 3)), ElementsAre(4, 5));
  EXPECT_THAT(Floats(x.index(1)), ElementsAre(2, 3));
  EXPECT_THAT(Floats(x.index(torch::indexing::Slice(1, 2))), ElementsAre(2, 3));
  x.index_put_(x > 3, 0);
  EXPECT_EQ(x.sum().item(), 6);
}

TEST(TorchTensorTest, ResizesAndPads) {
  const torch::Tensor x = torch::arange(4, torch::kFloat).view({1, 1, 2, 2});
  EXPECT_THAT(Floats(torch::upsample_nearest2d(x, torch::IntArrayRef({4, 2}))),
              ElementsAre(0, 1, 0, 1, 2, 3, 2, 3));
  EXPECT_THAT(Floats(torch::upsample_bilinear2d(x, torch::IntArrayRef({2, 3}), true)),
              ElementsAre(0, 0.5, 1, 2, 2.5, 3));
  EXPECT_EQ(torch::upsample_nearest1d(x[0], std::nullopt, std::vector<double>{3}).size(2), 6);
  EXPECT_THAT(Floats(torch::replication_pad2d(x, {1, 0, 0, 0})), ElementsAre(0, 0, 1, 2, 2, 3));
  EXPECT_THAT(Floats(torch::reflection_pad1d(x[0], {1, 0})), ElementsAre(1, 0, 1, 3, 2, 3));
  EXPECT_EQ(torch::constant_pad_nd(x, {1, 1}, 2).sum().item(), 14);
  const auto [rows, inverse, counts] =
      torch::unique_dim(torch::tensor({{3, 4}, {1, 2}, {3, 4}}), 0, true, true, true);
  EXPECT_THAT(Floats(rows), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Floats(inverse), ElementsAre(1, 0, 1));
  EXPECT_THAT(Floats(counts), ElementsAre(1, 2));
}

TEST(TorchTensorTest, WhatMadeATensorIsPrinted) {
  const torch::Tensor x = torch::ones(1).requires_grad_();
  EXPECT_EQ(Text(x.grad_fn()), "none");
  EXPECT_EQ(Text((x * 2).grad_fn()), "MulBackward0");
}

TEST(TorchTensorTest, ElementsAreReadOnTheHost) {
  const torch::Tensor x = torch::tensor({{1.0, 2.0}, {3.0, 4.0}});
  const auto a = x.accessor<float, 2>();
  EXPECT_EQ(a[1][0], 3);
  EXPECT_EQ(a.size(1), 2);
  EXPECT_EQ(x.t().contiguous().data_ptr<float>()[1], 3);
  EXPECT_ERROR(kInvalidArgument, "accessor: 1 dims are asked of f32[2,2]",
               (x.accessor<float, 1>()));
  EXPECT_ERROR(kWrongType, "data_ptr: the tensor is f32[2,2], not f64", x.data_ptr<double>());
  float data[] = {1, 2, 3};
  const torch::Tensor copy = torch::from_blob(data, {3});
  data[0] = 9;
  EXPECT_THAT(Floats(copy), ElementsAre(1, 2, 3));
}

TEST(TorchTensorTest, PrintsDimsTypesAndDevices) {
  EXPECT_EQ(Text(torch::ones({2, 3}).sizes()), "[2, 3]");
  EXPECT_EQ(Text(torch::kFloat64), "f64");
  EXPECT_EQ(Text(torch::Device(torch::kCPU)), "cpu:0");
}

TEST(TorchTensorTest, Differentiates) {
  torch::Tensor x = torch::ones({2}).requires_grad_();
  {
    const torch::NoGradGuard no_grad;
    EXPECT_FALSE((x * 2).requires_grad());
    const torch::AutoGradMode on(true);
    EXPECT_TRUE((x * 2).requires_grad());
  }
  const torch::Tensor y = (x * x).sum();
  y.backward({}, /*retain_graph=*/true);
  EXPECT_THAT(Floats(x.grad()), ElementsAre(2, 2));
  const auto g = torch::autograd::grad({y}, {x}, {}, std::nullopt, /*create_graph=*/true);
  EXPECT_TRUE(g[0].requires_grad());
}

TEST(TorchTensorTest, TravelsThroughFiles) {
  const std::string path = testing::TempDir() + "torch_names.safetensors";
  torch::save({torch::arange(3), torch::ones(1)}, path);
  std::vector<torch::Tensor> read;
  torch::load(read, path);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_TRUE(torch::equal(read[0], torch::arange(3)));
  torch::Tensor one;
  EXPECT_ERROR(kInvalidArgument, "load: " + path + " has 2 tensors, not one",
               torch::load(one, path));
}

TEST(TorchTensorTest, TravelsThroughStreams) {
  std::stringstream stream;
  stream << "before";
  torch::save(torch::arange(3), stream);
  stream.seekg(6);
  torch::Tensor read;
  torch::load(read, stream, torch::kCPU);
  EXPECT_TRUE(torch::equal(read, torch::arange(3)));
  std::stringstream text("no tensors");
  EXPECT_ERROR(kInvalidArgument,
               "the stream is damaged or not a safetensors file: its header should have "
               "8030883942550761326 bytes, the file has 2 after the length",
               torch::load(read, text));
  std::ostringstream closed;
  closed.setstate(std::ios::badbit);
  EXPECT_ERROR(kNotFound, "writing failed for a stream", torch::save(read, closed));
}

TEST(TorchTensorTest, ArchivesHoldTensorsValuesAndArchives) {
  torch::serialize::OutputArchive archive, inner;
  inner.write("x", torch::arange(3));
  inner.write("rate", 0.1);
  archive.write("inner", inner);
  archive.write("epoch", torch::IValue(3));
  archive.write("done", true);
  archive.write("name", "a net");
  EXPECT_ERROR(kInvalidArgument, "OutputArchive: there is a \"epoch\" already",
               archive.write("epoch", 4));
  EXPECT_ERROR(kInvalidArgument, "OutputArchive: \"y\" is an undefined tensor",
               archive.write("y", torch::Tensor()));
  std::stringstream stream;
  archive.save_to(stream);

  torch::serialize::InputArchive read, part;
  read.load_from(stream);
  EXPECT_THAT(read.keys(), testing::UnorderedElementsAre("inner", "epoch", "done", "name"));
  torch::IValue value;
  read.read("epoch", value);
  EXPECT_EQ(value.toInt(), 3);
  EXPECT_THAT([&] { value.toDouble(); },
              testing::ThrowsMessage<lazuli::Error>("IValue: it is not a double"));
  read.read("done", value);
  EXPECT_TRUE(value.toBool());
  read.read("name", value);
  EXPECT_EQ(value.toStringRef(), "a net");
  read.read("inner", part);
  part.read("rate", value);
  EXPECT_EQ(value.toDouble(), 0.1);
  torch::Tensor fresh, place = torch::zeros(3, torch::kLong);
  const torch::Tensor alias = place;
  part.read("x", fresh);
  part.read("x", place);
  EXPECT_TRUE(torch::equal(fresh, torch::arange(3)));
  EXPECT_TRUE(torch::equal(alias, torch::arange(3)));
  torch::Tensor other = torch::zeros(2);
  EXPECT_ERROR(kInvalidArgument,
               "InputArchive: the state does not fit: x is s64[3] in the state and f32[2] here",
               part.read("x", other));
  EXPECT_FALSE(part.try_read("y", fresh));
  EXPECT_ERROR(kNotFound, "InputArchive: there is no such \"y\"; it has x, rate",
               part.read("y", fresh));
  EXPECT_FALSE(read.try_read("outer", part));
}

}  // namespace
