// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "core/base/text.hpp"
#include "core/cluster/integers.hpp"
#include "core/cluster/slurm.hpp"

namespace dist {
namespace {

Status check_length(const char* text, const char* what) noexcept {
  if (std::memchr(text, '\0', DIST_MAX_CLUSTER_TEXT_BYTES) != nullptr) return kOk;
  return invalid_argument("%s has more than %d bytes", what, DIST_MAX_CLUSTER_TEXT_BYTES - 1);
}

constexpr std::string_view kBlanks = " \t\n\v\f\r";

std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Expands host lists like `scontrol show hostnames`, except that malformed brackets are rejected. The last
// bracket may be followed by text.
class HostList {
 public:
  HostList(const char* what, std::pmr::memory_resource* memory, std::pmr::vector<std::pmr::string>* out)
      : what_(what), memory_(memory), out_(*out) {}

  // Commas and blanks outside of brackets separate hosts.
  Status read(std::string_view text) {
    bool in_brackets = false;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (in_brackets ? c == '[' : c == ']') return bad_part(text.substr(begin));
      if (c == '[' || c == ']') {
        in_brackets = c == '[';
      } else if (!in_brackets && (c == ',' || c == ' ' || c == '\t')) {
        DIST_TRY(part(text.substr(begin, i - begin)));
        begin = i + 1;
      }
    }
    if (in_brackets) return bad_part(text.substr(begin));
    return part(text.substr(begin));
  }

 private:
  // Numbers of a bracket, padded with leading zeros to `width` digits.
  struct Range {
    int64_t first;
    int64_t last;
    std::size_t width;
  };
  // A bracket, and the text before it.
  struct Bracket {
    explicit Bracket(std::pmr::memory_resource* memory) : ranges(memory) {}
    std::string_view before;
    std::pmr::vector<Range> ranges;
    std::size_t range = 0;  // index of the current number
    int64_t number = 0;

    void rewind() noexcept {
      range = 0;
      number = ranges[0].first;
    }
    // Moves to the next number. Returns false after the last one.
    bool advance() noexcept {
      if (number < ranges[range].last) return ++number, true;
      if (++range == ranges.size()) return false;
      number = ranges[range].first;
      return true;
    }
  };

  Status bad_part(std::string_view text) const noexcept {
    return invalid_argument(
        "%s has \"%s\", which cannot be read. Each host must be a name, in which brackets contain numbers "
        "and ranges, "
        "for example n[01-03,7].",
        what_, Shown(text).c_str());
  }

  Status bad_range(std::string_view text) const noexcept {
    return invalid_argument(
        "%s has \"%s\" in brackets, but must have a number of at most %d digits there, or an ascending range "
        "of two "
        "such numbers, for example 01-03",
        what_, Shown(text).c_str(), kMaxDigits);
  }

  Status too_many_hosts() const noexcept {
    return invalid_argument("%s has more than %d hosts", what_, DIST_MAX_CLUSTER_TASKS);
  }

  Status too_long_name() const noexcept {
    return invalid_argument("%s has a name of more than %d bytes", what_, DIST_MAX_ADDRESS_BYTES - 1);
  }

  // Whether this can be the host of an address, which must not contain a port.
  Status check_host(const char* host) const noexcept {
    if (std::strpbrk(host, ":/%?\\[]") != nullptr) {
      return invalid_argument("%s has \"%s\", but a host must be a name without a port", what_,
                              Shown(host).c_str());
    }
    if (is_line(host)) return kOk;
    return invalid_argument("%s has \"%s\", but a host must be one line of UTF-8, without control characters",
                            what_, Shown(host).c_str());
  }

  // Parses digits, which may be surrounded by blanks as in TensorFlow.
  static bool read_number(std::string_view text, int64_t* out) noexcept {
    const std::string_view digits = trimmed(text);
    if (digits.empty() || digits.size() > kMaxDigits) return false;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *out);
    return error == std::errc() && stop == digits.data() + digits.size() && *out >= 0 && digits[0] != '-';
  }

  // Reads a name with any number of brackets, or nothing.
  Status part(std::string_view text) {
    if (text.empty()) return kOk;
    std::pmr::vector<Bracket> brackets(memory_);
    int64_t hosts = 1;
    while (true) {
      const std::size_t open = text.find('[');
      if (open == std::string_view::npos) break;
      if (brackets.size() == DIST_MAX_ADDRESS_BYTES) return too_long_name();  // each bracket adds a digit
      const std::size_t close = text.find(']', open);
      Bracket& bracket = brackets.emplace_back(memory_);
      bracket.before = text.substr(0, open);
      int64_t numbers = 0;
      DIST_TRY(read_ranges(text.substr(open + 1, close - open - 1), &bracket.ranges, &numbers));
      hosts *= numbers;
      if (hosts > DIST_MAX_CLUSTER_TASKS) return too_many_hosts();
      bracket.rewind();
      text.remove_prefix(close + 1);
    }
    if (hosts + static_cast<int64_t>(out_.size()) > DIST_MAX_CLUSTER_TASKS) return too_many_hosts();
    do {
      DIST_TRY(add(brackets, text));
    } while (advance(brackets));
    return kOk;
  }

