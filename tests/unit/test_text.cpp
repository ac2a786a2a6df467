// SPDX-License-Identifier: Apache-2.0
// core/base/text: the form of texts that leave the library.
#include "core/base/text.hpp"
#include "tests/unit/plain_error.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

extern "C" {
#include <cmocka.h>
}
#undef fail  // dist::fail() is meant below

namespace dist {
namespace {

void any_bytes_become_a_line(void**) {
  const struct {
    const char* in;
    const char* out;
  } cases[] = {
      {"", ""},
      {"plain", "plain"},
      {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
      {"a\xFFz", "a\xEF\xBF\xBDz"},
      {"\x80", "\xEF\xBF\xBD"},
      {"\xC3(", "\xEF\xBF\xBD("},
      {"\xC0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD"},                                  // overlong
      {"\xE0\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},                  // overlong
      {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},                  // a surrogate
      {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},  // too large
      {"\xF0\x9F\x98", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},                  // cut
      {"a\nb\tc\r\x1b[31m\x7f", "a\\nb\\tc\\x0d\\x1b[31m\\x7f"},
      {"\xC2\x85\xC2\xA0", "\\x85\xC2\xA0"},  // only the first is a control character
  };
  for (const auto& each : cases) {
    char out[64];
    copy_shown(out, each.in);
    assert_string_equal(out, each.out);
    assert_int_equal(is_line(each.in), std::strcmp(each.in, each.out) == 0);
  }
  char kept[16];
  copy_shown(kept, "a\nb\tc\r", Keep::kBreaks);
  assert_string_equal(kept, "a\nb\tc\\x0d");
  char small[6];
  copy_shown(small, "abc\xE2\x82\xAC");  // neither characters nor escapes are cut
  assert_string_equal(small, "abc");
  copy_shown(small, "abc\x1b");
  assert_string_equal(small, "abc");
  char cut[8] = "abc\xE2\x82";
  show_in_place(cut, Keep::kNothing);
  assert_string_equal(cut, "abc");
}

void a_long_value_is_cut_visibly(void**) {
  assert_string_equal(Shown(std::string(119, 'a').c_str()).c_str(), std::string(119, 'a').c_str());
  const std::string cut = std::string(116, 'a') + "…";
  assert_string_equal(Shown(std::string(120, 'a').c_str()).c_str(), cut.c_str());
  assert_string_equal(Shown(std::string_view(std::string(5000, 'a'))).c_str(), cut.c_str());
  assert_string_equal(Shown(std::string_view("abc").substr(0, 2)).c_str(), "ab");
  // Neither a character nor an escape is cut.
  std::string wide;
  for (int i = 0; i < 60; ++i) wide += "é";
  assert_string_equal(Shown(wide.c_str()).c_str(), (wide.substr(0, 116) + "…").c_str());
  assert_string_equal(Shown(std::string(60, '\n').c_str()).c_str(),
                      [] {
                        std::string all;
                        for (int i = 0; i < 58; ++i) all += "\\n";
                        return all + "…";
                      }()
                          .c_str());
}

void one_is_singular(void**) {
  assert_string_equal(CountText(1, "replica").text, "1 replica");
  for (const int64_t many : {int64_t{0}, int64_t{2}, int64_t{-1}, INT64_MIN})
    assert_string_equal(CountText(many, "replica").text, (std::to_string(many) + " replicas").c_str());
}

void names_are_lines(void**) {
  assert_true(check_name("caf\xC3\xA9", "name").ok());
  assert_false(check_name("a\nb", "name").ok());
  assert_string_equal(last_message(),
                      "name is \"a\\nb\", but must be one line of UTF-8 without control characters");
  assert_false(check_name("\xFF", "name").ok());
}

void durations_have_units(void**) {
  const struct {
    int64_t ns;
    const char* text;
  } cases[] = {{0, "0 ns"},
               {1, "1 ns"},
               {1500, "1.5 us"},
               {200'000'000, "200 ms"},
               {1'000'000'000, "1 s"},
               {1'913'000'000'000, "1913 s"},
               {-5'000, "-5 us"}};
  for (const auto& each : cases) assert_string_equal(DurationText(each.ns).text, each.text);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(any_bytes_become_a_line), cmocka_unit_test(a_long_value_is_cut_visibly),
      cmocka_unit_test(one_is_singular),         cmocka_unit_test(names_are_lines),
      cmocka_unit_test(durations_have_units),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
