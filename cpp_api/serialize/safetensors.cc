// The format: 8 bytes with the header's length, little-endian; the header, JSON that gives each
// tensor's dtype, shape and place in the data; the data, row-major and little-endian.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "lazuli/internal/fail.h"
#include "lazuli/serialize.h"

namespace lazuli {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written as they lie");

using internal::Fail;
using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // as the format's own reader
constexpr const char* kMetadata = "__metadata__";

struct FileType {
  DType dtype;
  const char* name;
  std::uint64_t bytes;
};
constexpr FileType kTypes[] = {
    {DType::kPred, "BOOL", 1},
    {DType::kS8, "I8", 1},
    {DType::kU8, "U8", 1},
    {DType::kS16, "I16", 2},
    {DType::kU16, "U16", 2},
    {DType::kS32, "I32", 4},
    {DType::kU32, "U32", 4},
    {DType::kS64, "I64", 8},
    {DType::kU64, "U64", 8},
    {DType::kF16, "F16", 2},
    {DType::kBF16, "BF16", 2},
    {DType::kF32, "F32", 4},
    {DType::kF64, "F64", 8},
    {DType::kC64, "C64", 8},
    {DType::kF8E5M2, "F8_E5M2", 1},
    {DType::kF8E4M3FN, "F8_E4M3", 1},
    {DType::kF8E8M0FNU, "F8_E8M0", 1},
};

// --- writing

// A file that gets its name when it is complete; until then, and if that fails, nothing is there.
// What a link leads to is replaced; what is no file, a pipe or a device, is written to.
class NewFile {
 public:
  NewFile(std::string path, SourceLocation loc)
      : path_(std::move(path)), target_(path_), loc_(loc) {
    std::error_code error;
    if (fs::exists(path_, error)) target_ = fs::canonical(path_, error).string();
    if (fs::exists(target_, error) && !fs::is_regular_file(target_, error)) {
      file_ = open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    } else {
      static std::atomic<int> count{0};
      temporary_ = target_ + ".part." + std::to_string(getpid()) + "." + std::to_string(count++);
      file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (file_ < 0) Give("cannot write to");
  }
  ~NewFile() {
    if (file_ >= 0) close(file_);
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void Write(const void* data, std::size_t size) {
    const auto* at = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = write(file_, at, size);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) Give("writing failed for");
      at += written;
      size -= static_cast<std::size_t>(written);
    }
  }
  void Commit() {
    if (temporary_.empty()) return;
    if (fsync(file_) != 0) Give("writing failed for");
    if (rename(temporary_.c_str(), target_.c_str()) != 0) Give("cannot write to");
    temporary_.clear();
  }

 private:
  [[noreturn]] void Give(const char* what) {
    const std::string why = std::strerror(errno);
    Fail(ErrorCode::kNotFound, std::string(what) + " " + path_ + ": " + why, loc_);
  }
  std::string path_, target_, temporary_;
  SourceLocation loc_;
  int file_ = -1;
};

const FileType& TypeOf(const std::string& name, DType dtype, SourceLocation loc) {
  for (const FileType& type : kTypes) {
    if (type.dtype == dtype) return type;
  }
  Fail(ErrorCode::kUnimplemented,
       "save_safetensors: " + name + " is " + std::string(to_string(dtype)) +
           ", which the format has not; convert it by to()",
       loc);
}

// --- reading

struct Entry {
  std::string name;
  FileType type;
  Dims dims;
  std::uint64_t begin, end;  // in the data
};

// What a file holds, checked; every complaint is one sentence with the file's name.
class Reader {
 public:
  // The rest of `in`, which complaints call `name`.
  Reader(std::istream& in, std::string name, SourceLocation loc)
      : path_(std::move(name)), loc_(loc), in_(in), begin_(in.tellg()) {
    in_.seekg(0, std::ios::end);
    const std::streamoff length = in_ ? static_cast<std::streamoff>(in_.tellg() - begin_) : -1;
    // A folder opens, too, but has no length.
    if (length < 0 || length > (std::streamoff{1} << 60))
      Fail(ErrorCode::kNotFound, "cannot read " + path_, loc_);
    length_ = static_cast<std::uint64_t>(length);
    ReadHeader();
  }

