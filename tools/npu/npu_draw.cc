// npu-draw: pictures of the simulated NPU, as SVG on standard output.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/status.h"
#include "ir/support/str.h"
#include "tools/npu/array_model.h"
#include "tools/npu/trace_picture.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

using ir::Str;
using npu::ArrayModel;
using npu::Dataflow;
using npu::Matrix;

constexpr std::string_view kUsage = R"(usage: npu-draw array [options]
       npu-draw trace PROGRAM.s [options]
array: one fold of a small array, a frame for each clock, as the register-level model runs it.
trace: what the units do while a program runs on zeros; the same as npu-run's trace, without a viewer.

  --dataflow=ws|os|is     what stays in the array (ws)
  --rows=N, --cols=N      its size, 1 to 8 (3)
  --stream=N              rows that stream through it, 1 to 16 (4)
  --set=KEY=VALUE,...     keys of the machine that runs the program
  --to=CYCLE              draw only what begins before it
  --help                  print this
  --help-env              print the environment variables that it reads
)";

// One colour for each row of the stream.
constexpr std::string_view kColours[] = {"#a8d5ff", "#ffd6a5", "#caffbf", "#ffadc6",
                                         "#d0bfff", "#fdffb6", "#9bf6ff", "#e0c9a6"};
constexpr std::string_view kEmpty = "#f4f4f4", kLoading = "#dddddd";
constexpr int kPeWidth = 74, kPeHeight = 46, kGap = 34, kPerRow = 4;

std::string_view Colour(int64_t tag) {
  return kColours[static_cast<std::size_t>(tag) % std::size(kColours)];
}

std::string Text(int64_t x, int64_t y, std::string_view text, std::string_view more = "") {
  return Str("<text x=\"", x, "\" y=\"", y, "\"", more, ">", text, "</text>\n");
}

// What a PE holds, in the letters of the operation: element (row, column) of a, w and y.
class Frames {
 public:
  Frames(Dataflow dataflow, int64_t rows, int64_t cols, int64_t length)
      : dataflow_(dataflow), rows_(rows), cols_(cols), length_(length) {}

  std::string Pe(const ArrayModel& model, int64_t r, int64_t c, int64_t x, int64_t y) const {
    const ArrayModel::Pe& pe = model.pe(r, c);
    const bool streaming = pe.right.tag >= 0;
    const std::string_view colour = streaming ? Colour(pe.right.tag)
                                    : model.phase() == ArrayModel::Phase::kLoad && pe.still.tag >= 0
                                        ? kLoading
                                        : kEmpty;
    std::string svg = Str("<rect x=\"", x, "\" y=\"", y, "\" width=\"", kPeWidth, "\" height=\"",
                          kPeHeight, "\" fill=\"", colour, "\" stroke=\"#555\"/>\n");
    if (dataflow_ == Dataflow::kOs) {
      if (streaming) svg += Text(x + 5, y + 16, Str("a", r, pe.right.tag, " w", pe.right.tag, c));
      if (pe.still.tag >= 0) svg += Text(x + 5, y + 38, Str("y", pe.still.tag, c, Progress(pe)));
      return svg;
    }
    const bool is = dataflow_ == Dataflow::kIs;
    if (pe.still.tag >= 0)
      svg += Text(x + 5, y + 16, is ? Str("a", c, pe.still.tag) : Str("w", pe.still.tag, c));
    if (!streaming) return svg;
    const int64_t t = pe.right.tag;
    svg += Text(x + 40, y + 16, is ? Str("w", r, t) : Str("a", t, r));
    svg += Text(x + 5, y + 38, Str(is ? Str("y", c, t) : Str("y", t, c), " ", r + 1, "/", rows_));
    return svg;
  }

  // The results that have left the array below in this clock, since `before`.
  std::string Results(const ArrayModel& before, const ArrayModel& model, int64_t x,
                      int64_t y) const {
    std::string svg;
    for (int64_t c = 0; c < cols_; ++c) {
      const ArrayModel::Pe& last = model.pe(rows_ - 1, c);
      const ArrayModel::Pe& was = before.pe(rows_ - 1, c);
      std::string name;
      if (dataflow_ == Dataflow::kOs) {
        if (was.products == length_ && was.still.tag >= 0) name = Str("y", was.still.tag, c);
      } else if (last.down.tag >= 0) {
        name = dataflow_ == Dataflow::kIs ? Str("y", c, last.down.tag) : Str("y", last.down.tag, c);
      }
      if (!name.empty())
        svg += Text(x + c * kPeWidth + 14, y + rows_ * kPeHeight + 15, Str("&#8595; ", name),
                    " font-weight=\"bold\"");
    }
    return svg;
  }

 private:
  std::string Progress(const ArrayModel::Pe& pe) const {
    return pe.products < length_ ? Str(" ", pe.products, "/", length_) : std::string();
  }

