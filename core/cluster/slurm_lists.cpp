// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core/base/text.hpp"
#include "core/cluster/python_numbers.hpp"
#include "core/cluster/slurm.hpp"

namespace dist {
namespace {

Status check_length(const char* text, const char* what) noexcept {
  if (std::memchr(text, '\0', DIST_MAX_CLUSTER_TEXT_BYTES) != nullptr) return kOk;
  return invalid_argument("%s has more than %d bytes", what, DIST_MAX_CLUSTER_TEXT_BYTES - 1);
}

// Parses host lists like TensorFlow.
class HostList {
 public:
  explicit HostList(std::pmr::vector<std::pmr::string>* out) : out_(*out) {}

  // Commas outside of brackets separate hosts.
  Status read(std::string_view text) {
    bool in_brackets = false;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (in_brackets) {
        if (text[i] == '[') return no_part(text.substr(begin));
        in_brackets = text[i] != ']';
      } else if (text[i] == '[') {
        in_brackets = true;
      } else if (text[i] == ',') {
        if (i == begin) return invalid_argument("the list of hosts has an empty part, before byte %zu", i);
        DIST_TRY(part(text.substr(begin, i - begin)));
        begin = i + 1;
      }
    }
    return begin == text.size() ? kOk : part(text.substr(begin));
  }

 private:
  static constexpr std::size_t kQuoted = 64;
  static void quote(std::string_view text, char (&out)[kQuoted]) noexcept {
    std::snprintf(out, kQuoted, "%.*s", static_cast<int>(std::min(text.size(), kQuoted - 1)), text.data());
  }

  static Status no_part(std::string_view text) noexcept {
    char quoted[kQuoted];
    quote(text, quoted);
    return invalid_argument(
        "the list of hosts has \"%s\", which cannot be read; each host is a name, or a name with "
        "numbers in one pair of brackets at its end, as n[01-03,7]",
        Shown(quoted).c_str());
  }

  static Status no_range(std::string_view text) noexcept {
    char quoted[kQuoted];
    quote(text, quoted);
    return invalid_argument(
        "the list of hosts has \"%s\" in brackets, but must be one number, or two with a dash between them, "
        "as 01-03, each of digits alone and below 2^31 (32 bits with the sign)",
        Shown(quoted).c_str());
  }

  // Digits, which may be surrounded by blanks as in TensorFlow.
  static bool read_number(std::string_view text, int32_t* out) noexcept {
    return text.find_first_of("+_") == std::string_view::npos && int_of(text, "a number", out).ok();
  }

  // A name, or a name with ranges at its end.
  Status part(std::string_view text) {
    const std::size_t open = text.find_first_of("[]");
    if (open == std::string_view::npos) return add(text, 0, {});
    if (text[open] == ']' || text.find(']') != text.size() - 1 || text.size() - open < 3)
      return no_part(text);
    const std::string_view prefix = text.substr(0, open);
    std::string_view ranges = text.substr(open + 1, text.size() - open - 2);
    while (true) {
      const std::size_t comma = ranges.find(',');
      DIST_TRY(range(prefix, ranges.substr(0, comma)));
      if (comma == std::string_view::npos) return kOk;
      ranges.remove_prefix(comma + 1);
    }
  }

  // "01-03" or a single number. The length of the first number, including blanks, determines the number of
  // digits.
  Status range(std::string_view prefix, std::string_view text) {
    const std::size_t dash = text.find('-');
    const std::string_view from = text.substr(0, dash);
    const std::string_view to = dash == std::string_view::npos ? from : text.substr(dash + 1);
    int32_t first = 0;
    int32_t last = 0;
    if (!read_number(from, &first) || to.find('-') != std::string_view::npos || !read_number(to, &last)) {
      return no_range(text);
    }
    for (int64_t number = first; number <= last; ++number) {
      char digits[16];
      std::snprintf(digits, sizeof digits, "%lld", static_cast<long long>(number));
      DIST_TRY(add(prefix, from.size(), digits));
    }
    return kOk;
  }

  // Pads the number with leading zeros to `width` digits.
  Status add(std::string_view prefix, std::size_t width, std::string_view digits) {
    if (out_.size() == DIST_MAX_CLUSTER_TASKS) {
      return invalid_argument("the list of hosts has more than %d hosts", DIST_MAX_CLUSTER_TASKS);
    }
    const std::size_t zeros = width > digits.size() ? width - digits.size() : 0;
    if (prefix.size() + zeros + digits.size() >= DIST_MAX_ADDRESS_BYTES) {
      return invalid_argument("the list of hosts has a name of more than %d bytes",
                              DIST_MAX_ADDRESS_BYTES - 1);
    }
    std::pmr::string& host = out_.emplace_back(prefix);
    host.append(zeros, '0').append(digits);
    return check_name(host.c_str(), "a host");
  }

  std::pmr::vector<std::pmr::string>& out_;
};

// Digits only.
bool read_count(std::string_view text, int32_t* out) noexcept {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return false;
  return int_of(text, "a number of tasks", out).ok();
}

// "2(x3)" or "2".
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

Status expand_host_list(const char* text, std::pmr::vector<std::pmr::string>* out) {
  DIST_TRY(check_length(text, "the list of hosts"));
  return HostList(out).read(text);
}

Status expand_tasks_per_node(const char* text, std::pmr::vector<int32_t>* out) {
  DIST_TRY(check_length(text, "the list of tasks per host"));
  std::string_view left = text;
  while (true) {
    const std::size_t comma = left.find(',');
    int32_t number = 0;
    int32_t times = 0;
    if (!read_repeated(left.substr(0, comma), &number, &times)) {
      return invalid_argument("\"%s\" is no list of tasks per host, as \"2(x3),1\"", Shown(text).c_str());
    }
    if (number > DIST_MAX_CLUSTER_TASKS ||
        out->size() + static_cast<std::size_t>(times) > DIST_MAX_CLUSTER_TASKS) {
      return invalid_argument("the list of tasks per host has more than %d tasks, or hosts",
                              DIST_MAX_CLUSTER_TASKS);
    }
    out->insert(out->end(), static_cast<std::size_t>(times), number);
    if (comma == std::string_view::npos) return kOk;
    left.remove_prefix(comma + 1);
  }
}

}  // namespace dist
