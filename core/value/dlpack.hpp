// SPDX-License-Identifier: Apache-2.0
// DLPack: shares tensors with other libraries without copying. It uses the unversioned struct layout of
// DLPack 0.8, which is declared here under DLPack's own names so that its header is not needed.
#pragma once

#include <cstdint>

#include "core/value/value.hpp"

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; NULL: row-major
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);  // NULL: nothing to do
};

namespace dist {

// Takes ownership of `managed`, whose deleter is called when the value is destroyed. If this fails, the
// caller keeps ownership.
Status from_dlpack(Memory& memory, DLManagedTensor* managed, ValueRef* out);

// Shares the memory of a tensor, or of a variable's first copy. The result holds a reference until its
// deleter is called.
Status to_dlpack(Value& value, DLManagedTensor** out);

}  // namespace dist
