// SPDX-License-Identifier: Apache-2.0
// Values and variables as text, on one line, the same on every machine and in every locale: what
// dist_value_describe() promises in dist.h.
#pragma once

#include "core/trace/text.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// They allocate nothing and do not flush `out`.
void describe(const Value& value, TextOut& out);
void describe(const Variable& variable, TextOut& out);

}  // namespace dist
