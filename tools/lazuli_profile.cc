// lazuli-profile: a profile of a program that runs with LAZULI_PROFILE_SOCKET, and pages of profiles.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ir/support/status.h"
#include "ir/support/str.h"
#include "ir/support/text_file.h"
#include "lazy/graphs/profile_page.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace): as in tool.cc

constexpr std::string_view kUsage = R"(usage: lazuli-profile SOCKET|FILE.json [options]
Takes a profile of the running program that listens on SOCKET: LAZULI_PROFILE_SOCKET=SOCKET ./program
Makes a page for a browser of a profile that was saved, FILE.html of FILE.json: LAZULI_PROFILE=FILE.json ./program

  --seconds=N           how long, of a running program (3)
  -o OUT                write to OUT: FILE.json for Perfetto, FILE.html for a browser; else JSON of a running program to
                        standard output
  --help                print this
)";

struct Options {
  std::string socket, out;
  double seconds = 3;
};

absl::StatusOr<Options> ParseOptions(const std::vector<std::string_view>& arguments) {
  Options options;
  std::string value;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (TakeValue(argument, "--seconds", &value)) {
      LAZULI_ASSIGN_OR_RETURN(options.seconds, ParseNumber("--seconds", value));
      if (options.seconds < 0 || options.seconds > 3600)
        return InvalidArgument("--seconds=", value, ": from 0 to 3600");
    } else if (argument == "-o") {
      if (++i == arguments.size()) return InvalidArgument("-o needs the name of a file");
      options.out = arguments[i];
    } else if (argument.starts_with("-")) {
      return InvalidArgument("unknown option ", argument, "; --help lists them");
    } else if (options.socket.empty()) {
      options.socket = argument;
    } else {
      return InvalidArgument("one socket or file, not ", options.socket, " and ", argument);
    }
  }
  if (options.socket.empty()) return InvalidArgument("which SOCKET or FILE.json? --help says more");
  return options;
}

absl::Status Failed(std::string_view doing, const std::string& path) {
  return NotFound("cannot ", doing, " ", path, ": ", std::generic_category().message(errno));
}

absl::StatusOr<std::string> Ask(const Options& options) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (options.socket.size() >= sizeof address.sun_path)
    return InvalidArgument(options.socket, ": the name of a socket is shorter");
  std::copy(options.socket.begin(), options.socket.end(), address.sun_path);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Failed("connect to", options.socket);
  const std::string request = Str("profile ", static_cast<int64_t>(options.seconds * 1000), "\n");
  if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0)
    return Failed("write to", options.socket);
  std::string answer;
  char buffer[65536];
  while (true) {
    const ssize_t count = ::recv(fd, buffer, sizeof buffer, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    answer.append(buffer, static_cast<std::size_t>(count));
  }
  ::close(fd);
  if (answer.empty()) return NotFound(options.socket, ": the program ended before it answered");
  if (answer.starts_with("error: "))
    return InvalidArgument(options.socket, ": ", answer.substr(7, answer.find('\n') - 7));
  return answer;
}

// A page of a file that a program has written.
absl::Status MakePage(const Options& options) {
  if (options.socket.ends_with(".gz"))
    return InvalidArgument(options.socket, ": is compressed; gunzip it first");
  LAZULI_ASSIGN_OR_RETURN(const std::string trace, ReadAll(options.socket));
  const bool json = trace.starts_with('{') || trace.starts_with('[');
  if (!json || trace.find("\"ph\"") == std::string::npos)
    return InvalidArgument(options.socket, ": is not a profile, which is the JSON of a trace");
  std::string out = options.out;
  if (out.empty()) {
    const std::size_t end =
        options.socket.ends_with(".json") ? options.socket.size() - 5 : options.socket.size();
    out = options.socket.substr(0, end) + ".html";
  }
  if (!out.ends_with(".html"))
    return InvalidArgument("-o ", out, ": of a file it makes a page, FILE.html");
  LAZULI_RETURN_IF_ERROR(WriteTextFile(out, lazy::ProfilePage(options.socket, trace)));
  std::fprintf(stdout, "%s: a page for a browser\n", out.c_str());
  return absl::OkStatus();
}

absl::Status Run(const std::vector<std::string_view>& arguments) {
  if (std::find(arguments.begin(), arguments.end(), "--help") != arguments.end()) {
    std::fwrite(kUsage.data(), 1, kUsage.size(), stdout);
    return absl::OkStatus();
  }
  LAZULI_ASSIGN_OR_RETURN(const Options options, ParseOptions(arguments));
  if (std::filesystem::is_regular_file(options.socket)) return MakePage(options);
  LAZULI_ASSIGN_OR_RETURN(const std::string trace, Ask(options));
  if (options.out.ends_with(".html"))
    return WriteTextFile(options.out, lazy::ProfilePage(options.socket, trace));
  if (!options.out.empty()) return WriteTextFile(options.out, trace);
  std::fwrite(trace.data(), 1, trace.size(), stdout);
  return absl::OkStatus();
}

}  // namespace
}  // namespace lazuli::tools

int main(int argc, char** argv) {
  return lazuli::tools::ToolMain("lazuli-profile", lazuli::tools::Run, argc, argv);
}