  // Parses "01-03,7" and counts the numbers.
  Status read_ranges(std::string_view text, std::pmr::vector<Range>* out, int64_t* out_numbers) const {
    while (true) {
      const std::size_t comma = text.find(',');
      Range range = {};
      DIST_TRY(read_range(text.substr(0, comma), &range));
      *out_numbers += range.last - range.first + 1;
      if (*out_numbers > DIST_MAX_CLUSTER_TASKS) return too_many_hosts();
      out->push_back(range);
      if (comma == std::string_view::npos) return kOk;
      text.remove_prefix(comma + 1);
    }
  }

  // Parses "01-03" or a single number. The length of the first number, including blanks, determines the
  // number of digits.
  Status read_range(std::string_view text, Range* out) const noexcept {
    const std::size_t dash = text.find('-');
    const std::string_view from = text.substr(0, dash);
    const std::string_view to = dash == std::string_view::npos ? from : text.substr(dash + 1);
    out->width = from.size();
    if (!read_number(from, &out->first) || !read_number(to, &out->last) || out->first > out->last) {
      return bad_range(text);
    }
    return kOk;
  }

  // Moves to the next host. Returns false after the last one. In Slurm's order the last bracket changes
  // fastest, then the first one, then the second one, and so on.
  static bool advance(std::pmr::vector<Bracket>& brackets) noexcept {
    const std::size_t n = brackets.size();
    for (std::size_t i = 0; i < n; ++i) {
      Bracket& bracket = brackets[i == 0 ? n - 1 : i - 1];
      if (bracket.advance()) return true;
      bracket.rewind();
    }
    return false;
  }

  // Adds the current host. `end` is the text after the last bracket.
  Status add(const std::pmr::vector<Bracket>& brackets, std::string_view end) {
    char name[DIST_MAX_ADDRESS_BYTES];
    std::size_t size = 0;
    const auto append = [&](std::string_view text, std::size_t zeros) {
      if (text.size() + zeros >= sizeof name - size) return false;
      std::memset(name + size, '0', zeros);
      std::memcpy(name + size + zeros, text.data(), text.size());
      size += zeros + text.size();
      return true;
    };
    for (const Bracket& bracket : brackets) {
      char digits[24];
      const char* const stop = std::to_chars(digits, digits + sizeof digits, bracket.number).ptr;
      const std::string_view number(digits, static_cast<std::size_t>(stop - digits));
      const std::size_t width = bracket.ranges[bracket.range].width;
      if (!append(bracket.before, 0) || !append(number, width > number.size() ? width - number.size() : 0)) {
        return too_long_name();
      }
    }
    if (!append(end, 0)) return too_long_name();
    return check_host(out_.emplace_back(name, size).c_str());
  }

  static constexpr int kMaxDigits = 18;

  const char* what_;
  std::pmr::memory_resource* memory_;
  std::pmr::vector<std::pmr::string>& out_;
};

// Parses a number that consists only of digits.
bool read_count(std::string_view text, int32_t* out) noexcept {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return false;
  return int_of(text, "a number of tasks", out).ok();
}

// Parses "2(x3)" or "2".
bool read_repeated(std::string_view text, int32_t* number, int32_t* times) noexcept {
  const std::size_t open = text.find('(');
  *times = 1;
  if (!read_count(text.substr(0, open), number)) return false;
  if (open == std::string_view::npos) return true;
  const std::string_view rest = text.substr(open);
  return rest.size() > 3 && rest.starts_with("(x") && rest.back() == ')' &&
         read_count(rest.substr(2, rest.size() - 3), times);
}

}  // namespace

Status expand_host_list(const char* text, const char* what, std::pmr::vector<std::pmr::string>* out) {
  DIST_TRY(check_length(text, what));
  return HostList(what, out->get_allocator().resource(), out).read(text);
}

Status expand_tasks_per_node(const char* text, const char* what, std::pmr::vector<int32_t>* out) {
  DIST_TRY(check_length(text, what));
  std::string_view left = text;
  while (true) {
    const std::size_t comma = left.find(',');
    int32_t number = 0;
    int32_t times = 0;
    if (!read_repeated(left.substr(0, comma), &number, &times)) {
      return invalid_argument(
          "%s is \"%s\", but must list the number of tasks of each host, for example 2(x3),1", what,
          Shown(text).c_str());
    }
    if (number > DIST_MAX_CLUSTER_TASKS ||
        out->size() + static_cast<std::size_t>(times) > DIST_MAX_CLUSTER_TASKS) {
      return invalid_argument("%s has more than %d tasks or hosts", what, DIST_MAX_CLUSTER_TASKS);
    }
    out->insert(out->end(), static_cast<std::size_t>(times), number);
    if (comma == std::string_view::npos) return kOk;
    left.remove_prefix(comma + 1);
  }
}

}  // namespace dist
