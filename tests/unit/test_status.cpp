// SPDX-License-Identifier: Apache-2.0
// core/base/status: the parts of a message, and the marks around names.
#include "core/base/status.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <string>

extern "C" {
#include <cmocka.h>
}
#undef fail  // dist::fail() is meant below

namespace dist {
namespace {

void assert_plain(const char* text, const char* expected) {
  char plain[sizeof(ErrorRecord::message)];
  copy_plain(plain, text);
  assert_string_equal(plain, expected);
}

struct Parts {
  const char* parameter;
  const char* received;
  const char* expected;
  const char* hint;
};

void assert_parts(const Parts& parts) {
  const ErrorRecord& error = last_error();
  assert_string_equal(error.parameter, parts.parameter);
  assert_plain(error.received, parts.received);
  assert_plain(error.expected, parts.expected);
  assert_plain(error.hint, parts.hint);
}

void a_format_gives_the_parts(void**) {
  (void)invalid_argument("`%s()`: `root` is %d, but must be 0 to %d. Leave it at 0 for `NULL`.", "dist_x", 7,
                         3);
  assert_parts({"root", "7", "0 to 3", "Leave it at 0 for NULL."});
  assert_plain(last_error().message, "dist_x(): root is 7, but must be 0 to 3. Leave it at 0 for NULL.");
  (void)invalid_argument("`op` is %s; use `DIST_REDUCE_SUM`", "9");
  assert_parts({"op", "9", "DIST_REDUCE_SUM", ""});
  (void)invalid_argument("`ids[%d]` is %d, but the replicas are 0 to %d", 1, 7, 3);
  assert_parts({"ids[1]", "7", "the replicas are 0 to 3", ""});
  (void)invalid_argument("tensor %d: `axes[%d].size` is %d", 1, 2, 3);
  assert_parts({"axes[2].size", "3", "", ""});
  (void)failed_precondition("`dist_x()`: this `thread` is in %s. Call it on another one.", "a callback");
  assert_parts({"", "", "", "Call it on another one."});
  (void)failed_precondition("`dist_x()`: it is closed. `dist_y()` opens it. Then call it.");
  assert_parts({"", "", "", "dist_y() opens it. Then call it."});
}

// Punctuation in arguments does not divide the message.
void arguments_have_no_parts(void**) {
  (void)invalid_argument("%s", "`root` is 1, but must be 2. Do it.");
  assert_parts({"", "", "", ""});
  assert_string_equal(last_error().message, "`root` is 1, but must be 2. Do it.");
  (void)invalid_argument("`name` is \"%s\", but must be short. Use one.", "a, but must be b. C");
  assert_parts({"name", "\"a, but must be b. C\"", "short", "Use one."});
}

void a_quoted_message_keeps_its_marks(void**) {
  (void)invalid_argument("`root` is %d, but must be 0", 7);
  (void)invalid_argument("tensor 3: %s", last_error().message);
  assert_string_equal(last_error().message, "tensor 3: \x0Eroot\x0F is 7, but must be 0");
  assert_parts({"", "", "", ""});
  (void)invalid_argument("`root` is %d, but must be 0", 7);
  (void)reworded("%s of `dist_x()`", last_error().message);
  assert_plain(last_error().message, "root is 7, but must be 0 of dist_x()");
  assert_parts({"root", "7", "0", ""});
  assert_string_equal("Call `dist_run()`"_m,
                      "Call \x0E"
                      "dist_run()\x0F");
}

// Parts are cut like the message, between characters and without a crash.
void long_texts_are_cut(void**) {
  for (std::size_t length = 0; length < 2000; length += 7) {
    const std::string text(length, 'x');
    (void)invalid_argument("`%s` is \"%sé\", but must be %s. %s", text.c_str(), text.c_str(), text.c_str(),
                           text.c_str());
    const ErrorRecord& error = last_error();
    assert_true(std::string(error.message).size() < sizeof error.message);
    assert_true(std::string(error.parameter).size() < sizeof error.parameter);
    if (length < sizeof error.parameter) assert_string_equal(error.parameter, text.c_str());
  }
}

void the_first_function_is_named(void**) {
  (void)failed_precondition("no");
  assert_int_equal(named_failure(DIST_FAILED_PRECONDITION, "dist_inner"), DIST_FAILED_PRECONDITION);
  assert_int_equal(named_failure(DIST_FAILED_PRECONDITION, "dist_outer"), DIST_FAILED_PRECONDITION);
  assert_string_equal(last_error().function, "dist_inner");
}

}  // namespace
}  // namespace dist

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(dist::a_format_gives_the_parts),
      cmocka_unit_test(dist::arguments_have_no_parts),
      cmocka_unit_test(dist::a_quoted_message_keeps_its_marks),
      cmocka_unit_test(dist::long_texts_are_cut),
      cmocka_unit_test(dist::the_first_function_is_named),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
