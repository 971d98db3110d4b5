// What modules print, and the options that layers keep: as LibTorch has them.
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <lazuli/torch.h>

namespace torch = lazuli::torch_names;

namespace {

using namespace torch::nn;  // NOLINT(google-build-using-namespace): as such programs do

template <class M>
std::string Line(const M& module) {
  std::ostringstream text;
  text << module;
  constexpr std::string_view kPrefix = "torch::nn::";
  return text.str().starts_with(kPrefix) ? text.str().substr(kPrefix.size()) : text.str();
}

struct PrintedImpl : Module {
  PrintedImpl() {
    first = register_module("fc1", Linear(2, 3));
    body = register_module("seq", Sequential(Linear(1, 2), ReLU(), Functional(torch::relu)));
    list = register_module("ml", ModuleList(Linear(1, 1)));
  }
  Linear first{nullptr};
  Sequential body{nullptr};
  ModuleList list{nullptr};
};
TORCH_MODULE(Printed);

TEST(TorchPrintTest, ModulesPrintATree) {
  const Printed net;
  const std::string tree = R"(PrintedImpl(
  (fc1): torch::nn::Linear(in_features=2, out_features=3, bias=true)
  (seq): torch::nn::Sequential(
    (0): torch::nn::Linear(in_features=1, out_features=2, bias=true)
    (1): torch::nn::ReLU()
    (2): torch::nn::Functional()
  )
  (ml): torch::nn::ModuleList(
    (0): torch::nn::Linear(in_features=1, out_features=1, bias=true)
  )
))";
  EXPECT_EQ(Line(net), tree);
  EXPECT_EQ(Line(*net), tree);
  EXPECT_EQ(net->name(), "PrintedImpl");
  std::ostringstream alone;
  net->pretty_print(alone);
  EXPECT_EQ(alone.str(), "PrintedImpl");
  EXPECT_EQ(Line(ModuleDict()), "ModuleDict");
  EXPECT_EQ(Line(MSELoss()), "MSELoss()");
  EXPECT_EQ(Module("given").name(), "given");
}

TEST(TorchPrintTest, ConvolutionsPrintWhatIsNotUsual) {
  EXPECT_EQ(Line(Conv2d(1, 2, 3)), "Conv2d(1, 2, kernel_size=[3, 3], stride=[1, 1])");
  EXPECT_EQ(Line(Conv2d(Conv2dOptions(2, 4, {3, 5})
                            .stride(2)
                            .padding(1)
                            .dilation(2)
                            .groups(2)
                            .bias(false)
                            .padding_mode(torch::kReflect))),
            "Conv2d(2, 4, kernel_size=[3, 5], stride=[2, 2], padding=[1, 1], dilation=[2, 2], "
            "groups=2, bias=false, padding_mode=kReflect)");
  EXPECT_EQ(Line(Conv2d(Conv2dOptions(2, 4, 3).padding(torch::kSame))),
            "Conv2d(2, 4, kernel_size=[3, 3], stride=[1, 1], padding='same')");
  EXPECT_EQ(Line(Conv1d(Conv1dOptions(1, 2, 3).padding(1))),
            "Conv1d(1, 2, kernel_size=3, stride=1, padding=1)");
  EXPECT_EQ(Line(Conv3d(Conv3dOptions(1, 2, 3).padding({1, 1, 2}))),
            "Conv3d(1, 2, kernel_size=[3, 3, 3], stride=[1, 1, 1], padding=[1, 1, 2])");
  EXPECT_EQ(Line(ConvTranspose2d(ConvTranspose2dOptions(1, 2, 4).stride(2).padding(1).bias(false))),
            "ConvTranspose2d(1, 2, kernel_size=[4, 4], stride=[2, 2], padding=[1, 1], bias=false)");
  EXPECT_EQ(Line(ConvTranspose3d(1, 2, 3)),
            "ConvTranspose3d(1, 2, kernel_size=[3, 3, 3], stride=[1, 1, 1])");
}

