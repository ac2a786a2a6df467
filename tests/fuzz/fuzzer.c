/* SPDX-License-Identifier: Apache-2.0
 *
 * What a target needs under libFuzzer: cmocka's failures print what was wrong, and abort.
 */
#include <stdlib.h>

int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerInitialize(int* argc, char*** argv) {
  (void)argc, (void)argv;
  return setenv("CMOCKA_TEST_ABORT", "1", 1);
}
