// SPDX-License-Identifier: Apache-2.0
// Average losses below the C ABI: which replicas a loss needs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cstring>

#include "core/value/average_loss.hpp"
#include "tests/unit/plain_error.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

constexpr int64_t kExamples = 4;
float g_losses[kExamples] = {1, 2, 3, 6};
const dist_tensor kLosses{g_losses, DIST_F32, 1, &kExamples, nullptr};
float g_result;
const dist_tensor kResult{&g_result, DIST_F32, 0, nullptr, nullptr};

void assert_needs_a_replica(const Status& status, const char* call) {
  assert_int_equal(status.code(), DIST_FAILED_PRECONDITION);
  assert_ptr_equal(std::strstr(last_message(), call), last_message());
  assert_non_null(std::strstr(last_message(), "replica is NULL, as in the cross-replica context"));
}

// The number of replicas is needed only if the caller does not specify the size of the global batch.
void an_average_needs_replicas_or_a_batch(void**) {
  assert_true(average_loss(2, kLosses, nullptr, 0, kResult).ok());
  assert_true(g_result == 1.5f);
  assert_true(average_loss(2, kLosses, nullptr, 3, kResult).ok());
  assert_true(g_result == 4);
  assert_true(average_loss(kOutsideReplicas, kLosses, nullptr, 3, kResult).ok());
  assert_true(g_result == 4);
  g_result = -1;
  assert_needs_a_replica(average_loss(kOutsideReplicas, kLosses, nullptr, 0, kResult),
                         "dist_average_loss():");
  assert_true(g_result == -1);
  assert_int_equal(average_loss(kOutsideReplicas, kLosses, nullptr, -1, kResult).code(),
                   DIST_INVALID_ARGUMENT);
}

void a_scaled_loss_needs_replicas(void**) {
  assert_true(scale_regularization_loss(3, kLosses, kResult).ok());
  assert_true(g_result == 4);
  g_result = -1;
  assert_needs_a_replica(scale_regularization_loss(kOutsideReplicas, kLosses, kResult),
                         "dist_scale_regularization_loss():");
  assert_true(g_result == -1);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(an_average_needs_replicas_or_a_batch),
      cmocka_unit_test(a_scaled_loss_needs_replicas),
  };
  return cmocka_run_group_tests_name("loss", tests, nullptr, nullptr);
}
