#include "tools/npu/layers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "backend/npu/sim/cost.h"
#include "ir/support/status.h"
#include "ir/support/str.h"
#include "tools/npu/scalesim.h"

namespace lazuli::npu {
namespace {

constexpr int64_t kMostChannels = 65536;  // of a depthwise layer

std::string_view TrimField(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Fields of a line; a comma at its end begins no field.
std::vector<std::string_view> Fields(std::string_view line) {
  std::vector<std::string_view> fields;
  while (!line.empty()) {
    const std::size_t comma = std::min(line.find(','), line.size());
    fields.push_back(TrimField(line.substr(0, comma)));
    line.remove_prefix(std::min(comma + 1, line.size()));
  }
  return fields;
}

absl::StatusOr<int64_t> Positive(std::string_view what, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return InvalidArgument(what, " is '", text, "': it is a whole number");
  if (value < 1 || value > std::numeric_limits<int32_t>::max())
    return InvalidArgument(what, " is ", value, ": it is 1 to 2147483647");
  return value;
}

// "N:M", which says how sparse the weights are.
bool IsRatio(std::string_view field) {
  return field.find(':') != std::string_view::npos &&
         field.find_first_not_of("0123456789: ") == std::string_view::npos;
}

// What all counts and the percentages' numbers, up to 2^53, can hold.
absl::Status CheckSize(const Layer& layer) {
  const double window = static_cast<double>(layer.filter_height) *
                        static_cast<double>(layer.filter_width) *
                        static_cast<double>(layer.channels);
  const double windows =
      static_cast<double>(layer.ofmap_height() + 1) * static_cast<double>(layer.ofmap_width() + 1);
  const double macs = window * windows * static_cast<double>(layer.filters);
  const double inputs = static_cast<double>(layer.ifmap_height) *
                        static_cast<double>(layer.ifmap_width) *
                        static_cast<double>(layer.channels);
  if (macs > 0x1p46 || inputs > 0x1p31)
    return InvalidArgument("layer '", layer.name,
                           "' is too large: more than 2^46 products or 2^31 ", "inputs");
  return absl::OkStatus();
}

absl::StatusOr<Layer> ParseLayer(const std::vector<std::string_view>& fields) {
  constexpr std::string_view kProduct[] = {"M", "N", "K"};
  constexpr std::string_view kConvolution[] = {"image height", "image width",  "filter height",
                                               "filter width", "channels",     "filters",
                                               "stride",       "stride across"};
  std::vector<int64_t> values;
  const bool product = fields.size() == 4;
  if (!product && fields.size() != 8 && fields.size() != 9)
    return InvalidArgument(
        "a layer is a name and 3 numbers (M, N, K), or a name and 7 or 8 numbers "
        "(a convolution); here are ",
        fields.size() - 1);
  for (std::size_t i = 1; i < fields.size(); ++i) {
    LAZULI_ASSIGN_OR_RETURN(const int64_t value,
                            Positive(product ? kProduct[i - 1] : kConvolution[i - 1], fields[i]));
    values.push_back(value);
  }
  const std::string name(fields[0]);
  Layer layer = product ? Layer::Product(name, values[0], values[1], values[2])
                        : Layer{.name = name,
                                .ifmap_height = values[0],
                                .ifmap_width = values[1],
                                .filter_height = values[2],
                                .filter_width = values[3],
                                .channels = values[4],
                                .filters = values[5],
                                .stride_height = values[6],
                                .stride_width = values.size() > 7 ? values[7] : values[6]};
  if (layer.filter_height > layer.ifmap_height || layer.filter_width > layer.ifmap_width)
    return InvalidArgument("the filter of layer '", name, "' is larger than its image");
  LAZULI_RETURN_IF_ERROR(CheckSize(layer));
  return layer;
}

// Folds of the array in M, or what takes its place, of at most `limit` rows each, as equal as can
// be.
struct Blocks {
  Blocks(int64_t size, int64_t limit)
      : count(CeilDiv(size, limit)),
        large(CeilDiv(size, count)),
        larges(size - count * (large - 1)) {}
  // The sum of f over the blocks.
  template <class F>
  int64_t Sum(const F& f) const {
    return larges * f(large) + (count - larges) * (large > 1 ? f(large - 1) : 0);
  }
  int64_t count, large, larges;
};

// Clocks of the array with its data in the scratchpad. Rows stream past what lies still; the next
// tile is loaded under them, if there is a plane for it.
int64_t ArrayCycles(const LayerReport& r, const Config& config) {
  const auto& mxu = config.mxu;
  const bool is = mxu.dataflow == Dataflow::kIs;
  if (mxu.dataflow == Dataflow::kOs) {
    return CeilDiv(r.m, mxu.rows) * CeilDiv(r.n, mxu.cols) *
           FoldCycles(Dataflow::kOs, mxu.rows, mxu.cols, r.k, mxu.os_drain);
  }
  const int64_t load = CeilDiv(mxu.rows, mxu.ldw_rows_per_clk);
  const int64_t fill = mxu.rows + mxu.cols - 2;
  const Blocks blocks(is ? r.n : r.m, config.acc.rows);
  const int64_t tiles = CeilDiv(r.k, mxu.rows) * CeilDiv(is ? r.m : r.n, mxu.cols);
  if (mxu.shadow_planes == 0)
    return tiles * blocks.Sum([&](int64_t rows) { return load + rows + fill; });
  const int64_t last = blocks.larges < blocks.count ? blocks.large - 1 : blocks.large;
  return load + tiles * blocks.Sum([&](int64_t rows) { return std::max(rows, load); }) -
         std::max(last, load) + last + fill;
}

void CountSram(LayerReport& r, const Config& config) {
  const auto& mxu = config.mxu;
  r.sram_i = r.m * r.k;
  r.sram_f = r.k * r.n;
  r.sram_o = r.m * r.n;
  switch (mxu.dataflow) {
    case Dataflow::kOs:
      r.sram_i *= CeilDiv(r.n, mxu.cols);
      r.sram_f *= CeilDiv(r.m, mxu.rows);
      break;
    case Dataflow::kWs:
      r.sram_i *= CeilDiv(r.n, mxu.cols);
      r.sram_f *= CeilDiv(r.m, config.acc.rows);
      break;
    case Dataflow::kIs:
      r.sram_i *= CeilDiv(r.n, config.acc.rows);
      r.sram_f *= CeilDiv(r.m, mxu.cols);
      break;
  }
}

// Pixels of an image that some window reads.
int64_t Touched(int64_t image, int64_t filter, int64_t stride, int64_t windows) {
  const int64_t span = (windows - 1) * stride + filter;
  return std::min({image, span, windows * filter});
}

// What crosses the DRAM: everything once if inputs or weights fit into the scratchpad beside tiles
// of the others, in two buffers each; else blocks of rows or of columns, whichever makes less.
void CountDram(const Layer& layer, LayerReport& r, const Config& config) {
  const int64_t inputs =
      Touched(layer.ifmap_height, layer.filter_height, layer.stride_height, layer.ofmap_height()) *
      Touched(layer.ifmap_width, layer.filter_width, layer.stride_width, layer.ofmap_width()) *
      layer.channels;
  const int64_t weights = r.k * r.n, spm = config.spm_bytes();
  const auto& mxu = config.mxu;
  r.dram_i = inputs;
  r.dram_f = weights;
  r.dram_o = r.m * r.n;
  const int64_t tiles = 2 * mxu.rows * mxu.cols + 2 * std::min(r.m, config.acc.rows) * mxu.cols;
  if (inputs + tiles <= spm || weights + tiles + 2 * mxu.rows * r.k <= spm) return;
  // Inputs of `rows` rows stay while all weights pass, or weights of `columns` columns while all
  // inputs do; halves of the scratchpad alternate. Windows of neighbouring blocks share rows of the
  // image.
  const int64_t per_row = CeilDiv(inputs, r.m) + mxu.cols, per_column = r.k + mxu.rows;
  const int64_t rows = std::clamp<int64_t>((spm - 2 * mxu.rows * mxu.cols) / (2 * per_row), 1, r.m);
  const int64_t columns = std::clamp<int64_t>(spm / (2 * per_column), 1, r.n);
  const int64_t row_blocks = CeilDiv(r.m, rows), column_blocks = CeilDiv(r.n, columns);
  const int64_t halo = std::max<int64_t>(layer.filter_height - layer.stride_height, 0) *
                       layer.ifmap_width * layer.channels;
  const int64_t by_rows = inputs + (row_blocks - 1) * halo + weights * row_blocks;
  const int64_t by_columns = inputs * column_blocks + weights;
  if (by_rows <= by_columns) {
    r.dram_i = inputs + (row_blocks - 1) * halo;
    r.dram_f = weights * row_blocks;
  } else {
    r.dram_i = inputs * column_blocks;
  }
}

// The DRAM works beside the array, but for the first tiles and the last results.
void AddDramTime(LayerReport& r, const Config& config) {
  const auto& mxu = config.mxu;
  const double rate = BytesPerCycle(config, config.dram.gbs);
  const auto clocks = [&](int64_t bytes) {
    return static_cast<int64_t>(std::ceil(static_cast<double>(bytes) / rate));
  };
  const int64_t latency = config.dma.issue + CyclesOf(config, config.dram.latency_ns);
  const int64_t rows = std::min(r.m, config.acc.rows);
  const int64_t first = std::min(r.dram_i, rows * std::min(r.k, mxu.rows)) +
                        std::min(r.dram_f, std::min(r.k, mxu.rows) * std::min(r.n, mxu.cols));
  const int64_t last = rows * std::min(r.n, mxu.cols);
  const int64_t between = clocks(r.dram_i + r.dram_f + r.dram_o - first - last);
  r.stall = std::max<int64_t>(0, between - r.cycles);
  r.cycles_incl_prefetch = latency + clocks(first) + r.cycles + r.stall + rows + mxu.out_latency +
                           clocks(last) + latency;
}

// What a line of the report consists of.
struct Column {
  enum Kind : uint8_t { kName, kSize, kCount, kPercent, kEnergy };
  std::string_view name;
  Kind kind;
  int64_t LayerReport::* count = nullptr;
  double LayerReport::* percent = nullptr;
};
constexpr Column kColumns[] = {
    {"layer", Column::kName},
    {"M", Column::kSize, &LayerReport::m},
    {"N", Column::kSize, &LayerReport::n},
    {"K", Column::kSize, &LayerReport::k},
    {"macs", Column::kCount, &LayerReport::macs},
    {"cycles", Column::kCount, &LayerReport::cycles},
    {"cycles_incl_prefetch", Column::kCount, &LayerReport::cycles_incl_prefetch},
    {"stall", Column::kCount, &LayerReport::stall},
    {"overall_util", Column::kPercent, nullptr, &LayerReport::overall_util},
    {"map_eff", Column::kPercent, nullptr, &LayerReport::map_eff},
    {"comp_util", Column::kPercent, nullptr, &LayerReport::comp_util},
    {"sram_i", Column::kCount, &LayerReport::sram_i},
    {"sram_f", Column::kCount, &LayerReport::sram_f},
    {"sram_o", Column::kCount, &LayerReport::sram_o},
    {"dram_i", Column::kCount, &LayerReport::dram_i},
    {"dram_f", Column::kCount, &LayerReport::dram_f},
    {"dram_o", Column::kCount, &LayerReport::dram_o},
    {"energy_uj", Column::kEnergy},
};

const Column* FindColumn(std::string_view name) {
  for (const Column& column : kColumns) {
    if (column.name == name) return &column;
  }
  return nullptr;
}

std::string ColumnNames() {
  std::vector<std::string_view> names;
  for (const Column& column : kColumns) names.push_back(column.name);
  return Join(names, ", ");
}

std::string Heading(const Column& column, const Config& config) {
  if (column.kind != Column::kEnergy) return std::string(column.name);
  return Str(column.name, "(", EnergyTableOf(config).name, ")");
}

double Microjoules(const LayerReport& r, const Config& config) {
  return EnergyOf(ActivityOf(r, config), config).joules * 1e6;
}

std::string Fixed(double value) {
  const auto hundredths = static_cast<int64_t>(std::llround(value * 100));
  const std::string cents = Str(100 + hundredths % 100);
  return Str(hundredths / 100, ".", cents.substr(1));
}

std::string Cell(const Column& column, const std::string& name, const LayerReport& report,
                 const Config& config, bool rounded, bool total) {
  const auto real = [rounded](double value) { return rounded ? Fixed(value) : Str(value); };
  switch (column.kind) {
    case Column::kName:
      return name;
    case Column::kSize:
      return total ? "" : Str(report.*column.count);
    case Column::kCount:
      return Str(report.*column.count);
    case Column::kPercent:
      return total && column.percent != &LayerReport::overall_util ? ""
                                                                   : real(report.*column.percent);
    case Column::kEnergy:
      return total ? "" : real(Microjoules(report, config));
  }
  return "";
}

// Names to the left, numbers to the right.
std::string Aligned(const std::vector<std::vector<std::string>>& lines) {
  std::string text;
  for (const auto& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) {
      std::size_t width = 0;
      for (const auto& other : lines) width = std::max(width, other[c].size());
      const std::string space(width - line[c].size(), ' ');
      text += c == 0 ? line[c] + space : "  " + space + line[c];
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

}  // namespace

Layer Layer::Product(std::string name, int64_t m, int64_t n, int64_t k) {
  return {.name = std::move(name),
          .ifmap_height = m,
          .ifmap_width = k,
          .filter_height = 1,
          .filter_width = k,
          .channels = 1,
          .filters = n};
}

absl::StatusOr<std::vector<Layer>> ParseTopology(std::string_view text, std::string_view file) {
  std::vector<Layer> layers;
  for (int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = TrimField(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (number == 1 || line.empty()) continue;
    std::vector<std::string_view> fields = Fields(line);
    if (fields.size() > 4 && IsRatio(fields.back())) fields.pop_back();
    absl::StatusOr<Layer> layer = ParseLayer(fields);
    if (!layer.ok()) return Prefixed(layer.status(), Str(file, ":", number, ": "));
    if (fields.size() == 4 || layer->name.find("DP") == std::string::npos) {
      layers.push_back(*std::move(layer));
      continue;
    }
    const int64_t channels = std::exchange(layer->channels, 1);
    if (channels > kMostChannels)
      return InvalidArgument(file, ":", number, ": layer '", layer->name, "' has ", channels,
                             " channels, each a layer: at most ", kMostChannels);
    for (int64_t channel = 0; channel < channels; ++channel) {
      layers.push_back(*layer);
      layers.back().name += Str("Channel_", channel);
    }
  }
  if (layers.empty())
    return InvalidArgument(file,
                           ": no layers; the first line is a heading, each other one a layer");
  return layers;
}

LayerReport EstimateLayer(const Layer& layer, const Config& config) {
  if (config.compat.scalesim) return ScaleSimLayer(layer, config);
  const auto& mxu = config.mxu;
  LayerReport r{
      .m = layer.ofmap_height() * layer.ofmap_width(), .n = layer.filters, .k = layer.window()};
  r.macs = r.m * r.n * r.k;
  r.cycles = ArrayCycles(r, config);
  const bool os = mxu.dataflow == Dataflow::kOs;
  const int64_t across = mxu.dataflow == Dataflow::kIs ? r.m : r.n, down = os ? r.m : r.k;
  r.overall_util = 100 * static_cast<double>(r.macs) /
                   (static_cast<double>(r.cycles) * static_cast<double>(mxu.rows * mxu.cols));
  r.map_eff = 100 * static_cast<double>(down * across) /
              static_cast<double>(CeilDiv(down, mxu.rows) * mxu.rows * CeilDiv(across, mxu.cols) *
                                  mxu.cols);
  r.comp_util = 100 * r.overall_util / r.map_eff;
  CountSram(r, config);
  CountDram(layer, r, config);
  AddDramTime(r, config);
  return r;
}

Activity ActivityOf(const LayerReport& r, const Config& config) {
  return {.cycles = r.cycles_incl_prefetch,
          .macs_int8 = r.macs,
          .acc_words = 2 * r.m * r.n * CeilDiv(r.k, config.mxu.rows),
          .spm_bytes = r.sram_i + r.sram_f + r.sram_o,
          .dram_bytes = r.dram_i + r.dram_f + r.dram_o};
}

absl::StatusOr<std::string> LayersText(const std::vector<Layer>& layers, const Config& config,
                                       const LayersFormat& format) {
  std::vector<const Column*> columns;
  for (std::string_view rest = format.columns; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const Column* column = FindColumn(rest.substr(0, comma));
    if (column == nullptr)
      return InvalidArgument("there is no column ", rest.substr(0, comma), "; there are ",
                             ColumnNames());
    columns.push_back(column);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (columns.empty()) {
    for (const Column& column : kColumns) {
      if (column.kind != Column::kEnergy) columns.push_back(&column);
    }
  }
  std::vector<std::vector<std::string>> lines(1);
  for (const Column* column : columns) lines[0].push_back(Heading(*column, config));
  const auto add = [&](const std::string& name, const LayerReport& report, bool total) {
    lines.emplace_back();
    for (const Column* column : columns)
      lines.back().push_back(Cell(*column, name, report, config, format.aligned, total));
  };
  LayerReport sum;
  for (const Layer& layer : layers) {
    if (config.compat.scalesim && config.compat.dram &&
        std::max(layer.inputs(), layer.weights()) > kMostElements)
      return InvalidArgument("layer '", layer.name,
                             "': accesses to the DRAM are counted for at most ", kMostElements,
                             " inputs and weights; compat.dram=false leaves them out");
    const LayerReport report = EstimateLayer(layer, config);
    add(layer.name, report, false);
    for (const Column& column : kColumns) {
      if (column.kind == Column::kCount) sum.*column.count += report.*column.count;
    }
  }
  sum.overall_util =
      100 * static_cast<double>(sum.macs) /
      (static_cast<double>(sum.cycles) * static_cast<double>(config.mxu.rows * config.mxu.cols));
  if (format.total) add("total", sum, true);
  if (format.aligned) return Aligned(lines);
  std::string csv;
  for (const auto& line : lines) csv += Str(Join(line, ","), "\n");
  return csv;
}

}  // namespace lazuli::npu
