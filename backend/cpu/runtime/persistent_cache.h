// The folder in which processes keep what they compiled for later ones (XLA_PERSISTENT_CACHE_PATH).
//
// A key says all that decides the value; this build of lazuli is added here. A folder that cannot be
// used costs a warning, never a run.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lazuli::cpu {

// Whether the user wants one, and it can be used.
bool HasPersistentCache();
std::optional<std::string> FindPersistent(std::string_view key);
void KeepPersistent(std::string_view key, std::string_view value);

}  // namespace lazuli::cpu
