// SPDX-License-Identifier: Apache-2.0
// The datasets of area "input_misc" by name. The steps of a tf.data pipeline between a source and the last
// batch are part of the user's program here; libdist performs the last batch.
#pragma once

#include "input_program.hpp"

namespace golden {

Dataset pipeline(Replay& replay, std::string_view name, const dist_dataset_options& options);

}  // namespace golden
