#include "lazy/debug/profile_socket.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "absl/strings/str_replace.h"
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ir/support/flags.h"
#include "ir/support/span_collector.h"
#include "ir/support/status.h"
#include "ir/support/str.h"
#include "ir/support/text_file.h"
#include "lazy/debug/profile.h"

namespace lazuli::lazy {
namespace {

constexpr int64_t kMostMs = 3600 * 1000;

struct Socket {
  std::string path;
  pid_t process = getpid();
};
Socket* listening = nullptr;

absl::Status Failed(std::string_view doing, const std::string& path) {
  return ir::NotFound("LAZULI_PROFILE_SOCKET: cannot ", doing, " ", path, ": ",
                      std::generic_category().message(errno));
}

absl::StatusOr<sockaddr_un> Address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return ir::InvalidArgument("LAZULI_PROFILE_SOCKET: ", path, " is longer than the ",
                               sizeof address.sun_path - 1, " letters that a socket may have");
  std::copy(path.begin(), path.end(), address.sun_path);
  return address;
}

// A socket that nobody listens on any more is in the way.
void RemoveStale(const sockaddr_un& address) {
  struct stat info{};
  if (::stat(address.sun_path, &info) != 0 || !S_ISSOCK(info.st_mode)) return;
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool alive =
      ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  if (!alive) ::unlink(address.sun_path);
}

absl::StatusOr<int> Listen(const std::string& path) {
  LAZULI_ASSIGN_OR_RETURN(const sockaddr_un address, Address(path));
  RemoveStale(address);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failed("make", path);
  // Before anybody can connect: listen() comes last.
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0 || ::listen(fd, 4) != 0) {
    absl::Status status = Failed("listen on", path);
    ::close(fd);
    return status;
  }
  return fd;
}

void SendAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;  // who asked has gone
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// The line that is asked, without its end.
std::string Request(int fd) {
  std::string line;
  char c = 0;
  while (line.size() < 100 && ::recv(fd, &c, 1, 0) == 1 && c != '\n') line += c;
  return line;
}

std::string Answer(std::string_view request) {
  constexpr std::string_view kWord = "profile ";
  int64_t ms = -1;
  if (request.starts_with(kWord)) {
    request.remove_prefix(kWord.size());
    const char* const end = request.data() + request.size();
    const auto [rest, error] = std::from_chars(request.data(), end, ms);
    if (error != std::errc() || rest != end) ms = -1;
  }
  if (ms < 0 || ms > kMostMs)
    return ir::Str("error: expected 'profile MILLISECONDS', at most ", kMostMs, "\n");
  const ir::SpanCollector spans;
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  return Profile(spans.Spans()).Trace();
}

void Serve(int fd) {
  sigset_t all;  // signals are for the program's own threads
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  while (true) {
    const int client = ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    SendAll(client, Answer(Request(client)));
    ::close(client);
  }
}

void RemoveAtExit() {
  if (getpid() == listening->process) ::unlink(listening->path.c_str());
}

}  // namespace

void InitializeProfileSocket() {
  static const bool installed = [] {
    if (ir::flags().profile_socket().empty()) return false;
    const std::string path =
        absl::StrReplaceAll(ir::flags().profile_socket(), {{"%p", ir::Str(getpid())}});
    const absl::StatusOr<int> fd = Listen(path);
    if (!fd.ok()) {
      ir::SayOnce(fd.status());
      return false;
    }
    listening = new Socket{path};  // NOLINT: outlives every thread, as serving never ends
    std::thread(Serve, *fd).detach();
    return std::atexit(RemoveAtExit) == 0;
  }();
  (void)installed;
}

}  // namespace lazuli::lazy
