// SPDX-License-Identifier: Apache-2.0
// Elements as text: whatever the buffer contained before, each text is terminated, short, and readable.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "core/value/number.hpp"
#include "tests/enums.h"
#include "tests/unit/each_value.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

// Fills the buffer with characters that could be mistaken for a part of the number.
void write(dist_dtype dtype, const void* element, char fill, char (&text)[kNumberRoom]) {
  std::memset(text, fill, sizeof text);
  write_number(dtype, element, text);
}

void form_follows_the_exponent(void**) {
  const struct {
    double value;
    const char* f64;
    const char* f32;
  } rows[] = {{0, "0", "0"},
              {1e-4, "0.0001", "0.0001"},
              {1e-5, "1e-05", "1e-05"},
              {123456, "123456", "123456"},
              {1e6, "1000000", "1000000"},
              {1e7, "10000000", "1e+07"},
              {1e15, "1000000000000000", "1e+15"},
              {1e16, "1e+16", "1e+16"},
              {-2.5e30, "-2.5e+30", "-2.5e+30"}};
  for (const auto& row : rows) {
    for (const char fill : {'e', '+', '9', '\0'}) {
      char text[kNumberRoom];
      write(DIST_F64, &row.value, fill, text);
      assert_string_equal(text, row.f64);
      const auto narrow = static_cast<float>(row.value);
      write(DIST_F32, &narrow, fill, text);
      assert_string_equal(text, row.f32);
    }
  }
}

void all_bits_of_every_dtype_have_room(void**) {
  uint64_t seed = 3;
  for (int i = 0; i < 20000; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const uint64_t bits = seed ^ (seed >> 29);
    for (dist_dtype dtype = DIST_F16; dtype <= LAST_DTYPE; ++dtype) {
      char text[kNumberRoom];
      write(dtype, &bits, 'e', text);
      assert_non_null(std::memchr(text, '\0', sizeof text));
      assert_in_range(std::strlen(text), 1, dtype == DIST_COMPLEX64 ? 32 : 24);
    }
  }
}

}  // namespace
}  // namespace dist

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(dist::form_follows_the_exponent),
      cmocka_unit_test(dist::all_bits_of_every_dtype_have_room),
  };
  return cmocka_run_group_tests_name("number", tests, nullptr, nullptr);
}
