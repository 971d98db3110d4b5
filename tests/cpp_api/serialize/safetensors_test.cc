#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <unistd.h>

#include "lazuli/serialize.h"
#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

namespace fs = std::filesystem;
using Floats = std::vector<float>;
using testing::HasSubstr;

class SafetensorsTest : public testing::Test {
 protected:
  SafetensorsTest() { fs::create_directories(folder_); }
  ~SafetensorsTest() override { fs::remove_all(folder_); }
  std::string Path(const std::string& name = "x.safetensors") const { return folder_ / name; }

  // A file with this header and so many bytes of data.
  std::string Write(const std::string& header, std::size_t data, std::int64_t length = -1) const {
    std::ofstream out(Path(), std::ios::binary);
    const std::uint64_t size = length >= 0 ? static_cast<std::uint64_t>(length) : header.size();
    out.write(reinterpret_cast<const char*>(&size), 8);
    out << header << std::string(data, '\1');
    return Path();
  }
  std::string Refusal(const std::string& header, std::size_t data, std::int64_t length = -1) const {
    try {
      load_safetensors(Write(header, data, length));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      std::string text = error.what();
      const std::string start = Path() + " is damaged or not a safetensors file: ";
      EXPECT_EQ(text.substr(0, start.size()), start);
      return text.substr(start.size(), text.rfind(" (") - start.size());
    }
    return "nothing";
  }

  const fs::path folder_ =
      fs::temp_directory_path() / ("lazuli_safetensors." + std::to_string(getpid()));
};

TEST_F(SafetensorsTest, GivesBackWhatWasSaved) {
  StateDict state;
  state.metadata = {{"format", "pt"}, {"note", "\"quoted\" \xc3\xa9"}};
  state.tensors["floats"] = tensor({{1.5f, -2.0f}, {3.0f, 1e-30f}});
  state.tensors["bytes"] = tensor<std::uint8_t>({1, 2, 255});
  state.tensors["half"] = tensor({0.5f, 2.0f}).to(kBFloat16);
  state.tensors["flags"] = tensor({1.0f, 2.0f}) > 1.5;
  state.tensors["number"] = constant(7, kInt64);
  state.tensors["empty"] = zeros({0, 3});
  save_safetensors(state, Path());
  const StateDict loaded = load_safetensors(Path());
  EXPECT_EQ(loaded.metadata, state.metadata);
  ASSERT_EQ(loaded.tensors.size(), state.tensors.size());
  for (const auto& [name, t] : state.tensors) {
    SCOPED_TRACE(name);
    const Tensor& other = loaded.tensors.at(name);
    EXPECT_EQ(other.dtype(), t.dtype());
    EXPECT_EQ(other.sizes(), t.sizes());
    EXPECT_EQ(other.to_bytes(), t.to_bytes());
  }
}