  const std::vector<Entry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  std::vector<char> Data(const Entry& entry) {
    return ReadAt(data_begin_ + entry.begin, entry.end - entry.begin);
  }

 private:
  [[noreturn]] void Damaged(const std::string& what) const {
    Fail(ErrorCode::kInvalidArgument, path_ + " is damaged or not a safetensors file: " + what,
         loc_);
  }

  std::vector<char> ReadAt(std::uint64_t position, std::uint64_t size) {
    std::vector<char> bytes;
    try {
      bytes.resize(size);
    } catch (const std::exception&) {  // bad_alloc, or a length_error
      Fail(ErrorCode::kResourceExhausted,
           "out of memory: " + path_ + " has an array of " + std::to_string(size) + " bytes", loc_);
    }
    in_.seekg(begin_ + static_cast<std::streamoff>(position));
    if (!in_.read(bytes.data(), static_cast<std::streamsize>(size)))
      Fail(ErrorCode::kNotFound, "reading " + path_ + " failed", loc_);
    return bytes;
  }

  void ReadHeader() {
    if (length_ < 8) Damaged("it has " + std::to_string(length_) + " bytes, its length field 8");
    std::uint64_t size = 0;
    std::memcpy(&size, ReadAt(0, 8).data(), 8);
    if (size > kMaxHeader || size > length_ - 8) {
      Damaged("its header should have " + std::to_string(size) + " bytes, the file has " +
              std::to_string(length_ - 8) + " after the length");
    }
    data_begin_ = 8 + size;
    const std::vector<char> header = ReadAt(8, size);
    ReadEntries(Parse(header));
    CheckPlaces();
  }

  json Parse(const std::vector<char>& header) {
    std::set<std::string> names;
    const auto note_names = [&](int depth, json::parse_event_t event, json& value) {
      if (depth == 1 && event == json::parse_event_t::key &&
          !names.insert(value.get<std::string>()).second)
        Damaged("its header has '" + value.get<std::string>() + "' twice");
      return true;
    };
    json parsed;
    try {
      parsed = json::parse(header.begin(), header.end(), note_names);
    } catch (const json::exception& error) {
      Damaged("its header is not JSON");
    }
    if (!parsed.is_object()) Damaged("its header is not a JSON object");
    return parsed;
  }

  void ReadEntries(const json& header) {
    for (const auto& [name, value] : header.items()) {
      if (name == kMetadata)
        ReadMetadata(value);
      else
        entries_.push_back(ReadEntry(name, value));
    }
  }

  void ReadMetadata(const json& value) {
    if (!value.is_object()) Damaged("its metadata is not an object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) Damaged("its metadata '" + key + "' is not text");
      metadata_[key] = text.get<std::string>();
    }
  }

  Entry ReadEntry(const std::string& name, const json& value) const {
    const auto wrong = [&](const std::string& what) { Damaged("tensor '" + name + "' " + what); };
    if (!value.is_object()) wrong("is described by no object");
    const auto dtype = value.find("dtype"), shape = value.find("shape"),
               offsets = value.find("data_offsets");
    if (dtype == value.end() || !dtype->is_string()) wrong("has no dtype");
    if (shape == value.end() || !shape->is_array()) wrong("has no shape");
    if (offsets == value.end() || !offsets->is_array() || offsets->size() != 2 ||
        !(*offsets)[0].is_number_unsigned() || !(*offsets)[1].is_number_unsigned())
      wrong("has no data_offsets of two numbers");

    const auto text = dtype->get<std::string>();
    const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [&](const FileType& t) { return text == t.name; });
    if (type == std::end(kTypes)) wrong("has the unknown dtype '" + text + "'");
    Entry entry{
        name, *type, {}, (*offsets)[0].get<std::uint64_t>(), (*offsets)[1].get<std::uint64_t>()};
    unsigned __int128 bytes = type->bytes;
    for (const json& dim : *shape) {
      if (!dim.is_number_unsigned() || dim.get<std::uint64_t>() > (std::uint64_t{1} << 62))
        wrong("has a shape that is not a list of sizes");
      entry.dims.push_back(static_cast<std::int64_t>(dim.get<std::uint64_t>()));
      bytes *= dim.get<std::uint64_t>();
      if (bytes >> 64 != 0) wrong("is larger than memory can be");
    }
    if (entry.begin > entry.end || entry.end > length_ - data_begin_) {
      wrong("lies from byte " + std::to_string(entry.begin) + " to " + std::to_string(entry.end) +
            " of " + std::to_string(length_ - data_begin_) + " bytes of data");
    }
    if (entry.end - entry.begin != bytes) {
      wrong("has " + std::to_string(entry.end - entry.begin) + " bytes, its dtype and shape need " +
            std::to_string(static_cast<std::uint64_t>(bytes)));
    }
    return entry;
  }

