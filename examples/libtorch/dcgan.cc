// Two networks, in LibTorch's words: one draws digits from noise, the other tells them from MNIST's.
//
//   libtorch_dcgan [FOLDER [EPOCHS [BATCHES]]]     the folder of MNIST's four files, data/mnist by default
//
// Networks, optimisers and pictures are saved to the current folder after each epoch. Two lines are not LibTorch's:
// lazuli::mark_step(), where a step ends.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>

#include <lazuli/torch.h>

namespace torch = lazuli::torch_names;
namespace nn = torch::nn;

constexpr std::int64_t kNoiseSize = 100, kBatchSize = 64, kSamples = 10;

struct DCGANGeneratorImpl : nn::Module {
  explicit DCGANGeneratorImpl(std::int64_t noise_size)
      : conv1(nn::ConvTranspose2dOptions(noise_size, 256, 4).bias(false)),
        batch_norm1(256),
        conv2(nn::ConvTranspose2dOptions(256, 128, 3).stride(2).padding(1).bias(false)),
        batch_norm2(128),
        conv3(nn::ConvTranspose2dOptions(128, 64, 4).stride(2).padding(1).bias(false)),
        batch_norm3(64),
        conv4(nn::ConvTranspose2dOptions(64, 1, 4).stride(2).padding(1).bias(false)) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("conv3", conv3);
    register_module("conv4", conv4);
    register_module("batch_norm1", batch_norm1);
    register_module("batch_norm2", batch_norm2);
    register_module("batch_norm3", batch_norm3);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(batch_norm1(conv1(x)));
    x = torch::relu(batch_norm2(conv2(x)));
    x = torch::relu(batch_norm3(conv3(x)));
    return torch::tanh(conv4(x));
  }

  nn::ConvTranspose2d conv1;
  nn::BatchNorm2d batch_norm1;
  nn::ConvTranspose2d conv2;
  nn::BatchNorm2d batch_norm2;
  nn::ConvTranspose2d conv3;
  nn::BatchNorm2d batch_norm3;
  nn::ConvTranspose2d conv4;
};
TORCH_MODULE(DCGANGenerator);

nn::Sequential MakeDiscriminator() {
  return nn::Sequential(
      nn::Conv2d(nn::Conv2dOptions(1, 64, 4).stride(2).padding(1).bias(false)),
      nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
      nn::Conv2d(nn::Conv2dOptions(64, 128, 4).stride(2).padding(1).bias(false)),
      nn::BatchNorm2d(128), nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
      nn::Conv2d(nn::Conv2dOptions(128, 256, 4).stride(2).padding(1).bias(false)),
      nn::BatchNorm2d(256), nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
      nn::Conv2d(nn::Conv2dOptions(256, 1, 3).stride(1).padding(0).bias(false)), nn::Sigmoid());
}

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "data/mnist";
  const long epochs = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 30;
  const long batches = argc > 3 ? std::strtol(argv[3], nullptr, 10) : 1 << 30;
  torch::manual_seed(0);
  torch::Device device(torch::kCPU);
  if (torch::cuda::is_available()) device = torch::Device(torch::kCUDA);

  DCGANGenerator generator(kNoiseSize);
  generator->to(device);
  nn::Sequential discriminator = MakeDiscriminator();
  discriminator->to(device);

  // Pictures in [-1, 1], as tanh gives them.
  auto dataset = torch::data::datasets::MNIST(folder)
                     .map(torch::data::transforms::Normalize<>(0.5, 0.5))
                     .map(torch::data::transforms::Stack<>());
  auto data_loader = torch::data::make_data_loader(
      std::move(dataset),
      torch::data::DataLoaderOptions().batch_size(kBatchSize).workers(2).drop_last(true));

  torch::optim::Adam generator_optimizer(
      generator->parameters(), torch::optim::AdamOptions(2e-4).betas(std::make_tuple(0.5, 0.5)));
  torch::optim::Adam discriminator_optimizer(
      discriminator->parameters(),
      torch::optim::AdamOptions(2e-4).betas(std::make_tuple(0.5, 0.5)));

  for (long epoch = 1; epoch <= epochs; ++epoch) {
    long batch_index = 0;
    for (torch::data::Example<>& batch : *data_loader) {
      // The one that tells: MNIST's are nearly 1, those that are drawn 0.
      discriminator->zero_grad();
      torch::Tensor real_images = batch.data.to(device);
      torch::Tensor real_labels = torch::empty(batch.data.size(0), device).uniform_(0.8, 1.0);
      torch::Tensor real_output = discriminator->forward(real_images).reshape(real_labels.sizes());
      torch::Tensor d_loss_real = torch::binary_cross_entropy(real_output, real_labels);
      d_loss_real.backward();

      torch::Tensor noise = torch::randn({batch.data.size(0), kNoiseSize, 1, 1}, device);
      torch::Tensor fake_images = generator->forward(noise);
      torch::Tensor fake_labels = torch::zeros(batch.data.size(0), device);
      torch::Tensor fake_output =
          discriminator->forward(fake_images.detach()).reshape(fake_labels.sizes());
      torch::Tensor d_loss_fake = torch::binary_cross_entropy(fake_output, fake_labels);
      d_loss_fake.backward();
      torch::Tensor d_loss = d_loss_real + d_loss_fake;
      discriminator_optimizer.step();

      // The one that draws: what it drew should pass for MNIST's.
      generator->zero_grad();
      fake_labels.fill_(1);
      fake_output = discriminator->forward(fake_images).reshape(fake_labels.sizes());
      torch::Tensor g_loss = torch::binary_cross_entropy(fake_output, fake_labels);
      g_loss.backward();
      generator_optimizer.step();
      lazuli::mark_step();

      ++batch_index;
      if (batch_index % 10 == 0)
        std::printf("[%2ld/%2ld][%3ld] D_loss %.4f G_loss %.4f\n", epoch, epochs, batch_index,
                    d_loss.item<float>(), g_loss.item<float>());
      if (batch_index == batches) break;
    }

    torch::NoGradGuard no_grad;
    torch::Tensor samples = generator->forward(torch::randn({kSamples, kNoiseSize, 1, 1}, device));
    torch::save((samples + 1.0) / 2.0, torch::str("dcgan-sample-", epoch, ".pt"));
    torch::save(generator, "generator-checkpoint.pt");
    torch::save(generator_optimizer, "generator-optimizer-checkpoint.pt");
    torch::save(discriminator, "discriminator-checkpoint.pt");
    torch::save(discriminator_optimizer, "discriminator-optimizer-checkpoint.pt");
    std::printf("-> checkpoint %ld\n", epoch);
  }

  // What was saved is what comes back.
  DCGANGenerator restored(kNoiseSize);
  torch::load(restored, "generator-checkpoint.pt");
  torch::load(generator_optimizer, "generator-optimizer-checkpoint.pt");
  torch::NoGradGuard no_grad;
  generator->eval();
  restored->eval();
  torch::Tensor noise = torch::randn({2, kNoiseSize, 1, 1}, device);
  std::printf("restored: %s\n", torch::allclose(generator->forward(noise), restored->forward(noise))
                                    ? "the same"
                                    : "another");
}
