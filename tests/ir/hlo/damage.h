// Damages texts of modules at random: bits, characters, words, lines, names, numbers.
#pragma once

#include <cctype>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace lazuli::hlo {

using Random = std::mt19937;

inline std::size_t Below(Random& random, std::size_t n) { return n == 0 ? 0 : random() % n; }

// How often each text is damaged: LAZULI_FUZZ_ROUNDS for a long run.
inline int FuzzRounds() {
  const char* rounds = std::getenv("LAZULI_FUZZ_ROUNDS");
  return rounds == nullptr ? 20 : std::atoi(rounds);
}

// Words and the characters between them.
inline std::vector<std::string> Tokens(const std::string& text) {
  std::vector<std::string> tokens;
  bool in_word = false;
  for (char c : text) {
    const bool word =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
    if (word && in_word) {
      tokens.back() += c;
    } else {
      tokens.emplace_back(1, c);
    }
    in_word = word;
  }
  return tokens;
}

inline std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines(1);
  for (char c : text) {
    lines.back() += c;
    if (c == '\n') lines.emplace_back();
  }
  return lines;
}

inline std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += part;
  return text;
}

inline std::string WithDamagedTokens(const std::string& text, Random& random) {
  constexpr const char* kNumbers[] = {"0",  "-1",         "1",
                                      "2",  "2147483648", "9223372036854775807",
                                      "64", "1000000",    "-9223372036854775808"};
  std::vector<std::string> tokens = Tokens(text);
  for (std::size_t n = 1 + Below(random, 3); n > 0; --n) {
    std::string& token = tokens[Below(random, tokens.size())];
    const bool number = !token.empty() && std::isdigit(static_cast<unsigned char>(token[0])) != 0;
    if (number && random() % 2 == 0) {
      token = kNumbers[random() % std::size(kNumbers)];
    } else if (random() % 2 == 0) {
      token = tokens[Below(random, tokens.size())];  // another name, opcode, type, ...
    } else {
      std::swap(token, tokens[Below(random, tokens.size())]);
    }
  }
  return Joined(tokens);
}

inline std::string WithDamagedLines(const std::string& text, Random& random) {
  std::vector<std::string> lines = Lines(text);
  const std::size_t a = Below(random, lines.size()), b = Below(random, lines.size());
  switch (random() % 3) {
    case 0:
      std::swap(lines[a], lines[b]);
      break;
    case 1:
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(a), std::string(lines[b]));
      break;
    default:
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(a));
  }
  return Joined(lines);
}

inline std::string Damaged(const std::string& text, Random& random) {
  constexpr const char* kPieces[] = {"{",
                                     "}",
                                     "(",
                                     ")",
                                     "[",
                                     "\"",
                                     "/*",
                                     "-1",
                                     "%",
                                     ",",
                                     "=",
                                     "nan",
                                     "->",
                                     "99999999999",
                                     "{...}",
                                     ":",
                                     "inf",
                                     "ROOT ",
                                     "ENTRY ",
                                     "<=5",
                                     "18446744073709551616",
                                     "f32[1000000,1000000]"};
  std::string out = text;
  switch (random() % 8) {
    case 0:  // flip bits
      for (std::size_t n = 1 + Below(random, 4); n > 0; --n)
        out[Below(random, out.size())] ^= static_cast<char>(1 << random() % 8);
      return out;
    case 1:
      return out.substr(0, Below(random, out.size()));
    case 2:  // cut a piece out
      return out.erase(Below(random, out.size()), 1 + Below(random, 30));
    case 3:  // put a nasty piece in
      return out.insert(Below(random, out.size()), kPieces[random() % std::size(kPieces)]);
    case 4:
      return WithDamagedLines(text, random);
    default:
      return WithDamagedTokens(text, random);
  }
}

}  // namespace lazuli::hlo