  Dataflow dataflow_;
  int64_t rows_, cols_, length_;
};

std::string_view PhaseText(const ArrayModel& before, const ArrayModel& model, Dataflow dataflow) {
  if (before.phase() == ArrayModel::Phase::kLoad)
    return dataflow == Dataflow::kIs ? "inputs load" : "weights load";
  return model.last_product() == model.clock() ? "" : "results leave";
}

std::string DrawArray(Dataflow dataflow, int64_t rows, int64_t cols, int64_t length) {
  const auto zeros = [](int64_t r, int64_t c) {
    return Matrix{r, c, std::vector<int64_t>(static_cast<std::size_t>(r * c))};
  };
  ArrayModel model =
      dataflow == Dataflow::kWs
          ? ArrayModel(dataflow, rows, cols, zeros(length, rows), zeros(rows, cols))
      : dataflow == Dataflow::kIs
          ? ArrayModel(dataflow, rows, cols, zeros(cols, rows), zeros(rows, length))
          : ArrayModel(dataflow, rows, cols, zeros(rows, length), zeros(length, cols));
  const Frames frames(dataflow, rows, cols, length);
  const int64_t width = cols * kPeWidth + kGap, height = rows * kPeHeight + kGap + 24;
  std::string body;
  int64_t count = 0;
  while (!model.done()) {
    const ArrayModel before = model;
    model.Step();
    const int64_t x = kGap / 2 + count % kPerRow * width;
    const int64_t y = 30 + count / kPerRow * height;
    body += Text(x, y - 8, Str("clock ", model.clock(), "  ", PhaseText(before, model, dataflow)),
                 " fill=\"#333\" font-weight=\"bold\"");
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c)
        body += frames.Pe(model, r, c, x + c * kPeWidth, y + r * kPeHeight);
    }
    body += frames.Results(before, model, x, y);
    ++count;
  }
  const int64_t columns = std::min<int64_t>(count, kPerRow);
  const int64_t lines = (count + kPerRow - 1) / kPerRow;
  return Str("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", columns * width, "\" height=\"",
             lines * height + 10, "\" font-family=\"monospace\" font-size=\"12\">\n",
             "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n", body, "</svg>\n");
}

absl::StatusOr<int64_t> Size(std::string_view option, std::string_view text, int64_t most) {
  LAZULI_ASSIGN_OR_RETURN(const int64_t value, ParseInteger(option, text));
  if (value < 1 || value > most)
    return ir::InvalidArgument(option, "=", value, ": it is 1 to ", most);
  return value;
}

absl::Status Run(const std::vector<std::string_view>& arguments) {
  int64_t rows = 3, cols = 3, length = 4;
  Dataflow dataflow = Dataflow::kWs;
  int64_t to = INT64_MAX;
  std::string what, program, set, value;
  for (const std::string_view argument : arguments) {
    if (argument == "--help") {
      std::fputs(std::string(kUsage).c_str(), stdout);
      return absl::OkStatus();
    }
    if (TakeValue(argument, "--rows", &value)) {
      LAZULI_ASSIGN_OR_RETURN(rows, Size("--rows", value, 8));
    } else if (TakeValue(argument, "--cols", &value)) {
      LAZULI_ASSIGN_OR_RETURN(cols, Size("--cols", value, 8));
    } else if (TakeValue(argument, "--stream", &value)) {
      LAZULI_ASSIGN_OR_RETURN(length, Size("--stream", value, 16));
    } else if (TakeValue(argument, "--dataflow", &value)) {
      if (value != "ws" && value != "os" && value != "is")
        return ir::InvalidArgument("--dataflow=", value, ": it is ws, os or is");
      dataflow = value == "ws" ? Dataflow::kWs : value == "os" ? Dataflow::kOs : Dataflow::kIs;
    } else if (TakeValue(argument, "--to", &value)) {
      LAZULI_ASSIGN_OR_RETURN(to, Size("--to", value, INT64_MAX));
    } else if (TakeValue(argument, "--set", &set)) {
      continue;
    } else if (argument.starts_with("-") || !program.empty()) {
      return ir::InvalidArgument("unknown option ", argument, "; --help lists them");
    } else {
      (what.empty() ? what : program) = argument;
    }
  }
  if (what == "trace" && !program.empty()) {
    LAZULI_ASSIGN_OR_RETURN(const std::string svg, DrawTrace(program, set, to));
    std::fputs(svg.c_str(), stdout);
    return absl::OkStatus();
  }
  if (what != "array" || !program.empty())
    return ir::InvalidArgument(
        "there are npu-draw array and npu-draw trace PROGRAM.s; --help lists the options");
  std::fputs(DrawArray(dataflow, rows, cols, length).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace
}  // namespace lazuli::tools

int main(int argc, char** argv) {
  return lazuli::tools::ToolMain("npu-draw", lazuli::tools::Run, argc, argv);
}
