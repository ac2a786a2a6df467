/* SPDX-License-Identifier: Apache-2.0
 *
 * DLPack's unversioned struct, as its users declare it.
 */
#ifndef TESTS_ABI_DLPACK_H
#define TESTS_ABI_DLPACK_H

#include <stdint.h>

typedef struct DLManagedTensor {
  struct {
    void *data;
    struct {
      int32_t type, id;
    } device;
    int32_t ndim;
    struct {
      uint8_t code, bits;
      uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
  } tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

#endif
