// A progress bar for a terminal, plain lines elsewhere.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>

#include <unistd.h>

class Progress {
 public:
  Progress(std::string title, long total)
      : title_(std::move(title)), total_(total), terminal_(isatty(STDOUT_FILENO) != 0) {}

  // `note` ends the line: "loss 0.123".
  void Update(long done, const std::string& note) {
    const double seconds = Seconds();
    const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
    const double left = rate > 0 ? static_cast<double>(total_ - done) / rate : 0;
    const bool last = done == total_;
    if (terminal_) {
      if (!last && seconds < next_) return;
      next_ = seconds + 0.1;
    } else {
      if (done * 5 / total_ == printed_) return;  // five lines in all
      printed_ = done * 5 / total_;
    }
    char text[160];
    std::snprintf(text, sizeof text, "%s %s%5ld/%ld  %6.1f steps/s  %s%s", title_.c_str(),
                  terminal_ ? Bar(done).c_str() : "", done, total_, rate, note.c_str(),
                  last ? "" : ("  " + Clock(left) + " left").c_str());
    if (terminal_) {
      std::printf("\r%s\033[K%s", text, last ? "\n" : "");  // \033[K: clear what was longer
    } else {
      std::printf("%s\n", text);
    }
    std::fflush(stdout);
  }

  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::string Bar(long done) const {
    constexpr long kWidth = 24;
    const long filled = kWidth * done / std::max(total_, 1L);
    std::string bar(1, '[');
    bar.append(filled, '=').append(kWidth - filled, ' ');
    return bar + "] ";
  }
  static std::string Clock(double seconds) {
    char text[32];
    const long s = std::lround(seconds);
    std::snprintf(text, sizeof text, "%ld:%02ld", s / 60, s % 60);
    return text;
  }

  std::string title_;
  long total_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double next_ = 0;   // the next redraw, in seconds from the start
  long printed_ = 0;  // fifths that have their line
};
