#include "tools/npz.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include <unistd.h>
#include <zip.h>

#include "ir/evaluator/kernels.h"
#include "ir/support/status.h"

namespace lazuli::tools {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace): literals and statuses on every line

// NumPy's letter for an element type, without its width: 'b', 'i', 'u', 'f', 'c'. What NumPy lacks
// is 'u'.
char KindOf(DType dtype) {
  switch (Row(dtype).category) {
    case DTypeCategory::kPred:
      return 'b';
    case DTypeCategory::kSigned:
      return Row(dtype).bits < 8 ? 'u' : 'i';
    case DTypeCategory::kUnsigned:
      return 'u';
    case DTypeCategory::kFloat:
      return dtype == DType::kF16 || dtype == DType::kF32 || dtype == DType::kF64 ? 'f' : 'u';
    case DTypeCategory::kComplex:
      return 'c';
    case DTypeCategory::kNone:
      break;
  }
  return 'V';
}

std::string DescrOf(DType dtype) {
  return Str(ByteWidth(dtype) == 1 ? '|' : '<', KindOf(dtype), ByteWidth(dtype));
}

// What stands before the elements of a .npy file.
struct NpyHeader {
  std::string descr;  // "<f4"
  bool fortran_order = false;
  Dims dims;
  std::size_t size = 0;  // of the header, in bytes
};

// The text between `'key':` and the end of its value in the header's dictionary.
std::optional<std::string_view> ValueOf(std::string_view dictionary, std::string_view key) {
  const std::size_t found = dictionary.find(Str("'", key, "':"));
  if (found == std::string_view::npos) return std::nullopt;
  std::string_view value = dictionary.substr(found + key.size() + 3);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  const std::size_t end = value.starts_with('(') ? value.find(')') : value.find_first_of(",}");
  if (end == std::string_view::npos) return std::nullopt;
  return value.substr(0, end);
}

// "(2, 3", "(4,", "(": the dimensions.
std::optional<Dims> ParseDims(std::string_view text) {
  if (!text.starts_with('(')) return std::nullopt;
  Dims dims;
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size();
  while (true) {
    while (at != end && (*at == ' ' || *at == ',')) ++at;
    if (at == end) return dims;
    int64_t dim = 0;
    const auto parsed = std::from_chars(at, end, dim);
    if (parsed.ec != std::errc() || dim < 0) return std::nullopt;
    dims.push_back(dim);
    at = parsed.ptr;
    if (at != end && *at == 'L') ++at;  // Python 2 wrote long integers
  }
}

std::optional<NpyHeader> ParseNpyHeader(std::string_view file) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (!file.starts_with(kMagic) || file.size() < 12) return std::nullopt;
  auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<uint8_t>(file[i]));
  };
  const bool wide = byte(6) >= 2;  // from format 2.0 on, the length has four bytes
  const std::size_t begin = wide ? 12 : 10;
  std::size_t length = byte(8) | byte(9) << 8;
  if (wide) length |= byte(10) << 16 | byte(11) << 24;
  if (file.size() < begin + length) return std::nullopt;
  const std::string_view dictionary = file.substr(begin, length);
  const auto descr = ValueOf(dictionary, "descr"), order = ValueOf(dictionary, "fortran_order"),
             shape = ValueOf(dictionary, "shape");
  if (!descr || !order || !shape || descr->size() < 4) return std::nullopt;
  auto dims = ParseDims(*shape);
  if (!dims) return std::nullopt;
  return NpyHeader{std::string(descr->substr(1, descr->size() - 2)), *order == "True",
                   *std::move(dims), begin + length};
}

std::string NpyHeaderText(std::string_view descr, absl::Span<const int64_t> dims) {
  std::string text = Str("{'descr': '", descr, "', 'fortran_order': False, 'shape': (",
                         Join(dims, ", "), dims.size() == 1 ? "," : "", "), }");
  constexpr std::size_t kPrefix = 10, kAlignment = 64;  // of the elements, as NumPy writes them
  text.append(kAlignment - 1 - (kPrefix + text.size()) % kAlignment, ' ');
  text += '\n';
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xFF);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

// Elements in memory order of reversed dimensions, to row major.
void FromFortranOrder(const std::byte* from, const Shape& shape, std::byte* to) {
  const auto width = static_cast<std::size_t>(ByteWidth(shape.dtype()));
  std::size_t position = 0;
  ForEachIndex(shape.dims(), [&](absl::Span<const int64_t> index) {
    int64_t source = 0;
    for (int64_t d = shape.rank() - 1; d >= 0; --d)
      source = source * shape.dim(d) + index[static_cast<std::size_t>(d)];
    std::memcpy(to + position, from + static_cast<std::size_t>(source) * width, width);
    position += width;
  });
}

// Whether elements of NumPy's type `descr` are those of the DType; raw bytes ('V') of the width are
// what ml_dtypes writes for its types.
bool IsElementType(std::string_view descr, DType dtype) {
  if (descr == DescrOf(dtype)) return true;
  const bool opaque = KindOf(dtype) == 'u' && !(IsUnsigned(dtype) && Row(dtype).bits >= 8);
  return opaque && descr.substr(1) == Str('V', ByteWidth(dtype)) && !descr.starts_with('>');
}

std::string NpyText(const NpyHeader& header) {
  return Str(header.descr, "[", Join(header.dims, ","), "]");
}

