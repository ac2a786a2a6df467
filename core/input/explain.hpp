// SPDX-License-Identifier: Apache-2.0
// Describes which worker and replica reads which part of a dataset, as text.
#pragma once

#include <memory_resource>
#include <string>

#include "core/input/dataset.hpp"

namespace dist {

std::pmr::string explain(const Dataset& dataset);

}  // namespace dist
