// SPDX-License-Identifier: Apache-2.0
// How dist-launch splits a task's output into lines, regardless of the pieces in which it arrives.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "capi/tools/line_prefixer.hpp"

extern "C" {
#include <cmocka.h>
}

using dist::launch::LinePrefixer;

namespace {

constexpr std::size_t kMost = LinePrefixer::kMaxLineBytes;

// Returns the output for a text that arrives in pieces of this size.
std::string prefixed(const std::string& text, std::size_t piece) {
  LinePrefixer prefixer("> ");
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += piece) prefixer.feed(text.substr(at, piece), &out);
  prefixer.finish(&out);
  return out;
}

void lines(void**) {
  const struct {
    std::string text;
    std::string wanted;
  } rows[] = {{"", ""},
              {"\n", "> \n"},
              {"a", "> a\n"},
              {"a\n", "> a\n"},
              {"a\nb", "> a\n> b\n"},
              {"\n\na\n\n", "> \n> \n> a\n> \n"},
              {std::string("a\0\r\x80\xff\t\n", 7), std::string("> a\0\r\x80\xff\t\n", 9)}};
  for (const auto& row : rows) {
    for (const std::size_t piece : {1, 2, 3, 100}) {
      const std::string out = prefixed(row.text, piece);
      assert_int_equal(out.size(), row.wanted.size());
      assert_memory_equal(out.data(), row.wanted.data(), out.size());
    }
  }
}

void long_lines_are_cut(void**) {
  const std::string full(kMost, 'x');
  const std::string line = std::string("> ").append(full).append("\n");
  for (const std::size_t piece : {std::size_t{1000}, kMost, 3 * kMost}) {
    assert_true(prefixed(full + "\n", piece) == line);
    assert_true(prefixed(full, piece) == line);
    assert_true(prefixed(full + "y\nz\n", piece) == line + "> y\n> z\n");
    assert_true(prefixed(std::string(2 * kMost, 'x') + "\n\n", piece) == line + line + "> \n");
  }
}

void a_line_is_kept_until_it_ends(void**) {
  LinePrefixer prefixer("> ");
  std::string out;
  prefixer.feed("half", &out);
  assert_string_equal(out.c_str(), "");
  prefixer.feed(" a line\nand", &out);
  assert_string_equal(out.c_str(), "> half a line\n");
  prefixer.finish(&out);
  prefixer.finish(&out);
  assert_string_equal(out.c_str(), "> half a line\n> and\n");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(lines),
      cmocka_unit_test(long_lines_are_cut),
      cmocka_unit_test(a_line_is_kept_until_it_ends),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
