// SPDX-License-Identifier: Apache-2.0
#include "core/value/dlpack.hpp"

#include <algorithm>
#include <new>

namespace dist {
namespace {

// DLDeviceType: the devices whose memory the CPU can read.
enum : int32_t { kCpu = 1, kCudaHost = 3, kRocmHost = 11 };

struct Type {
  dist_dtype dtype;
  uint8_t code;
  uint8_t bits;
};

enum : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };

// @every dtype
constexpr Type kTypes[] = {
    {DIST_F16, kFloat, 16},         {DIST_BF16, kBfloat, 16}, {DIST_F32, kFloat, 32},
    {DIST_F64, kFloat, 64},         {DIST_I8, kInt, 8},       {DIST_U8, kUInt, 8},
    {DIST_I16, kInt, 16},           {DIST_U16, kUInt, 16},    {DIST_I32, kInt, 32},
    {DIST_U32, kUInt, 32},          {DIST_I64, kInt, 64},     {DIST_U64, kUInt, 64},
    {DIST_COMPLEX64, kComplex, 64}, {DIST_BOOL, kBool, 8},
};

void delete_managed(void* user_data) {
  auto* const managed = static_cast<DLManagedTensor*>(user_data);
  if (managed->deleter != nullptr) managed->deleter(managed);
}

// An exported tensor. `managed` is the first member, so both have the same address.
struct Exported {
  DLManagedTensor managed;
  ValueRef value;
  int64_t shape[DIST_MAX_NDIM];
  int64_t strides[DIST_MAX_NDIM];
};

void delete_exported(DLManagedTensor* managed) {
  auto* const exported = static_cast<Exported*>(managed->manager_ctx);
  Memory& memory = exported->value->memory();
  memory.retain();  // the value may hold the last reference
  exported->~Exported();
  memory.free(exported, sizeof(Exported), alignof(Exported));
  memory.release();
}

}  // namespace

Status from_dlpack(Memory& memory, DLManagedTensor* managed, ValueRef* out) {
  const DLTensor& from = managed->dl_tensor;
  const int32_t device = from.device.device_type;
  if (device != kCpu && device != kCudaHost && device != kRocmHost) {
    return fail(DIST_UNIMPLEMENTED,
                "the DLPack tensor is on device type %d, but libdist supports host memory (type 1) only. "
                "Copy it there first.",
                device);
  }
  const auto* const type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& known) {
    return known.code == from.dtype.code && known.bits == from.dtype.bits && from.dtype.lanes == 1;
  });
  if (type == std::end(kTypes)) {
    return fail(DIST_UNIMPLEMENTED,
                "a DLPack tensor has type code %d, %d bits and %d lanes, for which libdist has no dtype",
                from.dtype.code, from.dtype.bits, from.dtype.lanes);
  }
  void* const data = from.data == nullptr ? nullptr : static_cast<std::byte*>(from.data) + from.byte_offset;
  return Value::wrap_tensor(memory, {data, type->dtype, from.ndim, from.shape, from.strides}, delete_managed,
                            managed, out);
}

Status to_dlpack(Value& value, DLManagedTensor** out) {
  if (!value.has_tensor()) {
    return invalid_argument("%s is not a tensor. DLPack shares one tensor at a time.",
                            Value::kind_name(value.kind()));
  }
  const dist_tensor tensor = value.tensor();
  auto* const exported = new (value.memory().allocate(sizeof(Exported), alignof(Exported)))
      Exported{{}, ValueRef::share(&value), {}, {}};
  int64_t step = 1;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    exported->shape[i] = tensor.shape[i];
    exported->strides[i] = tensor.strides != nullptr ? tensor.strides[i] : step;
    step *= std::max<int64_t>(tensor.shape[i], 1);
  }
  const auto* const type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                        [&](const Type& known) { return known.dtype == tensor.dtype; });
  exported->managed = {{tensor.data,
                        {kCpu, 0},
                        tensor.ndim,
                        {type->code, type->bits, 1},
                        exported->shape,
                        exported->strides,
                        0},
                       exported,
                       delete_exported};
  *out = &exported->managed;
  return kOk;
}

}  // namespace dist