TEST(TorchPrintTest, PoolingsPrintTheirWindows) {
  EXPECT_EQ(Line(MaxPool1d(2)),
            "MaxPool1d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=false)");
  EXPECT_EQ(Line(MaxPool2d(MaxPool2dOptions(3).stride(2).ceil_mode(true))),
            "MaxPool2d(kernel_size=[3, 3], stride=[2, 2], padding=[0, 0], dilation=[1, 1], "
            "ceil_mode=true)");
  EXPECT_EQ(Line(MaxPool3d(2)),
            "MaxPool3d(kernel_size=[2, 2, 2], stride=[2, 2, 2], padding=[0, 0, 0], "
            "dilation=[1, 1, 1], ceil_mode=false)");
  EXPECT_EQ(Line(AvgPool2d(2)), "AvgPool2d(kernel_size=[2, 2], stride=[2, 2], padding=[0, 0])");
  EXPECT_EQ(Line(AvgPool3d(2)),
            "AvgPool3d(kernel_size=[2, 2, 2], stride=[2, 2, 2], padding=[0, 0, 0])");
  EXPECT_EQ(Line(AdaptiveAvgPool1d(2)), "AdaptiveAvgPool1d(output_size=2)");
  EXPECT_EQ(Line(AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions({1, 2}))),
            "AdaptiveAvgPool2d(output_size=[1, 2])");
  EXPECT_EQ(Line(AdaptiveMaxPool3d(2)), "AdaptiveMaxPool3d(output_size=[2, 2, 2])");
  EXPECT_EQ(Line(LPPool1d(2, 5)),
            "LPPool1d(norm_type=2, kernel_size=5, stride=5, ceil_mode=false)");
  EXPECT_EQ(Line(LPPool2d(LPPool2dOptions(1, {3, 4}).stride({5, 6}).ceil_mode(true))),
            "LPPool2d(norm_type=1, kernel_size=[3, 4], stride=[5, 6], ceil_mode=true)");
  EXPECT_EQ(Line(LPPool3d(2, 3)),
            "LPPool3d(norm_type=2, kernel_size=[3, 3, 3], stride=[3, 3, 3], ceil_mode=false)");
  EXPECT_EQ(Line(MaxUnpool1d(5)), "MaxUnpool1d(kernel_size=5, stride=5, padding=0)");
  EXPECT_EQ(Line(MaxUnpool2d(MaxUnpool2dOptions({5, 6}).stride({3, 4}).padding({1, 2}))),
            "MaxUnpool2d(kernel_size=[5, 6], stride=[3, 4], padding=[1, 2])");
  EXPECT_EQ(Line(MaxUnpool3d(2)),
            "MaxUnpool3d(kernel_size=[2, 2, 2], stride=[2, 2, 2], padding=[0, 0, 0])");
  EXPECT_EQ(Line(FractionalMaxPool2d(FractionalMaxPool2dOptions(3).output_size(2))),
            "FractionalMaxPool2d()");
  EXPECT_EQ(Line(RReLU(RReLUOptions().lower(0.24).upper(0.42).inplace(true))),
            "RReLU(lower=0.24, upper=0.42, inplace=true)");
}