// Errors of libzip that carry no archive.
std::string ZipErrorText(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

// The bits of the element alone, whatever the high bits of its byte hold.
Literal WithoutHighBits(const Literal& value) {
  const int bits = Row(value.shape().dtype()).bits;
  if (bits >= 8) return value;
  Literal result = value.Clone();
  for (auto& byte : result.mutable_data<std::byte>()) byte &= std::byte((1 << bits) - 1);
  return result;
}

std::string NpyOf(const Literal& value) {
  const Literal bits = WithoutHighBits(value);
  std::string file = NpyHeaderText(DescrOf(value.shape().dtype()), value.shape().dims());
  file.append(reinterpret_cast<const char*>(bits.raw()),
              static_cast<std::size_t>(bits.byte_size()));
  return file;
}

// An array of NumPy's fixed-width strings, four bytes a character.
std::string NpyOfStrings(const std::vector<std::string_view>& strings) {
  std::size_t width = 1;
  for (std::string_view s : strings) width = std::max(width, s.size());
  std::string file = NpyHeaderText(Str("<U", width), {static_cast<int64_t>(strings.size())});
  for (std::string_view s : strings) {
    for (std::size_t i = 0; i < width; ++i) {
      file += i < s.size() ? s[i] : '\0';
      file.append(3, '\0');
    }
  }
  return file;
}

}  // namespace

void NpzReader::Close::operator()(zip* archive) const { zip_discard(archive); }

absl::StatusOr<NpzReader> NpzReader::Open(const std::string& path) {
  int code = 0;
  zip* archive = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (archive == nullptr) return NotFound("cannot read ", path, ": ", ZipErrorText(code));
  return NpzReader(path, archive);
}

bool NpzReader::Has(std::string_view name) const {
  return zip_name_locate(archive_.get(), Str(name, ".npy").c_str(), 0) >= 0;
}

absl::StatusOr<std::string> NpzReader::ReadMember(std::string_view name) const {
  const std::string member = Str(name, ".npy");
  zip_stat_t stat;
  if (zip_stat(archive_.get(), member.c_str(), 0, &stat) != 0)
    return NotFound(path_, " has no array ", name);
  auto fails = [&] { return InvalidArgument(path_, ": ", name, " cannot be unpacked"); };
  zip_file_t* file = zip_fopen(archive_.get(), member.c_str(), 0);
  if (file == nullptr) return fails();
  // Grows with what is really there: the size that the archive states may be a lie.
  std::string contents;
  constexpr std::size_t kChunk = std::size_t{1} << 24;
  while (true) {
    const std::size_t old = contents.size();
    contents.resize(old + std::clamp<std::size_t>(stat.size - std::min(stat.size, old), 1, kChunk));
    const zip_int64_t count = zip_fread(file, contents.data() + old, contents.size() - old);
    contents.resize(old + static_cast<std::size_t>(std::max<zip_int64_t>(count, 0)));
    if (count > 0) continue;
    if (zip_fclose(file) != 0 || count < 0) return fails();
    return contents;
  }
}

absl::StatusOr<Literal> NpzReader::Read(std::string_view name, const Shape& shape) const {
  LAZULI_ASSIGN_OR_RETURN(const std::string file, ReadMember(name));
  const std::optional<NpyHeader> header = ParseNpyHeader(file);
  if (!header) return InvalidArgument(path_, ": ", name, " is not an array of NumPy's");
  const Shape expected = shape.WithDefaultLayout();
  if (!IsElementType(header->descr, shape.dtype()) ||
      header->dims != Dims(shape.dims().begin(), shape.dims().end())) {
    return InvalidArgument(path_, ": ", name, " is ", NpyText(*header), ", not ", expected,
                           ", which is ", DescrOf(shape.dtype()), "[", Join(shape.dims(), ","),
                           "]");
  }
  const auto bytes = static_cast<std::size_t>(expected.byte_size());
  if (file.size() - header->size < bytes)
    return InvalidArgument(path_, ": ", name, " is shorter than ", expected);
  Literal value = Literal::Uninitialized(expected);
  const auto* elements = reinterpret_cast<const std::byte*>(file.data()) + header->size;
  if (header->fortran_order) {
    FromFortranOrder(elements, expected, value.mutable_raw());
  } else if (bytes > 0) {
    std::memcpy(value.mutable_raw(), elements, bytes);
  }
  if (shape.dtype() == DType::kPred) {
    for (auto& byte : value.mutable_data<uint8_t>()) byte = byte != 0;
  }
  hlo::WrapSubByte(shape.dtype(), value.mutable_raw(), expected.num_elements());
  return IsFloat(shape.dtype()) ? WithoutHighBits(value) : value;
}

absl::Status WriteNpz(const std::string& path,
                      const std::vector<std::pair<std::string, Literal>>& arrays) {
  std::vector<std::pair<std::string, std::string>> members;
  std::vector<std::string_view> dtypes;
  for (const auto& [name, value] : arrays) {
    members.emplace_back(Str(name, ".npy"), NpyOf(value));
    dtypes.push_back(DTypeText(value.shape().dtype()));
  }
  members.emplace_back("dtypes.npy", NpyOfStrings(dtypes));

  namespace fs = std::filesystem;
  std::error_code error;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty())
    fs::create_directories(folder, error);
  if (error) return FailedPrecondition("cannot write ", path, ": ", error.message());
  int code = 0;
  zip* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  if (archive == nullptr)
    return FailedPrecondition("cannot write ", path, ": ", ZipErrorText(code));
  for (const auto& [name, contents] : members) {
    zip_source_t* source = zip_source_buffer(archive, contents.data(), contents.size(), 0);
    const zip_int64_t index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index >= 0)
      zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
  }
  if (zip_close(archive) == 0) return absl::OkStatus();  // it renames a temporary file
  const absl::Status failed =
      FailedPrecondition("cannot write ", path, ": ", zip_error_strerror(zip_get_error(archive)));
  zip_discard(archive);
  return failed;
}

}  // namespace lazuli::tools
