/* SPDX-License-Identifier: Apache-2.0
 *
 * Support for libFuzzer: failures of cmocka print their message and abort.
 */
#include <stdlib.h>

int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerInitialize(int* argc, char*** argv) {
  (void)argc, (void)argv;
  return setenv("CMOCKA_TEST_ABORT", "1", 1);
}