TEST_F(SafetensorsTest, IsTheFormatsLayout) {
  StateDict state;
  state.tensors["a"] = tensor<std::int16_t>({258});
  save_safetensors(state, Path());
  std::ifstream in(Path(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(bytes.substr(8, 54), R"({"a":{"data_offsets":[0,2],"dtype":"I16","shape":[1]}})");
  EXPECT_EQ(bytes.substr(8 + length), std::string("\x02\x01"));
}

TEST_F(SafetensorsTest, ModulesAndOptimisersGoOnFromTheirFiles) {
  manual_seed(1);
  nn::Linear net(3, 2);
  optim::SGD opt(net.parameters(), {.lr = 0.5, .momentum = 0.9});
  const auto step = [](nn::Linear& n, optim::SGD& o) {
    o.zero_grad();
    sum(n(ones({1, 3}))).backward();
    o.step();
  };
  step(net, opt);
  nn::save(net, Path("net"));
  optim::save(opt, Path("opt"));
  nn::Linear other(3, 2);
  optim::SGD continued(other.parameters());
  nn::load(other, Path("net"));
  optim::load(continued, Path("opt"));
  EXPECT_EQ(continued.momentum_buffers()[0].name(), "weight.momentum_buffer");
  step(net, opt);
  step(other, continued);
  EXPECT_EQ(other.weight.to_vector<float>(), net.weight.to_vector<float>());
  EXPECT_EQ(other.bias.to_vector<float>(), net.bias.to_vector<float>());
}

TEST_F(SafetensorsTest, AFileIsReplacedWholeOrNotAtAll) {
  StateDict state;
  state.tensors["a"] = ones({2});
  save_safetensors(state, Path());
  state.tensors["a"] = ones({2}).to(DType::kC128);
  EXPECT_ERROR(kUnimplemented,
               "save_safetensors: a is c128, which the format has not; convert it by to()",
               save_safetensors(state, Path()));
  EXPECT_EQ(load_safetensors(Path()).tensors.at("a").to_vector<float>(), (Floats{1, 1}));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1)
      << "nothing is left behind";
  fs::create_directory(Path("folder"));
  state.tensors["a"] = ones({1});
  EXPECT_ERROR(kNotFound, "cannot write to " + Path("folder") + ": Is a directory",
               save_safetensors(state, Path("folder")));
  EXPECT_ERROR(kNotFound, "cannot write to nowhere/x: No such file or directory",
               save_safetensors(state, "nowhere/x"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
}

TEST_F(SafetensorsTest, LinksAndDevicesStayWhatTheyAre) {
  StateDict state;
  state.tensors["a"] = ones({2});
  save_safetensors(state, Path("first"));
  fs::create_symlink("first", Path("latest"));
  state.tensors["a"] = ones({2}) * 3;
  save_safetensors(state, Path("latest"));
  EXPECT_TRUE(fs::is_symlink(Path("latest")));
  EXPECT_EQ(load_safetensors(Path("first")).tensors.at("a").to_vector<float>(), (Floats{3, 3}));
  fs::create_symlink("/dev/null", Path("nothing"));
  save_safetensors(state, Path("nothing"));
  EXPECT_TRUE(fs::is_symlink(Path("nothing")));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 3);
}

TEST_F(SafetensorsTest, WhatCannotBeSavedIsRefused) {
  StateDict state;
  state.tensors["a"] = Tensor();
  EXPECT_ERROR(kInvalidArgument, "save_safetensors: 'a' is an undefined tensor",
               save_safetensors(state, Path()));
  state.tensors = {{"__metadata__", ones({1})}};
  EXPECT_ERROR(kInvalidArgument, "save_safetensors: '__metadata__' is not a name for a tensor",
               save_safetensors(state, Path()));
}

TEST_F(SafetensorsTest, MissingFilesAreErrors) {
  EXPECT_ERROR(kNotFound, "cannot read nowhere.safetensors",
               load_safetensors("nowhere.safetensors"));
  EXPECT_ERROR(kNotFound, "cannot read " + folder_.string(), load_safetensors(folder_));
}

TEST_F(SafetensorsTest, DamagedHeadersAreRefused) {
  std::ofstream(Path(), std::ios::binary) << "1234";
  EXPECT_ERROR(kInvalidArgument,
               Path() + " is damaged or not a safetensors file: it has 4 bytes, its length field 8",
               load_safetensors(Path()));
  EXPECT_EQ(Refusal("{}", 0, 100),
            "its header should have 100 bytes, the file has 2 after the length");
  EXPECT_THAT(Refusal("{}", 0, std::int64_t{1} << 62),
              HasSubstr("its header should have 46116860"));
  EXPECT_EQ(Refusal("{\"a\": ", 0), "its header is not JSON");
  EXPECT_EQ(Refusal("[1, 2]", 0), "its header is not a JSON object");
  EXPECT_EQ(Refusal(std::string(100'000, '['), 0), "its header is not JSON");
  EXPECT_EQ(Refusal(R"({"a": 1})", 0), "tensor 'a' is described by no object");
  EXPECT_EQ(Refusal(R"({"__metadata__": {"a": 1}})", 0), "its metadata 'a' is not text");
  EXPECT_EQ(Refusal(R"({"__metadata__": []})", 0), "its metadata is not an object");
}

// {"a": {...}} with these members.
std::string A(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a": {"dtype": ")" + dtype + R"(", "shape": )" + shape + R"(, "data_offsets": )" +
         offsets + "}}";
}

TEST_F(SafetensorsTest, DamagedTensorsAreRefused) {
  EXPECT_EQ(Refusal(A("F32", "[2]", "[0, 8]"), 8), "nothing");
  EXPECT_EQ(Refusal(A("F33", "[2]", "[0, 8]"), 8), "tensor 'a' has the unknown dtype 'F33'");
  EXPECT_EQ(Refusal(A("F32", "[2]", "[0, 8]"), 7),
            "tensor 'a' lies from byte 0 to 8 of 7 bytes of data");
  EXPECT_EQ(Refusal(A("F32", "[2]", "[8, 0]"), 8),
            "tensor 'a' lies from byte 8 to 0 of 8 bytes of data");
  EXPECT_EQ(Refusal(A("F32", "[3]", "[0, 8]"), 8),
            "tensor 'a' has 8 bytes, its dtype and shape need 12");
  EXPECT_EQ(Refusal(A("F32", "[2]", "[0, 8]"), 9), "there are 1 bytes after the last tensor");
  EXPECT_EQ(Refusal(A("F32", "[2]", "[4, 12]"), 12),
            "there is a hole of 4 bytes before tensor 'a'");
  EXPECT_EQ(Refusal(A("F32", "[-2]", "[0, 8]"), 8),
            "tensor 'a' has a shape that is not a list of sizes");
  EXPECT_EQ(Refusal(A("F32", "2", "[0, 8]"), 8), "tensor 'a' has no shape");
  EXPECT_EQ(Refusal(A("F32", "[2]", "[0, 8, 9]"), 8),
            "tensor 'a' has no data_offsets of two numbers");
  EXPECT_EQ(Refusal(A("F32", "[2]", "[-8, 0]"), 8),
            "tensor 'a' has no data_offsets of two numbers");
  EXPECT_EQ(Refusal(A("F32", "[4611686018427387904, 4611686018427387904]", "[0, 8]"), 8),
            "tensor 'a' is larger than memory can be");
  EXPECT_EQ(Refusal(R"({"a": {"shape": [], "data_offsets": [0, 4]}})", 4),
            "tensor 'a' has no dtype");
  const std::string both = R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}, )";
  EXPECT_EQ(Refusal(both + R"("b": {"dtype": "U8", "shape": [4], "data_offsets": [2, 6]}})", 6),
            "tensor 'b' overlaps another one");
  EXPECT_EQ(Refusal(both + R"("a": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]}})", 8),
            "its header has 'a' twice");
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // whose malloc ends the process
TEST_F(SafetensorsTest, AnArrayThatMemoryCannotHoldIsAnError) {
  constexpr std::uintmax_t kBytes = std::uintmax_t{1} << 47;  // all that a process can address
  const std::string bytes = std::to_string(kBytes);
  Write(
      R"({"a": {"dtype": "U8", "shape": [)" + bytes + R"(], "data_offsets": [0, )" + bytes + "]}}",
      0);
  // A file with a hole, where there is a file system that has such.
  const fs::path folder = fs::exists("/dev/shm") ? "/dev/shm" : folder_;
  const std::string path = folder / ("lazuli_large." + std::to_string(getpid()));
  std::error_code refused;
  fs::copy_file(Path(), path, refused);
  if (!refused) fs::resize_file(path, fs::file_size(path) + kBytes, refused);
  if (!refused) {
    try {
      load_safetensors(path);
      ADD_FAILURE() << "there was memory for it";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
      EXPECT_THAT(error.what(), HasSubstr("out of memory: " + path + " has an array of " + bytes));
      EXPECT_THAT(error.what(), HasSubstr("safetensors_test.cc"));
    }
  }
  fs::remove(path);
  if (refused) GTEST_SKIP() << "no file of that size can be made: " << refused.message();
}
#endif

}  // namespace
}  // namespace lazuli
