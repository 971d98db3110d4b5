// The library's thread-local block must fit what the loader keeps for libraries that come by
// dlopen(): Python's import fails where it does not.
#include <cstddef>
#include <string_view>

#include <gtest/gtest.h>
#include <link.h>

#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

// Bytes of the thread-local block of the module that has `address`.
struct Module {
  std::size_t address;
  std::size_t thread_local_bytes = 0;
  bool found = false;
};

int Look(dl_phdr_info* info, std::size_t, void* data) {
  auto& module = *static_cast<Module*>(data);
  std::size_t bytes = 0;
  bool here = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const std::size_t offset = module.address - info->dlpi_addr - segment.p_vaddr;
    if (segment.p_type == PT_LOAD && offset < segment.p_memsz) here = true;
    if (segment.p_type == PT_TLS) bytes = segment.p_memsz;
  }
  if (!here) return 0;
  module.found = true;
  module.thread_local_bytes = bytes;
  return 1;
}

TEST(ThreadLocalsTest, FitWhatTheLoaderKeepsForLibrariesThatComeLate) {
  Module library{reinterpret_cast<std::size_t>(&manual_seed)};
  dl_iterate_phdr(Look, &library);
  ASSERT_TRUE(library.found);
  EXPECT_GT(library.thread_local_bytes, 0u);
  EXPECT_LE(library.thread_local_bytes, 384u) << "make the large ones ir::PerThread";
}

}  // namespace
}  // namespace lazuli
