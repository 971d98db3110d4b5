#include "ir/support/build_id.h"

#include <cstdint>
#include <cstring>
#include <string_view>

#include <elf.h>
#include <link.h>

namespace lazuli::ir {
namespace {

struct Search {
  ElfW(Addr) code;  // an address in the object that is looked for
  std::string id;
};

std::string Hex(const unsigned char* bytes, std::size_t size) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

// The description of the build-id note in a segment of notes, or nothing.
std::string FindNote(const unsigned char* notes, std::size_t size) {
  const auto padded = [](std::size_t n) { return (n + 3) / 4 * 4; };
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes, sizeof header);
    const std::size_t name = padded(header.n_namesz), desc = padded(header.n_descsz);
    const std::size_t total = sizeof header + name + desc;
    if (total > size) break;
    const auto* text = reinterpret_cast<const char*>(notes + sizeof header);
    if (header.n_type == NT_GNU_BUILD_ID &&
        std::string_view(text, header.n_namesz) == std::string_view("GNU\0", 4))
      return Hex(notes + sizeof header + name, header.n_descsz);
    notes += total;
    size -= total;
  }
  return "";
}

int Visit(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  bool holds = false;
  std::string id;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const ElfW(Addr) begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD)
      holds |= begin <= search.code && search.code < begin + segment.p_memsz;
    if (segment.p_type == PT_NOTE && id.empty())
      id = FindNote(reinterpret_cast<const unsigned char*>(begin), segment.p_memsz);
  }
  if (!holds) return 0;
  search.id = std::move(id);
  return 1;
}

std::string FindBuildId() {
  Search search{reinterpret_cast<ElfW(Addr)>(&BuildId), ""};
  dl_iterate_phdr(Visit, &search);
  return std::move(search.id);
}

}  // namespace

const std::string& BuildId() {
  static const auto* id = new std::string(FindBuildId());
  return *id;
}

}  // namespace lazuli::ir
