#include "cpp_api/data/host_array.h"

#include <string>
#include <type_traits>
#include <vector>

namespace lazuli::data {

std::size_t ByteSize(const Dims& dims, DType dtype) {
  std::size_t bytes = WithType(dtype, []<class T>(T) -> std::size_t {
    return std::is_same_v<T, std::nullptr_t> ? 0 : sizeof(T);
  });
  if (bytes == 0) {
    throw Error(ErrorCode::kUnimplemented,
                "HostArray: no " + std::string(to_string(dtype)) + " arrays");
  }
  for (const std::int64_t d : dims) bytes *= static_cast<std::size_t>(d);
  return bytes;
}

HostArray HostArray::zeros(const Dims& dims, DType dtype) {
  return {.dtype = dtype, .dims = dims, .bytes = std::vector<std::byte>(ByteSize(dims, dtype))};
}

}  // namespace lazuli::data