TEST(TorchPrintTest, OtherLayersPrintTheirOptions) {
  EXPECT_EQ(Line(BatchNorm2d(4)),
            "BatchNorm2d(4, eps=1e-05, momentum=0.1, affine=true, track_running_stats=true)");
  EXPECT_EQ(Line(LayerNorm(LayerNormOptions({4, 5}))),
            "LayerNorm([4, 5], eps=1e-05, elementwise_affine=true)");
  EXPECT_EQ(Line(GroupNorm(2, 4)), "GroupNorm(2, 4, eps=1e-05, affine=true)");
  EXPECT_EQ(Line(InstanceNorm2d(4)),
            "InstanceNorm2d(4, eps=1e-05, momentum=0.1, affine=false, track_running_stats=false)");
  EXPECT_EQ(Line(LocalResponseNorm(2)), "LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1)");
  EXPECT_EQ(Line(Embedding(10, 3)), "Embedding(num_embeddings=10, embedding_dim=3)");
  EXPECT_EQ(Line(Embedding(EmbeddingOptions(10, 3).padding_idx(0))),
            "Embedding(num_embeddings=10, embedding_dim=3, padding_idx=0)");
  EXPECT_EQ(Line(ReflectionPad2d(ReflectionPad2dOptions({1, 2, 3, 4}))),
            "ReflectionPad2d(padding=[1, 2, 3, 4])");
  EXPECT_EQ(Line(ConstantPad2d(1, 3.5)), "ConstantPad2d(padding=[1, 1, 1, 1], value=3.5)");
  EXPECT_EQ(Line(Unfold(UnfoldOptions({2, 3}))),
            "Unfold(kernel_size=[2, 3], dilation=[1, 1], padding=[0, 0], stride=[1, 1])");
  EXPECT_EQ(Line(Fold(FoldOptions({4, 5}, {2, 2}))),
            "Fold(output_size=[4, 5], kernel_size=[2, 2], dilation=[1, 1], padding=[0, 0], "
            "stride=[1, 1])");
  EXPECT_EQ(Line(Upsample(UpsampleOptions()
                              .scale_factor(std::vector<double>{2, 2})
                              .mode(torch::kBilinear)
                              .align_corners(true))),
            "Upsample(scale_factor=[2, 2], mode=kBilinear)");
  EXPECT_EQ(Line(Upsample(UpsampleOptions().size(std::vector<std::int64_t>{4, 4}))),
            "Upsample(size=[4, 4], mode=kNearest)");
  EXPECT_EQ(Line(PReLU()), "PReLU(num_parameters=1)");
  EXPECT_EQ(Line(Identity()), "Identity()");
  EXPECT_EQ(Line(Dropout()), "Dropout(p=0.5, inplace=false)");
  EXPECT_EQ(Line(Dropout2d(Dropout2dOptions(0.3).inplace(true))), "Dropout2d(p=0.3, inplace=true)");
  EXPECT_EQ(Line(Bilinear(1, 2, 3)),
            "Bilinear(in1_features=1, in2_features=2, out_features=3, bias=true)");
  EXPECT_EQ(Line(EmbeddingBag(10, 3)), "EmbeddingBag(num_embeddings=10, embedding_dim=3)");
  EXPECT_EQ(Line(EmbeddingBag(EmbeddingBagOptions(10, 3).mode(torch::kSum).padding_idx(1))),
            "EmbeddingBag(num_embeddings=10, embedding_dim=3, mode=kSum, padding_idx=1)");
  EXPECT_EQ(Line(CrossMapLRN2d(3)), "CrossMapLRN2d(3, alpha=0.0001, beta=0.75, k=1)");
  EXPECT_EQ(Line(CosineSimilarity()), "CosineSimilarity(dim=1, eps=1e-08)");
  EXPECT_EQ(Line(PairwiseDistance()), "PairwiseDistance(p=2, eps=1e-06, keepdim=false)");
  EXPECT_EQ(Line(ReLU(ReLUOptions(true))), "ReLU(inplace=true)");
  EXPECT_EQ(Line(GELU(GELUOptions().approximate("tanh"))), "GELU()");
  EXPECT_EQ(Line(LeakyReLU(LeakyReLUOptions().inplace(true))),
            "LeakyReLU(negative_slope=0.01, inplace=true)");
  EXPECT_EQ(Line(Hardtanh()), "Hardtanh(min_val=-1, max_val=1)");
  EXPECT_EQ(Line(Hardshrink()), "Hardshrink(0.5)");
  EXPECT_EQ(Line(Softmax(1)), "Softmax(dim=1)");
}

TEST(TorchPrintTest, LayersKeepTheirOptions) {
  EXPECT_EQ(Linear(2, 3)->options.in_features(), 2);
  EXPECT_FALSE(Linear(LinearOptions(2, 3).bias(false))->options.bias());
  const Conv2d conv(Conv2dOptions(1, 2, {3, 5}).stride(2));
  EXPECT_EQ(conv->options.kernel_size().width, 5);
  EXPECT_EQ(conv->options.stride().height, 2);
  EXPECT_EQ(MaxPool2d(2)->options.stride().width, 2);  // the kernel's
  EXPECT_EQ(Embedding(10, 3)->options.num_embeddings(), 10);
  EXPECT_EQ(BatchNorm1d(4)->options.num_features(), 4);
  EXPECT_EQ(
      CrossEntropyLoss(CrossEntropyLossOptions().label_smoothing(0.5))->options.label_smoothing(),
      0.5);
  const Sequential net(Linear(2, 3));
  EXPECT_EQ(net->at<LinearImpl>(0).options.out_features(), 3);
}

}  // namespace
