// SPDX-License-Identifier: Apache-2.0
// The datasets of area "input_misc" by name: what tf.data did between a source and its last batch is the
// user's program here; what the last batch did is libdist's.
#pragma once

#include "input_program.hpp"

namespace golden {

Dataset pipeline(Replay& replay, std::string_view name, const dist_dataset_options& options);

}  // namespace golden