  // The tensors must fill the data without overlap or hole.
  void CheckPlaces() {
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::uint64_t at = 0;
    for (const Entry& entry : entries_) {
      if (entry.begin < at) Damaged("tensor '" + entry.name + "' overlaps another one");
      if (entry.begin > at) {
        Damaged("there is a hole of " + std::to_string(entry.begin - at) +
                " bytes before tensor '" + entry.name + "'");
      }
      at = entry.end;
    }
    if (at != length_ - data_begin_) {
      Damaged("there are " + std::to_string(length_ - data_begin_ - at) +
              " bytes after the last tensor");
    }
  }

  std::string path_;
  SourceLocation loc_;
  std::istream& in_;
  std::istream::pos_type begin_;
  std::uint64_t length_ = 0, data_begin_ = 0;
  std::vector<Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

// The header as it lies in a file, behind its length.
std::string HeaderOf(const StateDict& state, SourceLocation loc) {
  json header = json::object();
  if (!state.metadata.empty()) header[kMetadata] = state.metadata;
  std::uint64_t at = 0;
  for (const auto& [name, tensor] : state.tensors) {
    if (name == kMetadata || !tensor.defined()) {
      Fail(ErrorCode::kInvalidArgument,
           "save_safetensors: '" + name + "' " +
               (tensor.defined() ? "is not a name for a tensor" : "is an undefined tensor"),
           loc);
    }
    const FileType& type = TypeOf(name, tensor.dtype(), loc);
    const std::uint64_t end = at + type.bytes * static_cast<std::uint64_t>(tensor.numel());
    header[name] = {{"dtype", type.name}, {"shape", tensor.sizes()}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception&) {
    Fail(ErrorCode::kInvalidArgument, "save_safetensors: a name is not UTF-8 text", loc);
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data is aligned
  const std::uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text;
}

// write(data, bytes) is called with all parts of the file.
template <class W>
void WriteAll(const StateDict& state, const std::string& header, SourceLocation loc, W write) {
  write(header.data(), header.size());
  for (const auto& [name, tensor] : state.tensors) {
    const std::vector<std::byte> bytes = tensor.to_bytes(loc);
    write(bytes.data(), bytes.size());
  }
}

StateDict ReadAll(Reader reader, const Device& device, SourceLocation loc) {
  StateDict state;
  state.metadata = reader.metadata();
  for (const Entry& entry : reader.entries()) {
    const std::vector<char> bytes = reader.Data(entry);
    state.tensors[entry.name] = from_data(bytes.data(), entry.type.dtype, entry.dims, device, loc);
  }
  return state;
}

}  // namespace

void save_safetensors(const StateDict& state, const std::string& path, SourceLocation loc) {
  const std::string header = HeaderOf(state, loc);  // or throws, before there is a file
  NewFile file(path, loc);
  WriteAll(state, header, loc, [&](const void* data, std::size_t size) { file.Write(data, size); });
  file.Commit();
}
void save_safetensors(const StateDict& state, std::ostream& stream, SourceLocation loc) {
  WriteAll(state, HeaderOf(state, loc), loc, [&](const void* data, std::size_t size) {
    stream.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  });
  if (!stream) Fail(ErrorCode::kNotFound, "writing failed for a stream", loc);
}

StateDict load_safetensors(const std::string& path, const Device& device, SourceLocation loc) {
  std::ifstream file(path, std::ios::binary);
  return ReadAll(Reader(file, path, loc), device, loc);
}
StateDict load_safetensors(std::istream& stream, const Device& device, SourceLocation loc) {
  return ReadAll(Reader(stream, "the stream", loc), device, loc);
}

}  // namespace lazuli
