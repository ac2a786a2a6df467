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

// A tensor of its own, row-major.
struct Elements {
  dist_dtype dtype = DIST_F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  std::size_t count() const noexcept;
  // Borrowed from this.
  dist_tensor view() noexcept;
};

// "float32" is DIST_F32; nothing for a name that libdist has no type for ("string").
std::optional<dist_dtype> dtype_of(std::string_view name) noexcept;
const char* name_of(dist_dtype dtype) noexcept;
std::size_t size_of(dist_dtype dtype) noexcept;

// A recorded tensor ("dtype", "shape", "data", maybe "bits"); any but one of strings.
Elements elements_of(const Json& tensor);
// Of a tensor of any strides.
Elements elements_of(const dist_tensor& tensor);
// Each number rounded once to the dtype; an integer wraps.
Elements elements_of(dist_dtype dtype, const std::vector<int64_t>& shape, const std::vector<double>& numbers);

// In the recorded form.
Json to_json(const Elements& elements, JsonMemory& memory);
std::vector<double> numbers_of(const Elements& elements);

// How many elements a shape holds; throws Malformed for a negative size or one that overflows.
std::size_t count_of(const std::vector<int64_t>& shape);
// dtype, shape and all bits are the same; NaNs are the same whatever their bits.
bool equal(const Elements& a, const Elements& b) noexcept;

// "nan", "inf" and "-inf" stand for numbers that JSON has not.
double number_of(const Json& json);
Json number_to_json(double number);

}  // namespace golden
