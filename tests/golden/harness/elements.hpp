// SPDX-License-Identifier: Apache-2.0
// The elements of tensors: as recorded in JSON, in libdist's memory, and as numbers. The conversions are
// independent of libdist's, so that an error there would be detected.
#pragma once

#include <dist/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "json.hpp"

namespace golden {

// A row-major tensor that owns its memory.
struct Elements {
  dist_dtype dtype = DIST_F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  std::size_t count() const noexcept;
  // The view refers to this object's memory.
  dist_tensor view() noexcept;
};

// "float32" is DIST_F32. Returns nothing if libdist has no such dtype ("string").
std::optional<dist_dtype> dtype_of(std::string_view name) noexcept;
const char* name_of(dist_dtype dtype) noexcept;
std::size_t size_of(dist_dtype dtype) noexcept;

// Reads a recorded tensor ("dtype", "shape", "data", and optionally "bits"), except tensors of strings.
Elements elements_of(const Json& tensor);
// Copies a tensor with any strides.
Elements elements_of(const dist_tensor& tensor);
// Rounds each number once to the dtype. Integers wrap.
Elements elements_of(dist_dtype dtype, const std::vector<int64_t>& shape, const std::vector<double>& numbers);

// Returns the recorded form.
Json to_json(const Elements& elements, JsonMemory& memory);
std::vector<double> numbers_of(const Elements& elements);

// Returns the number of elements of a shape. Throws Malformed if a size is negative or the product overflows.
std::size_t count_of(const std::vector<int64_t>& shape);
// Compares dtype, shape and all bits. All NaNs count as equal.
bool equal(const Elements& a, const Elements& b) noexcept;

// JSON has no such numbers, so "nan", "inf" and "-inf" stand for them.
double number_of(const Json& json);
Json number_to_json(double number);

}  // namespace golden
