// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/dtypes.hpp"

namespace dist {
namespace {

constexpr dist_dtype kNone{};

// In the order of the safetensors library. @every dtype
constexpr StoredDtype kDtypes[] = {
    {"BOOL", 8, DIST_BOOL}, {"F4", 4, kNone},          {"F6_E2M3", 6, kNone},       {"F6_E3M2", 6, kNone},
    {"U8", 8, DIST_U8},     {"I8", 8, DIST_I8},        {"F8_E5M2", 8, kNone},       {"F8_E4M3", 8, kNone},
    {"F8_E8M0", 8, kNone},  {"F8_E4M3FNUZ", 8, kNone}, {"F8_E5M2FNUZ", 8, kNone},   {"I16", 16, DIST_I16},
    {"U16", 16, DIST_U16},  {"F16", 16, DIST_F16},     {"BF16", 16, DIST_BF16},     {"I32", 32, DIST_I32},
    {"U32", 32, DIST_U32},  {"F32", 32, DIST_F32},     {"C64", 64, DIST_COMPLEX64}, {"F64", 64, DIST_F64},
    {"I64", 64, DIST_I64},  {"U64", 64, DIST_U64},
};

}  // namespace

const StoredDtype* stored_dtype(std::string_view name) noexcept {
  for (const StoredDtype& stored : kDtypes) {
    if (name == stored.name) return &stored;
  }
  return nullptr;
}

const StoredDtype* stored_dtype(dist_dtype dtype) noexcept {
  for (const StoredDtype& stored : kDtypes) {
    if (dtype != 0 && dtype == stored.dtype) return &stored;
  }
  return nullptr;
}

}  // namespace dist
