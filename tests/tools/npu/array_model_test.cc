#include "tools/npu/array_model.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "backend/npu/sim/cost.h"
#include "ir/support/str.h"
#include "tools/npu/layers.h"

namespace lazuli::npu {
namespace {

class Random {
 public:
  int64_t Number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  Matrix Values(int64_t rows, int64_t cols) {
    Matrix m{rows, cols, {}};
    for (int64_t i = 0; i < rows * cols; ++i) m.values.push_back(Number(-100, 100));
    return m;
  }

 private:
  std::mt19937 engine_{7};
};

Matrix Product(const Matrix& a, const Matrix& b) {
  Matrix c{a.rows, b.cols, std::vector<int64_t>(a.rows * b.cols)};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < b.cols; ++j) {
      for (int64_t k = 0; k < a.cols; ++k) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}

Matrix Part(const Matrix& m, int64_t r, int64_t rows, int64_t c, int64_t cols) {
  Matrix part{std::min(rows, m.rows - r), std::min(cols, m.cols - c), {}};
  for (int64_t i = 0; i < part.rows; ++i) {
    for (int64_t j = 0; j < part.cols; ++j) part.values.push_back(m(r + i, c + j));
  }
  return part;
}

// A tile of the dataflow: what lies still fills the array or less, T rows stream.
struct Tile {
  Matrix a, b;
};
Tile RandomTile(Dataflow dataflow, int64_t rows, int64_t cols, int64_t t, bool whole,
                Random& random) {
  const int64_t r = whole ? rows : random.Number(1, rows),
                c = whole ? cols : random.Number(1, cols);
  switch (dataflow) {
    case Dataflow::kWs:
      return {random.Values(t, r), random.Values(r, c)};
    case Dataflow::kOs:
      return {random.Values(r, t), random.Values(t, c)};
    case Dataflow::kIs:
      return {random.Values(c, r), random.Values(r, t)};
  }
  return {};
}

// Acceptance test 7.
TEST(ArrayModelTest, OneFoldTakesTheClocksOfTheClosedForm) {
  Random random;
  for (int round = 0; round < 60; ++round) {
    const int64_t rows = random.Number(1, 32), cols = random.Number(1, 32),
                  t = random.Number(1, 32);
    for (const Dataflow dataflow : {Dataflow::kWs, Dataflow::kOs, Dataflow::kIs}) {
      const Tile tile = RandomTile(dataflow, rows, cols, t, round % 2 == 0, random);
      ArrayModel model(dataflow, rows, cols, tile.a, tile.b);
      while (!model.done()) model.Step();
      const std::string what =
          Str("dataflow ", static_cast<int>(dataflow), ", ", rows, "x", cols, ", T ", t);
      EXPECT_EQ(model.result(), Product(tile.a, tile.b)) << what;
      EXPECT_EQ(model.clock(), FoldCycles(dataflow, rows, cols, t, true)) << what;
      if (dataflow == Dataflow::kOs) {
        EXPECT_EQ(model.last_product(), FoldCycles(dataflow, rows, cols, t, false)) << what;
      }
    }
  }
}

// SCALE-Sim's whole layer, fold by fold through the registers: its clocks, but for the drain of os.
TEST(ArrayModelTest, FoldsOfALayerAddUpToScaleSim) {
  Random random;
  for (int round = 0; round < 12; ++round) {
    const int64_t rows = random.Number(1, 8), cols = random.Number(1, 8);
    const int64_t m = random.Number(1, 20), n = random.Number(1, 20), k = random.Number(1, 20);
    const Matrix a = random.Values(m, k), b = random.Values(k, n);
    for (const char* name : {"ws", "os", "is"}) {
      Config config;
      ASSERT_TRUE(SetKeys(Str("mxu.rows=", rows, ",mxu.cols=", cols, ",mxu.dataflow=", name,
                              ",compat.scalesim=true"),
                          config)
                      .ok());
      const Dataflow dataflow = config.mxu.dataflow;
      const bool os = dataflow == Dataflow::kOs, is = dataflow == Dataflow::kIs;
      Matrix sum{m, n, std::vector<int64_t>(m * n)};
      int64_t clocks = 0;
      for (int64_t r = 0; r < (os ? m : k); r += rows) {
        for (int64_t c = 0; c < (is ? m : n); c += cols) {
          const int64_t row = os ? r : is ? c : 0, column = is ? 0 : c;
          ArrayModel model(dataflow, rows, cols,
                           os   ? Part(a, r, rows, 0, k)
                           : is ? Part(a, c, cols, r, rows)
                                : Part(a, 0, m, r, rows),
                           os   ? Part(b, 0, k, c, cols)
                           : is ? Part(b, r, rows, 0, n)
                                : Part(b, r, rows, c, cols));
          while (!model.done()) model.Step();
          clocks += os ? model.last_product() : model.clock();
          for (int64_t i = 0; i < model.result().rows; ++i) {
            for (int64_t j = 0; j < model.result().cols; ++j)
              sum(row + i, column + j) += model.result()(i, j);
          }
        }
      }
      EXPECT_EQ(sum, Product(a, b)) << name;
      EXPECT_EQ(clocks - 1, EstimateLayer(Layer::Product("g", m, n, k), config).cycles) << name;
    }
  }
}

}  // namespace
}  // namespace lazuli::npu
