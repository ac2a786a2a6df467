// SPDX-License-Identifier: Apache-2.0
// Values and variables as single-line text, the same on every machine and in every locale; implements
// dist_value_describe().
#pragma once

#include "core/base/text_out.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// These functions allocate nothing and do not flush `out`.
void describe(const Value& value, TextOut& out);
void describe(const Variable& variable, TextOut& out);

}  // namespace dist
